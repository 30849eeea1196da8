/**
 * Slow now and then: single blocks in which a rank leads everybody it is compared with by far more than usual. Hiccups come to ranks
 * at random; a fault comes back to one.
 */
import { logCountOdds } from "../../../maths/shift-odds.ts";
import type { Usual } from "./baseline.ts";
import type { Known } from "./hypotheses.ts";
import type { References } from "./references.ts";

/** A spike: so much of a block, and so many deviations. */
const SPIKE = 0.2;
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
/** Over when none came for so many usual intervals, and so many blocks at least. */
const SILENT_INTERVALS = 5;
const SILENT_BLOCKS = 10;

interface Spiking {
  readonly number: number;
  readonly places: ReadonlySet<number>;
}

export interface SpikeEvidence {
  /** Log odds; only of places that spiked. */
  readonly log: ReadonlyMap<number, number>;
  /** Number of the block with the first of those spikes. */
  readonly since: ReadonlyMap<number, number>;
}

export class Spikes {
  readonly #references: References;
  readonly #ranks: number;
  /** What is older than the last blocks, and fades: blocks of single ranks, and spikes in them that were no fault's. */
  #pastBlocks = 0;
  #pastSpikes = 0;
  /** The last usable blocks, oldest first. */
  readonly #blocks: Spiking[] = [];

  constructor(references: References) {
    this.#references = references;
    this.#ranks = references.first.length - 1;
  }

  add(number: number, apart: Float32Array, usual: Usual, known: Known): void {
    const places = new Set<number>();
    const { first } = this.#references;
    for (let place = 0; place + 1 < first.length; place++)
      if (isSpike(apart, usual, first[place]!, first[place + 1]!)) places.add(place);
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

  /** Log of how probable it is that hiccups alone hold up a rank for so many blocks in a row. */
  logHiccups(blocks: number, known: Known): number {
    const seen = Math.max(0, this.#blocks.length - GUARD_BLOCKS);
    let spikes = 0.5 + this.#pastSpikes;
    for (let k = 0; k < seen; k++) spikes += this.#begun(k, known).length;
    const rate = spikes / (UNSEEN_BLOCKS + this.#pastBlocks + seen * this.#ranks);
    return Math.ceil(blocks / HICCUP_BLOCKS) * Math.log(rate);
  }

  weigh(known: Known): SpikeEvidence {
    const log = new Map<number, number>();
    const since = new Map<number, number>();
    const begun = this.#blocks.map((_, k) => this.#begun(k, known));
    for (const span of SPANS) {
      const from = Math.max(0, begun.length - span);
      const counts = new Map<number, number>();
      const firsts = new Map<number, number>();
      let [total, older] = [0, 0];
      for (const [k, places] of begun.entries())
        for (const place of places) {
          if (k < from) {
            older++;
            continue;
          }
          counts.set(place, (counts.get(place) ?? 0) + 1);
          if (!firsts.has(place)) firsts.set(place, this.#blocks[k]!.number);
          total++;
        }
      const blocks = begun.length - from;
      // All that others showed in this span, and everybody before it, in ranks over so many blocks.
      const shown = this.#ranks - 1 + (from * this.#ranks + this.#pastBlocks) / blocks;
      for (const [place, count] of counts) {
        const others = total - count + older + this.#pastSpikes;
        const odds = logCountOdds(count, others, shown, SPIKES_USUAL * blocks);
        if (odds <= (log.get(place) ?? -Infinity)) continue;
        log.set(place, odds);
        since.set(place, firsts.get(place)!);
      }
      if (from === 0) break;
    }
    return { log, since };
  }

  /** Whose spikes begin with a block; blocks in a row are one spike: what lasts is another question. Those of known faults are left out. */
  #begun(k: number, { named, floorOf }: Known): readonly number[] {
    const { number, places } = this.#blocks[k]!;
    const before = this.#blocks[k - 1]?.places;
    return [...places].filter(
      (place) => !before?.has(place) && !named.includes(place) && number >= floorOf(place),
    );
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

function isSpike(apart: Float32Array, usual: Usual, from: number, to: number): boolean {
  let isKnown = false;
  for (let s = from; s < to; s++) {
    const beyond = apart[s]! - usual.level[s]!;
    if (Number.isNaN(beyond)) continue;
    if (!(beyond > Math.max(SPIKE, SPIKE_SIGMAS * usual.sigma[s]!))) return false;
    isKnown = true;
  }
  return isKnown;
}
