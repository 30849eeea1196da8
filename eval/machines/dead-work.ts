/** A machine dies: how long after it is it named, by data that end then? */
import { findMachines } from "../../src/methods/machines/find-machines.ts";
import { runMinder } from "../../src/methods/machines/minder/minder.ts";
import { shippedModels } from "../../src/methods/machines/minder/models.ts";
import type { Fleet, MetricGrid } from "../../src/model/fleet.ts";
import { drawTask } from "./fleet/draw-task.ts";
import { fleetTask } from "./fleet/fleet-task.ts";
import { sized } from "./healthy-work.ts";

export interface DeadInput {
  readonly seed: number;
  readonly stepS: number;
  readonly reaction: "wait" | "none";
  readonly threshold: number;
}

export interface DeadOutcome {
  readonly stepS: number;
  readonly reaction: "wait" | "none";
  /** Until it is the first that is named; null: never, in the time there is. */
  readonly delayS: number | null;
  /** What Minder says of all the data. */
  readonly minder: "right" | "wrong" | "nobody";
}

const ONSET_S = 600;
/** Data go on for so long after the death: Minder's continuity fits in. */
const AFTER_S = 420;
const LOOK_EVERY_S = 5;

export function deadWork({ seed, stepS, reaction, threshold }: DeadInput): DeadOutcome {
  const drawn = sized(drawTask(seed, false), 8, 64);
  const machine = seed % drawn.machines;
  const { fleet } = fleetTask({
    ...drawn,
    stepS,
    seconds: ONSET_S + AFTER_S,
    // A job that ends by itself, or starts, would hide when it was.
    nuisances: { ...drawn.nuisances, idle: null, warmupS: 0, dcgmEveryS: stepS === 15 ? 30 : 0 },
    fault: {
      type: "unreachable",
      vanishes: "machine",
      machines: [machine],
      onsetS: ONSET_S,
      reaction,
    },
  });
  const name = fleet.machines[machine]!;
  const everyS = Math.max(stepS, LOOK_EVERY_S);
  let delayS: number | null = null;
  for (let afterS = everyS; afterS <= AFTER_S && delayS === null; afterS += everyS) {
    const { faulty } = findMachines(cut(fleet, ONSET_S + afterS));
    if (faulty[0]?.machine === name) delayS = afterS;
  }
  const options = { similarityThreshold: threshold };
  const [found] = runMinder(fleet, shippedModels(), options).faulty;
  const minder = found === undefined ? "nobody" : found.machine === name ? "right" : "wrong";
  return { stepS, reaction, delayS, minder };
}

/** What was known at a time, in seconds from the start. */
export function cut(fleet: Fleet, untilS: number): Fleet {
  return { ...fleet, grids: fleet.grids.map((grid) => cutGrid(grid, untilS)) };
}

function cutGrid(grid: MetricGrid, untilS: number): MetricGrid {
  const ticks = Math.min(grid.ticks, Math.floor(untilS / grid.stepS));
  const machines = grid.mean.length / grid.ticks;
  const rows = <T extends Float32Array | Uint8Array>(from: T, to: T): T => {
    for (let m = 0; m < machines; m++)
      to.set(from.subarray(m * grid.ticks, m * grid.ticks + ticks), m * ticks);
    return to;
  };
  const floats = (from: Float32Array): Float32Array =>
    rows(from, new Float32Array(machines * ticks));
  const bytes = (from: Uint8Array | null): Uint8Array | null =>
    from && rows(from, new Uint8Array(machines * ticks));
  const mean = floats(grid.mean);
  return {
    ...grid,
    ticks,
    mean,
    low: grid.low === grid.mean ? mean : floats(grid.low),
    high: grid.high === grid.mean ? mean : floats(grid.high),
    lowDevice: bytes(grid.lowDevice),
    highDevice: bytes(grid.highDevice),
    reporting: bytes(grid.reporting),
  };
}
