/** Blocks of a job whose ranks go in step: whoever takes longer for its own work makes everybody's iterations longer. */
import { seeded } from "../../../src/base/random.ts";
import type { Block } from "../../../src/methods/slow/online/online-judge.ts";
import type { LiveCulprit, LiveJudgement } from "../../../src/model/live-judgement.ts";

export interface MadeFault {
  /** Whose own work takes longer; or over whose wire iterations become longer. */
  readonly places: readonly number[];
  /** Blocks. */
  readonly from: number;
  readonly to: number;
  /** What it adds to an iteration, in parts of a healthy one. */
  readonly adds: number;
  readonly what: "gpu" | "cpu" | "wire" | "pace";
  /** Only in every so many-th block. */
  readonly every?: number;
}

export interface MadeJob {
  readonly ranks: number;
  readonly blocks: number;
  readonly seed: number;
  readonly faults?: readonly MadeFault[];
  /** Deviation of a rank's own work from block to block, parts of an iteration. */
  readonly noise?: number;
  /** Whether a place is heard of in a block. */
  readonly isHeard?: (place: number, block: number) => boolean;
}

export const BLOCK_MS = 500;
const ITERATION_MS = 100;
const CALLS = 20;
/** Of a healthy iteration. */
const GPU = 0.4;
const LATE = 0.1;

export function madeBlocks(job: MadeJob): Block[] {
  const { ranks, blocks, seed, faults = [], noise = 0.02, isHeard = () => true } = job;
  const random = seeded(seed);
  const normal = (): number => random() + random() + random() + random() - 2;
  return Array.from({ length: blocks }, (_, k) => {
    const gpu = Array.from({ length: ranks }, () => GPU + noise * normal());
    const late = Array.from({ length: ranks }, () => LATE + (noise / 4) * normal());
    const wire = Array.from({ length: ranks }, () => 0.05 + 0.02 * random());
    let longer = 0;
    for (const { places, from, to, adds, what, every = 1 } of faults) {
      if (k < from || k >= to || (k - from) % every !== 0) continue;
      for (const place of places) {
        if (what === "gpu") gpu[place]! += adds;
        else if (what === "cpu") late[place]! += adds;
        else if (what === "wire") wire[place]! += adds;
      }
      if (what === "wire" || what === "pace") longer += adds;
    }
    const own = gpu.map((share, place) => share + late[place]!);
    const length = Math.max(0.5, ...own) + 0.3 + longer;
    const column = (of: (place: number) => number): Float32Array =>
      Float32Array.from({ length: ranks }, (_one, place) => (isHeard(place, k) ? of(place) : NaN));
    const calls = column(() => Math.round((CALLS * BLOCK_MS) / (ITERATION_MS * length)));
    return {
      startMs: 1.7e12 + k * BLOCK_MS,
      lengthMs: BLOCK_MS,
      silentMs: 0,
      iterations: BLOCK_MS / (ITERATION_MS * length),
      iterationMs: ITERATION_MS * length,
      inside: column((place) => 1 - own[place]! / length),
      late: column((place) => late[place]! / length),
      gpu: column((place) => gpu[place]! / length),
      onWire: column((place) => wire[place]! / length),
      issued: calls,
      ended: calls,
      wireMs: new Float32Array(0),
      wireCount: new Float32Array(0),
    };
  });
}

/** Somebody who was named: in which block first, and in which it was said to be over. */
export interface NamedOnce {
  readonly block: number;
  last: LiveCulprit;
  over: number | null;
  why: LiveJudgement["ended"][number]["why"] | null;
}

export function namedIn(
  step: (block: Block) => LiveJudgement,
  blocks: readonly Block[],
): NamedOnce[] {
  const named = new Map<number, NamedOnce>();
  for (const [k, block] of blocks.entries()) {
    const { culprits, ended } = step(block);
    for (const culprit of culprits) {
      const known = named.get(culprit.id);
      if (known) known.last = culprit;
      else named.set(culprit.id, { block: k, last: culprit, over: null, why: null });
    }
    for (const { id, why } of ended) Object.assign(named.get(id)!, { over: k, why });
  }
  return [...named.values()];
}
