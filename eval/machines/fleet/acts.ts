/** What happens to single machines of a task: faults, jitters, checkpoint writers. Plain data, applied to levels. */
import type { GpuEffect, MachineEffect } from "../../../src/simulate/emit/metrics/effects.ts";
import type { GpuSight, NodeFamily } from "../../../src/simulate/emit/metrics/families.ts";
import type { GpuLevel } from "../../../src/simulate/emit/metrics/levels.ts";

/** On GPUs and NICs. Factors multiply; what is not given stays as it is. */
export interface GpuChange {
  /** Share of the time with nothing to do, on top of what there is. */
  readonly idle?: number;
  /** Hot, with its clock divided by this; its kernels take so many times as long. */
  readonly throttle?: number;
  /** The same without heat. */
  readonly slowClock?: number;
  readonly memory?: GpuEffect["memory"];
  /** Samples of the card vanish. */
  readonly isGone?: boolean;
  readonly xid?: number;
  readonly linkGen?: number;
  readonly linkWidth?: number;
  readonly isLinkDown?: boolean;
  readonly traffic?: number;
  readonly pfc?: number;
  readonly congestion?: number;
}

/** On the machine: factors, and shares or bytes that are added. */
export interface NodeChange {
  readonly cpu?: number;
  readonly contention?: number;
  readonly iowait?: number;
  readonly memory?: number;
  readonly tcp?: number;
  readonly diskBytes?: number;
}

export interface Act {
  readonly machine: number;
  /** Which of its GPUs or NICs; null for all. */
  readonly gpus: readonly number[] | null;
  readonly fromS: number;
  readonly untilS: number;
  /** How long it takes to be there in full; 0: at once. */
  readonly rampS: number;
  readonly gpu: GpuChange | null;
  readonly node: NodeChange | null;
  /** The machine does not answer any more. */
  readonly isDead: boolean;
}

export function act(given: Partial<Act> & Pick<Act, "machine" | "fromS" | "untilS">): Act {
  return { gpus: null, rampS: 0, gpu: null, node: null, isDead: false, ...given };
}

/** 0 outside, 1 in full. */
export function weightAt({ fromS, untilS, rampS }: Act, timeS: number): number {
  if (timeS < fromS || timeS >= untilS) return 0;
  return rampS <= 0 ? 1 : Math.min(1, (timeS - fromS) / rampS);
}

const SIGHTS: Readonly<Record<GpuSight, readonly (keyof GpuChange)[]>> = {
  activity: ["idle", "throttle", "slowClock", "isGone"],
  memory: ["memory", "isGone"],
  state: ["xid", "linkGen", "linkWidth", "throttle", "isLinkDown", "isGone"],
  traffic: ["traffic", "isLinkDown"],
  pfc: ["pfc", "isLinkDown"],
  congestion: ["congestion", "isLinkDown"],
};

/** Whether a family's series of that GPU is touched: all others can be taken from the healthy ones. */
export function touchesGpu({ gpus, gpu, isDead }: Act, sees: GpuSight, device: number): boolean {
  if (isDead) return true;
  if (gpu === null || (gpus !== null && !gpus.includes(device))) return false;
  return SIGHTS[sees].some((key) => gpu[key] !== undefined);
}

export function touchesNode({ node, isDead }: Act, { sees }: NodeFamily): boolean {
  if (isDead) return true;
  if (node === null || sees === "") return false;
  if (sees === "cpu")
    return node.cpu !== undefined || node.contention !== undefined || node.iowait !== undefined;
  return node[sees] !== undefined;
}

export function applyToGpu(change: GpuChange, weight: number, level: GpuLevel): void {
  const effect = level.effect as GpuEffect;
  if (change.idle !== undefined) {
    const left = 1 - change.idle * weight;
    level.compute *= left;
    level.communicate *= left;
    level.useful *= left;
    level.idle = 1 - level.compute - level.communicate;
    level.nvlinkPerS *= left;
    level.pciePerS *= left;
  }
  if (change.throttle !== undefined) {
    effect.throttled = true;
    effect.slow *= change.throttle ** weight;
    stretch(level, change.throttle ** weight);
  }
  if (change.slowClock !== undefined) {
    effect.slowClock *= change.slowClock ** weight;
    stretch(level, change.slowClock ** weight);
  }
  if (change.traffic !== undefined) level.nicPerS *= 1 + (change.traffic - 1) * weight;
  if (change.pfc !== undefined) effect.pfc *= change.pfc ** weight;
  if (change.congestion !== undefined) effect.congestion *= change.congestion ** weight;
  if (change.memory !== undefined) effect.memory = change.memory;
  if (change.xid !== undefined) effect.xid = change.xid;
  if (change.linkGen !== undefined) effect.linkGen = change.linkGen;
  if (change.linkWidth !== undefined) effect.linkWidth = change.linkWidth;
  effect.linkDown ||= change.isLinkDown === true;
  effect.gone ||= change.isGone === true;
}

/** The same work in more time: less of it is left to wait for the others. */
function stretch(level: GpuLevel, factor: number): void {
  level.compute = Math.min(0.97, level.compute * factor);
  level.communicate = Math.max(0, 1 - level.compute - level.idle);
}

export function applyToNode(change: NodeChange, weight: number, effect: MachineEffect): void {
  const toward = (factor: number): number => 1 + (factor - 1) * weight;
  if (change.cpu !== undefined) effect.cpu *= toward(change.cpu);
  if (change.contention !== undefined) effect.contention += change.contention * weight;
  if (change.iowait !== undefined) effect.iowait += change.iowait * weight;
  if (change.memory !== undefined) effect.memory *= toward(change.memory);
  if (change.tcp !== undefined) effect.tcp *= toward(change.tcp);
  if (change.diskBytes !== undefined) effect.diskBytes += change.diskBytes * weight;
}
