/**
 * Levels of a healthy machine by pipeline stage. Stages are not alike: in ByteDance's published traces the last is 1.8
 * and 2.1 times slower than the first, since it has the loss to compute. The slowest stage sets the pace and the GPUs
 * of the others spin in receives meanwhile. Memory is fullest in the first, which holds most micro-batches (1F1B).
 */
import {
  HEALTHY_GPU,
  HEALTHY_MACHINE,
  type MachineEffect,
} from "../../../src/simulate/emit/metrics/effects.ts";
import type { GpuLevel } from "../../../src/simulate/emit/metrics/levels.ts";
import { Draw } from "./draw.ts";
import type { JobClock } from "./job-clock.ts";

export interface StageWork {
  /** Share of an iteration in kernels of the model. */
  readonly compute: number;
  readonly nvlinkPerS: number;
  readonly nicPerS: number;
  readonly memoryMib: number;
  /** Factors on what the host does. */
  readonly cpu: number;
  readonly hostMemory: number;
}

/** Busiest stage's share of kernels, bytes a second of a GPU over NVLink and of its NIC (assumed). */
const BUSY = 0.85;
const NVLINK_PER_S = 1.2e11;
const NIC_PER_S = 6e9;
/** Share of an iteration in which gradients go over the network. */
const SYNC = 0.15;
/** Samples within a second: an iteration may be shorter than two. */
const PARTS = 4;

export function stageWork(pp: number, lastRatio: number, seed: number): StageWork[] {
  return Array.from({ length: pp }, (_, stage) => {
    const draw = new Draw(seed, "stage", stage);
    const isLast = stage === pp - 1;
    const compute = (BUSY / (isLast || pp === 1 ? 1 : lastRatio)) * draw.within(0, 0.985, 1);
    const early = pp === 1 ? 0.5 : 1 - stage / (pp - 1);
    return {
      compute,
      nvlinkPerS: (NVLINK_PER_S * compute) / BUSY,
      // The ends of the pipeline have one neighbour only.
      nicPerS: NIC_PER_S * (pp > 1 && (stage === 0 || isLast) ? 0.85 : 1) * draw.within(1, 0.97, 1),
      memoryMib: 46_000 + 22_000 * early + (isLast && pp > 1 ? 7000 : 0),
      // The first stage loads data.
      cpu: stage === 0 && pp > 1 ? 1.1 : 1,
      hostMemory: draw.within(2, 0.95, 1.05),
    };
  });
}

/** Fills `level` with what a healthy GPU of the stage does at second `s`, `shiftS` later. */
export function gpuLevelAt(
  work: StageWork,
  { modes, position, pace }: JobClock,
  swing: number,
  s: number,
  shiftS: number,
  level: GpuLevel,
): void {
  const at = Math.min(modes.length - 1, Math.floor(s + shiftS));
  const mode = modes[at]!;
  const within = s + shiftS - Math.floor(s + shiftS);
  level.effect = { ...HEALTHY_GPU };
  level.memoryMib = work.memoryMib;
  level.compute = level.useful = level.nvlinkPerS = level.nicPerS = 0;
  level.idle = 0.01;
  if (mode === "train" || mode === "evaluation") {
    const step = position[at + 1]! - position[at]!;
    let sync = 0;
    for (let part = 0; part < PARTS; part++) {
      const place = position[at]! + step * (within + part / PARTS);
      if (place - Math.floor(place) > 1 - SYNC) sync += 1 / PARTS;
    }
    const now = pace[at]!;
    const isTraining = mode === "train";
    const off = swing * (sync - SYNC);
    level.compute = work.compute * now * (1 - 0.8 * off) * (isTraining ? 1 : 0.8);
    level.useful = level.compute;
    level.nvlinkPerS = work.nvlinkPerS * now * (1 - 0.8 * off);
    level.nicPerS = work.nicPerS * now * (1 + 4 * off) * (isTraining ? 1 : 0.2);
  } else if (mode === "idle" || mode === "load") {
    level.idle = 1;
    // Idle GPUs save power on their links, too.
    level.effect = {
      ...HEALTHY_GPU,
      memory: mode === "idle" ? "freed" : "used",
      linkGen: mode === "idle" ? 1 : HEALTHY_GPU.linkGen,
    };
  }
  level.communicate = Math.max(0, 1 - level.compute - level.idle);
  level.offeredPerS = level.pciePerS = level.nicPerS;
}

/** The same of the machine. Whoever waits keeps its processes: CPUs stay busy while GPUs do nothing (Minder §2.3). */
export function nodeLevelAt(
  work: StageWork,
  { modes, pace }: JobClock,
  s: number,
  shiftS: number,
  effect: MachineEffect,
): void {
  const at = Math.min(modes.length - 1, Math.floor(s + shiftS));
  Object.assign(effect, HEALTHY_MACHINE);
  effect.memory = work.hostMemory;
  effect.cpu = work.cpu;
  switch (modes[at]!) {
    case "train":
    case "evaluation":
      effect.cpu *= 0.8 + 0.2 * pace[at]!;
      break;
    case "checkpoint":
      effect.cpu *= 1.15;
      effect.tcp = 30;
      effect.iowait = 0.01;
      break;
    case "wait":
      effect.cpu *= 0.95;
      effect.tcp = 0.8;
      break;
    case "load":
      effect.cpu *= 1.7;
      effect.tcp = 100;
      break;
    case "idle":
      effect.cpu = 0.05;
      effect.memory = 0.15;
      effect.tcp = 0.05;
      break;
  }
}
