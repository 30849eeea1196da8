/** Several culprits at once (Minder §6.6): NICs by the millisecond, two machines, a switch with 32 of 600. */
import { PairwiseDistances } from "../../src/maths/pairwise-distances.ts";
import { findMachines } from "../../src/methods/machines/find-machines.ts";
import { runMinder } from "../../src/methods/machines/minder/minder.ts";
import { metricEmbedder } from "../../src/methods/machines/minder/embedding.ts";
import { shippedModels } from "../../src/methods/machines/minder/models.ts";
import type { Fleet } from "../../src/model/fleet.ts";
import { drawTask } from "./fleet/draw-task.ts";
import type { GivenFault } from "./fleet/faults.ts";
import { fleetTask } from "./fleet/fleet-task.ts";
import { nicMilliseconds, nicsAsMachines } from "./fleet/nic-milliseconds.ts";
import { sized } from "./healthy-work.ts";
import { strideOf } from "./minder-sweep.ts";
import { whereSeen } from "./visible.ts";

export interface NicInput {
  readonly seed: number;
  readonly badMachines: number;
  readonly threshold: number;
}

export interface NicOutcome {
  /** Of the bad ones: machines named, and with the right NIC. */
  readonly machines: number;
  readonly nics: number;
  readonly others: number;
  /** Minder, each NIC as a machine: at most one is named. */
  readonly minder: "right" | "wrong" | "nobody";
  /** By its distances alone, as §6.6 tells it: how many of the two farthest NICs are bad. */
  readonly farthest: number;
}

/** Three seconds have no four minutes in them. */
const NIC_CONTINUITY_S = 1;

export function nicWork({ seed, badMachines, threshold }: NicInput): NicOutcome {
  const { fleet, truth } = nicMilliseconds({ seed, badMachines });
  const { faulty } = findMachines(fleet);
  const isBad = (name: string): boolean =>
    truth.bad.some(({ machine }) => fleet.machines[machine] === name);
  const found = truth.bad.map(({ machine, nic }) => {
    const named = faulty.find((one) => one.machine === fleet.machines[machine]);
    const devices = new Set(named?.deviations.map(({ device }) => device));
    devices.delete(null);
    return {
      isNamed: named !== undefined,
      isNic: devices.size === 1 && devices.has(`mlx5_${nic}`),
    };
  });
  const asMachines = nicsAsMachines({ seed, badMachines }).fleet;
  const [nic] = runMinder(asMachines, shippedModels(), {
    metrics: ["tcp-rdma-throughput"],
    continuityS: NIC_CONTINUITY_S,
    similarityThreshold: threshold,
  }).faulty;
  const bad = truth.bad.map(({ machine, nic }) => `node${machine}/mlx5_${nic}`);
  return {
    machines: found.filter(({ isNamed }) => isNamed).length,
    nics: found.filter(({ isNic }) => isNic).length,
    others: faulty.filter(({ machine }) => !isBad(machine)).length,
    minder: nic === undefined ? "nobody" : bad.includes(nic.machine) ? "right" : "wrong",
    farthest: twoFarthest(asMachines).filter((name) => bad.includes(name)).length,
  };
}

/** By the mean over all windows of Minder's distances to all others. */
function twoFarthest(fleet: Fleet): string[] {
  const [grid] = fleet.grids;
  const count = fleet.machines.length;
  const machines = Int32Array.from(fleet.machines.keys());
  const embedder = metricEmbedder(grid!, machines, shippedModels());
  const pairs = new PairwiseDistances(count, embedder.dimensions);
  const sums = new Float64Array(count);
  const total = new Float64Array(count);
  for (let tick = 0; tick + embedder.window <= grid!.ticks; tick++) {
    embedder.embed(tick, pairs.points, pairs.stride, 0);
    pairs.sums(sums);
    sums.forEach((sum, machine) => (total[machine]! += sum));
  }
  const order = [...machines].sort((a, b) => total[b]! - total[a]!);
  return order.slice(0, 2).map((machine) => fleet.machines[machine]!);
}

export interface ManyInput {
  readonly seed: number;
  readonly what: "two machines" | "switch, machines silent" | "switch, NICs down";
  readonly threshold: number;
}

export interface ManyOutcome {
  readonly what: ManyInput["what"];
  readonly machines: number;
  readonly culprits: number;
  readonly isVisible: boolean;
  readonly named: number;
  readonly others: number;
  readonly minder: "right" | "wrong" | "nobody";
}

const SWITCH = { machines: 600, connected: 32 };

export function manyWork({ seed, what, threshold }: ManyInput): ManyOutcome {
  const isSwitch = what !== "two machines";
  const drawn = drawTask(seed, true);
  const options = isSwitch
    ? sized({ ...drawn, stepS: 1 }, SWITCH.machines, SWITCH.machines)
    : sized(drawn, 16, 128);
  const { fault, machines } = options;
  const { onsetS, untilS } = fault!;
  const first = (seed * 37) % (machines - SWITCH.connected);
  const second = (seed * 37 + Math.floor(machines / 2)) % machines;
  const many: GivenFault = isSwitch
    ? {
        type: what === "switch, NICs down" ? "nic-drop" : "unreachable",
        vanishes: what === "switch, NICs down" ? null : "machine",
        machines: Array.from({ length: SWITCH.connected }, (_, n) => first + n),
        onsetS: onsetS,
      }
    : { ...fault!, untilS: untilS ?? null, machines: [(seed * 37) % machines, second] };
  const { fleet, truth } = fleetTask({ ...options, fault: many });
  const culprits = new Set(truth.fault!.machines.map((machine) => fleet.machines[machine]!));
  const { faulty } = findMachines(fleet);
  const [found] = runMinder(fleet, shippedModels(), {
    similarityThreshold: threshold,
    stride: strideOf(machines, "minder"),
  }).faulty;
  return {
    what,
    machines,
    culprits: culprits.size,
    isVisible: whereSeen(truth.fault!, fleet).length > 0,
    named: faulty.filter(({ machine }) => culprits.has(machine)).length,
    others: faulty.filter(({ machine }) => !culprits.has(machine)).length,
    minder: found === undefined ? "nobody" : culprits.has(found.machine) ? "right" : "wrong",
  };
}
