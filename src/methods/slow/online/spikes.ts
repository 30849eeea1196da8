/**
 * Slow now and then: single blocks in which a rank, or a wire, is far from everybody it is compared with. Hiccups come to ranks at
 * random; a fault comes back to one.
 */
import { logCountOdds } from "../../../maths/shift-odds.ts";
import { getOrInsert } from "../../../base/group-by.ts";
import type { Usual } from "./baseline.ts";
import type { Known } from "./hypotheses.ts";
import type { KeptBlock } from "./kept-block.ts";
import type { Kind } from "./kinds.ts";

/** A spike is far away by so many deviations, too. */
const SPIKE_SIGMAS = 6;
/** In what share of the blocks a rank that has spikes has them. */
const SPIKES_USUAL = 0.15;
/** Blocks over which they are counted: from eight seconds to two minutes of half seconds. */
const SPANS = [15, 30, 60, 120, 240];
const LONGEST_SPAN = SPANS.at(-1)!;
/** How often spikes come by chance is remembered over so many blocks: twenty minutes of half seconds. */
const REMEMBERED_BLOCKS = 2400;
/** Before anything was seen: half a spike in so many blocks of single ranks. And the last blocks may be a fault's. */
const UNSEEN_BLOCKS = 2000;
const GUARD_BLOCKS = 10;
/** A hiccup falls into so many blocks in a row. */
const HICCUP_BLOCKS = 2;
/** Operators end so much more seldom in a block that a wire makes longer. */
const SLOWER = 0.9;
/** Wires of which so large a part of the spikes comes in the same blocks have one reason. */
const TOGETHER = 0.5;
/** Over when none came for so many usual intervals, and so many blocks at least. */
const SILENT_INTERVALS = 5;
const SILENT_BLOCKS = 10;

export type LogHiccups = (blocks: number, ranks: number) => number;

interface Spiking {
  readonly number: number;
  readonly places: Set<number>;
}

export interface SpikeEvidence {
  readonly place: number;
  /** Wires that spike with it. */
  readonly beside: readonly number[];
  readonly log: number;
  /** Number of the block with the first of those spikes. */
  readonly since: number;
}

export class Spikes {
  readonly #kind: Kind;
  readonly #ranks: number;
  /** What is older than the last blocks, and fades: blocks of single ranks, and spikes in them that were no fault's. */
  #pastBlocks = 0;
  #pastSpikes = 0;
  /** The last usable blocks, oldest first. */
  readonly #blocks: Spiking[] = [];

  constructor(kind: Kind) {
    this.#kind = kind;
    this.#ranks = kind.references.first.length - 1;
  }

