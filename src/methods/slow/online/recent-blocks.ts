/** The last usable blocks, and what of them was learnt. */
import { Baseline } from "./baseline.ts";
import type { Kind } from "./kinds.ts";
import type { KeptBlock } from "./kept-block.ts";
import type { Block } from "./online-judge.ts";
import { type Window, Windows } from "./windows.ts";

/** More than the longest window. */
const MOST_RECENT = 64;
/** Blocks behind a window's first one, at the shortest: what is usual is learnt of blocks in front of it. */
const SHORTEST_WINDOW = 3;
/** The job has warmed up when so many blocks in a row have issued alike, or so many have passed. */
const WARM_BLOCKS = 8;
const WARM_FACTOR = 3;
const MOST_WARMING_BLOCKS = 80;

export class RecentBlocks {
  readonly #kinds: readonly Kind[];
  readonly #baselines: readonly Baseline[];
  readonly #windows: Windows;
  readonly #blocks: KeptBlock[] = [];
  #count = 0;
  /** The first block behind the warming up. */
  #warmFrom = Infinity;

  constructor(kinds: readonly Kind[]) {
    this.#kinds = kinds;
    this.#baselines = kinds.map(({ references }, kind) => new Baseline(references, kind));
    this.#windows = new Windows(kinds.map(({ references }) => references.count));
  }

  /** The newest last. */
  get blocks(): readonly KeptBlock[] {
    return this.#blocks;
  }

  get quiet(): readonly KeptBlock[] {
    return this.#baselines[0]!.blocks;
  }

  /** What was usual before the shortest window began, by kind; null while that is not known. */
  get usual(): KeptBlock["usual"] {
    return this.#blocks.at(-SHORTEST_WINDOW)?.usual ?? null;
  }

  /** False while the job warms up. */
  get isWarm(): boolean {
    return this.#warmFrom < Infinity;
  }

  /** For faults that may have begun so many blocks ago, and not before block `floor`. */
  windows(floor: number): Window[] {
    return this.#windows.since(this.#blocks, floor);
  }

  add(block: Block): KeptBlock {
    const kept: KeptBlock = {
      number: this.#count++,
      startMs: block.startMs,
      block,
      apart: this.#kinds.map(({ apart }) => apart(block)),
      pace: paceOf(block),
      isQuiet: false,
      isLearnt: false,
      isNamed: false,
      usual: null,
    };
    this.#blocks.push(kept);
    this.#windows.add(this.#blocks);
    if (this.#blocks.length > MOST_RECENT) this.#blocks.shift();
    if (!this.isWarm) this.#warm();
    if (this.isWarm) this.#learn();
    return kept;
  }

  /** The newest one was cut short. */
  dropLast(): void {
    const last = this.#blocks.at(-1);
    if (last === undefined || last.isLearnt) return;
    this.#blocks.pop();
    this.#windows.takeBack(this.#blocks);
  }

  /** From this block on there may be a fault: nothing of it is usual. */
  doubtFrom(number: number): void {
    for (const baseline of this.#baselines) baseline.forgetFrom(number);
    const onset = this.#blocks.find((block) => block.number >= number);
    for (const block of this.#blocks) {
      if (block.number < number) continue;
      block.isQuiet = block.isLearnt = false;
      if (onset !== undefined && block.usual !== null) block.usual = onset.usual;
    }
  }

  /** A fault that was named lasts. */
  nameFrom(number: number): void {
    this.doubtFrom(number);
    for (const block of this.#blocks) if (block.number >= number) block.isNamed = true;
  }

  /** Blocks from this one on are quiet after all, as far as no fault was named in them. */
  trustFrom(number: number): void {
    for (const block of this.#blocks)
      if (block.number >= Math.max(number, this.#warmFrom) && !block.isNamed) block.isQuiet = true;
  }

  /** No fault is left in blocks from this one on. */
  clearFrom(number: number): void {
    for (const block of this.#blocks) if (block.number >= number) block.isNamed = false;
    this.trustFrom(number);
  }

  /** Forgets what was usual: blocks from this one on are. */
  learnAnew(number: number): void {
    this.doubtFrom(-Infinity);
    this.#warmFrom = number;
    for (const block of this.#blocks) block.usual = null;
    this.clearFrom(number);
  }

  #warm(): void {
    const last = this.#blocks.slice(-WARM_BLOCKS);
    if (last.length < WARM_BLOCKS) return;
    const paces = last.map(({ pace }) => pace).toSorted((a, b) => a - b);
    const isEven = paces[WARM_BLOCKS - 2]! <= WARM_FACTOR * paces[1]!;
    if (!isEven && this.#count <= MOST_WARMING_BLOCKS) return;
    this.#warmFrom = last[0]!.number;
    for (const block of last) block.isQuiet = true;
  }

  #learn(): void {
    const old = this.#blocks.length - SHORTEST_WINDOW;
    for (let k = 0; k < old; k++) {
      const block = this.#blocks[k]!;
      if (!block.isQuiet || block.isLearnt) continue;
      for (const baseline of this.#baselines) baseline.learn(block);
      block.isLearnt = true;
    }
    if (old >= 0 && this.quiet.length > 0)
      this.#blocks[old]!.usual = this.#baselines.map((baseline) => baseline.usual());
  }
}

/** Operators that ended a millisecond, of a rank on average: CPUs issue an iteration's at once, ahead of their GPUs. */
function paceOf({ ended, lengthMs }: Block): number {
  let [sum, heard] = [0, 0];
  for (const many of ended) if (!Number.isNaN(many)) [sum, heard] = [sum + many, heard + 1];
  return sum / Math.max(1, heard) / lengthMs;
}
