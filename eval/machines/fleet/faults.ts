/** Faults of machines: Minder's Table 1, with what it leaves open drawn. */
import {
  FAULT_TYPES,
  METRIC_GROUPS,
  type MetricGroup,
} from "../../../src/simulate/emit/metrics/minder-table.ts";
import { Draw } from "./draw.ts";

export type FaultType =
  | "ecc"
  | "pcie"
  | "nic-drop"
  | "card-drop"
  | "nvlink"
  | "aoc"
  | "cuda-execution"
  | "gpu-execution"
  | "hdfs"
  | "unreachable"
  | "other"
  | SlowType;

/** Faults that slow the job down and later halt it; Minder's table has none of them. */
export type SlowType = "slow-clock" | "throttle" | "pcie-width" | "cpu-overload";

/** By how much each slows the job: what sites tell of (ranges assumed). */
export const SLOW_FACTOR: Readonly<Record<SlowType, readonly [number, number]>> = {
  "slow-clock": [1.3, 1.8],
  throttle: [1.2, 1.5],
  "pcie-width": [1.15, 1.5],
  "cpu-overload": [1.18, 1.4],
};

export function isSlowType(type: FaultType): type is SlowType {
  return type in SLOW_FACTOR;
}

/** How far each group of metrics goes, where it shows. */
export interface Strength {
  /** Factors on CPU usage, host memory, TCP bytes and what NICs carry. */
  readonly cpu: number;
  readonly memory: number;
  readonly tcp: number;
  readonly traffic: number;
  /** Share of the time that its GPUs idle. */
  readonly idle: number;
  /** Factors on PFC pauses, ECN marks and CNPs. */
  readonly pfc: number;
  readonly congestion: number;
  readonly diskBytes: number;
}

export interface FleetFault {
  readonly type: FaultType;
  readonly machines: readonly number[];
  /** Of each machine: where single GPUs or NICs are concerned; null: all. */
  readonly gpus: readonly number[] | null;
  readonly onsetS: number;
  /** When the job is halted; null: not within the window. */
  readonly untilS: number | null;
  /** How long it takes to show in full; 0: at once. */
  readonly rampS: number;
  /** The groups of metrics in which it shows; may be empty: nobody can see it there. */
  readonly shown: readonly MetricGroup[];
  /** Of the catalog's states, those that tell, beside Minder's groups. */
  readonly states: readonly string[];
  /** Whose samples stop. */
  readonly vanishes: "gpu" | "machine" | null;
  /** The others wait for it, get slower, or do not notice. */
  readonly reaction: "wait" | "slow" | "none";
  /** When they do, and what is left of the job's pace where it is slow. */
  readonly reactionS: number;
  readonly pace: number;
  readonly strength: Strength;
}

export type GivenFault = Partial<Omit<FleetFault, "strength">> &
  Pick<FleetFault, "type" | "machines" | "onsetS"> & { readonly strength?: Partial<Strength> };

/** PCIe and cables make the job slow, the rest makes it wait; of NVLink errors some are only slow (assumed). */
const SLOW_SHARE: Readonly<Partial<Record<FaultType, number>>> = { pcie: 1, aoc: 0.5, nvlink: 0.3 };
/** How often a state tells: an Xid, a port that is down, a link that fell back (assumed: Table 1 has no such column). */
const STATE_SHARE: Readonly<Partial<Record<FaultType, readonly [string, number]>>> = {
  ecc: ["xid-errors", 0.7],
  nvlink: ["xid-errors", 0.7],
  "card-drop": ["xid-errors", 0.5],
  "cuda-execution": ["xid-errors", 0.5],
  "gpu-execution": ["xid-errors", 0.5],
  "nic-drop": ["infiniband-port-state", 0.7],
  pcie: ["pcie-link-generation", 0.5],
};
/** Of the cards that drop, how many take their samples with them; of unreachable machines likewise (assumed). */
const CARD_VANISHES = 0.6;
const MACHINE_VANISHES = 0.3;
/** Dead processes mostly take the whole machine's job with them (Minder §2.3); some faults stay with their GPU. */
const SINGLE_GPU_SHARE = 0.35;
const TWO_GPUS_SHARE = 0.15;
const GRADUAL_SHARE = 0.3;

/** §2.2: throughput of all NICs went from 6.5 to 4.9 Gbit/s. */
const SLOW_PACE = 4.9 / 6.5;

export function completeFault(
  given: GivenFault,
  gpusPerMachine: number,
  iterationS: number,
  seed: number,
): FleetFault {
  const draw = new Draw(seed, "fault");
  const { type, onsetS } = given;
  const shares = FAULT_TYPES[type];
  const shown =
    given.shown ??
    METRIC_GROUPS.filter((group, g) => shares !== undefined && draw.chance(10 + g, shares[group]));
  const vanishes = given.vanishes !== undefined ? given.vanishes : drawVanishes(type, shown, draw);
  const state = STATE_SHARE[type];
  const rampS = draw.chance(0, GRADUAL_SHARE) ? draw.within(1, 10, 90) : 0;
  const first = draw.whole(3, gpusPerMachine);
  const isSlow = isSlowType(type);
  const isSingle = vanishes === "gpu" || isSlow || draw.chance(2, SINGLE_GPU_SHARE);
  const both = draw.chance(4, TWO_GPUS_SHARE) && gpusPerMachine > 1;
  const drawnGpus = isSingle ? (both ? [first, (first + 1) % gpusPerMachine] : [first]) : null;
  return {
    untilS: null,
    rampS: vanishes === null ? rampS : 0,
    gpus: drawnGpus,
    states: state && draw.chance(5, state[1]) ? [state[0]] : [],
    reaction: isSlow || draw.chance(6, SLOW_SHARE[type] ?? 0) ? "slow" : "wait",
    // At the latest the next synchronisation waits.
    reactionS: onsetS + draw.within(7, 0, iterationS),
    pace: isSlow
      ? 1 / draw.within(8, ...SLOW_FACTOR[type])
      : SLOW_PACE * draw.within(8, 0.85, 1.15),
    ...given,
    shown,
    vanishes,
    strength: { ...drawStrength(draw), ...given.strength },
  };
}

function drawVanishes(
  type: FaultType,
  shown: readonly MetricGroup[],
  draw: Draw,
): FleetFault["vanishes"] {
  if (type === "card-drop" && shown.includes("gpu") && draw.chance(9, CARD_VANISHES)) return "gpu";
  if (type === "unreachable" && draw.chance(9, MACHINE_VANISHES)) return "machine";
  return null;
}

/** Not always total: some processes of a machine live on, some congestion is mild (ranges assumed). */
function drawStrength(draw: Draw): Strength {
  return {
    cpu: draw.within(20, 0.05, 0.6),
    memory: draw.within(21, 0.1, 0.75),
    tcp: draw.magnitude(22, 0.02, 0.3),
    traffic: draw.within(23, 0.2, 0.75),
    idle: draw.chance(24, 0.6) ? 1 : draw.within(25, 0.35, 0.95),
    pfc: draw.magnitude(26, 10, 10_000),
    congestion: draw.magnitude(27, 4, 60),
    diskBytes: draw.magnitude(28, 2e10, 3e11),
  };
}
