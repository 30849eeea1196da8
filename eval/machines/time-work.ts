/** How long a call takes: 15 minutes of samples of every second, all metrics, nothing wrong. */
import { median } from "../../src/maths/robust.ts";
import { findMachines } from "../../src/methods/machines/find-machines.ts";
import { runMinder } from "../../src/methods/machines/minder/minder.ts";
import { shippedModels } from "../../src/methods/machines/minder/models.ts";
import { PAPER_ORDER } from "../../src/methods/machines/minder/options.ts";
import { fleetTask } from "./fleet/fleet-task.ts";

export interface TimeInput {
  readonly seed: number;
  readonly machines: number;
}

export interface TimeOutcome {
  readonly machines: number;
  readonly makeMs: number;
  readonly oursMs: number;
  /** Our detector with Minder's seven metrics alone. */
  readonly sevenMs: number;
  readonly minderMs: number;
  readonly strideMs: number;
}

const CALLS = 3;

export function timeWork({ seed, machines }: TimeInput): TimeOutcome {
  const started = performance.now();
  const { fleet } = fleetTask({
    machines,
    pp: machines >= 64 ? 8 : 2,
    stepS: 1,
    seconds: 900,
    seed,
  });
  const makeMs = performance.now() - started;
  const seven = {
    ...fleet,
    grids: fleet.grids.filter(({ metric }) => PAPER_ORDER.includes(metric)),
  };
  // Just below what is possible: nobody is named, so that every metric is gone through.
  const similarityThreshold = 0.99 * ((machines - 1) / Math.sqrt(machines));
  const minder = (stride: number): unknown =>
    runMinder(fleet, shippedModels(), { similarityThreshold, stride });
  return {
    machines,
    makeMs,
    oursMs: took(() => findMachines(fleet)),
    sevenMs: took(() => findMachines(seven)),
    minderMs: took(() => minder(1)),
    strideMs: took(() => minder(5)),
  };
}

function took(call: () => unknown): number {
  const all = Array.from({ length: CALLS }, () => {
    const started = performance.now();
    call();
    return performance.now() - started;
  });
  return median(all);
}