  add({ number, pace }: KeptBlock, apart: Float32Array, usual: Usual, known: Known): void {
    const places = new Set<number>();
    const { type, spike, references } = this.#kind;
    const { first } = references;
    // Sends that take longer for once, and hold nobody up, are nobody's reason.
    const isFelt = type === "rank" || pace < SLOWER * usual.pace;
    for (let place = 0; isFelt && place + 1 < first.length; place++)
      if (isSpike(apart, usual, spike, first[place]!, first[place + 1]!)) places.add(place);
    this.#blocks.push({ number, places });
    if (this.#blocks.length <= LONGEST_SPAN) return;
    const faded = 1 - 1 / REMEMBERED_BLOCKS;
    this.#pastBlocks = faded * this.#pastBlocks + this.#ranks;
    this.#pastSpikes = faded * this.#pastSpikes + this.#begun(1, known).length;
    this.#blocks.shift();
  }

  /** Whether some rank spiked in the last block. */
  get isNew(): boolean {
    return (this.#blocks.at(-1)?.places.size ?? 0) > 0;
  }

  /** Log of how probable it is that hiccups alone hold up a rank, or one of some, for so many blocks in a row. */
  hiccups(known: Known): LogHiccups {
    const seen = Math.max(0, this.#blocks.length - GUARD_BLOCKS);
    let spikes = 0.5 + this.#pastSpikes;
    for (let k = 0; k < seen; k++) spikes += this.#begun(k, known).length;
    const rate = spikes / (UNSEEN_BLOCKS + this.#pastBlocks + seen * this.#ranks);
    return (blocks, ranks) =>
      Math.ceil(blocks / HICCUP_BLOCKS) * Math.log(Math.min(1, ranks * rate));
  }

  /** Of those that spiked. */
  weigh(known: Known): SpikeEvidence[] {
    const best = new Map<number, SpikeEvidence>();
    const begun = this.#blocks.map((_, k) => this.#begun(k, known));
    for (const span of SPANS) {
      const from = Math.max(0, begun.length - span);
      /** By place: the blocks with which its spikes begin. */
      const runs = new Map<number, number[]>();
      let [total, older] = [0, 0];
      for (const [k, places] of begun.entries())
        for (const place of places) {
          if (k < from) {
            older++;
            continue;
          }
          getOrInsert(runs, place, () => []).push(k);
          total++;
        }
      const blocks = begun.length - from;
      for (const [place, own] of runs) {
        const beside = this.#kind.type === "wire" ? besides(place, own, runs) : [];
        const together = beside.reduce((sum, other) => sum + runs.get(other)!.length, own.length);
        // All that others showed in this span, and everybody before it, in ranks over so many blocks.
        const others = this.#ranks - 1 - beside.length;
        const shown = Math.max(1, others) + (from * this.#ranks + this.#pastBlocks) / blocks;
        const seen = total - together + older + this.#pastSpikes;
        const log = logCountOdds(own.length, seen, shown, SPIKES_USUAL * blocks);
        if (log <= (best.get(place)?.log ?? -Infinity)) continue;
        best.set(place, { place, beside, log, since: this.#blocks[own[0]!]!.number });
      }
      if (from === 0) break;
    }
    return [...best.values()];
  }

  /** Whose spikes begin with a block; blocks in a row are one spike: what lasts is another question. Those of known faults are left out. */
  #begun(k: number, { named, spikesSince }: Known): readonly number[] {
    const { number, places } = this.#blocks[k]!;
    const before = this.#blocks[k - 1]?.places;
    return [...places].filter(
      (place) => !before?.has(place) && !named.includes(place) && number >= spikesSince(place),
    );
  }

  /** A stretch in which it was slow all the time is one spike. */
  join(place: number, from: number, to: number): void {
    let isFirst = true;
    for (const { number, places } of this.#blocks)
      if (number >= from && number < to && places.has(place)) {
        if (!isFirst) places.delete(place);
        isFirst = false;
      }
  }

  /** Numbers of the blocks in which it spiked. */
  blocksOf(place: number): ReadonlySet<number> {
    const own = this.#blocks.filter(({ places }) => places.has(place));
    return new Set(own.map(({ number }) => number));
  }

  /** Whether the rank's spikes have ended, and behind which block. */
  endOf(place: number, since: number): { readonly isOver: boolean; readonly number: number } {
    let last = since;
    let runs = 0;
    for (const [k, { number, places }] of this.#blocks.entries()) {
      if (number < since || !places.has(place)) continue;
      if (k === 0 || !this.#blocks[k - 1]!.places.has(place)) runs++;
      last = number;
    }
    const interval = (last - since) / Math.max(1, runs - 1);
    const silent = (this.#blocks.at(-1)?.number ?? last) - last;
    const isOver = silent > Math.max(SILENT_BLOCKS, SILENT_INTERVALS * interval);
    return { isOver, number: last + 1 };
  }
}

/** Whose spikes come with those of a place, or hold them. */
function besides(
  place: number,
  own: readonly number[],
  runs: ReadonlyMap<number, readonly number[]>,
): number[] {
  return [...runs.keys()].filter((other) => {
    const theirs = runs.get(other)!;
    const common = theirs.filter((k) => own.includes(k)).length;
    return other !== place && common > TOGETHER * Math.max(own.length, theirs.length);
  });
}

function isSpike(
  apart: Float32Array,
  usual: Usual,
  spike: number,
  from: number,
  to: number,
): boolean {
  let isKnown = false;
  for (let s = from; s < to; s++) {
    const beyond = apart[s]! - usual.level[s]!;
    if (Number.isNaN(beyond)) continue;
    if (!(beyond > Math.max(spike, SPIKE_SIGMAS * usual.sigma[s]!))) return false;
    isKnown = true;
  }
  return isKnown;
}
