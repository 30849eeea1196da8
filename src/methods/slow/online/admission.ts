/** Which blocks the judge may compare: not those in which the job stands, nor those in which hardly anybody was heard of. */
import type { Block } from "./online-judge.ts";

/** Without any operator's end for so long the job stands: no rank is slow, it hangs. */
const STANDS_MS = 3000;
/** Long blocks have long silences: so many times the usual one. */
const SILENT_FACTOR = 3;
const REMEMBERED = 64;
/** Of the ranks. */
const FEWEST_HEARD = 1 / 2;

export interface Admitted {
  readonly blocks: readonly Block[];
  /** The job stands, or did until this block: the block in front of that was cut short, too. */
  readonly isStanding: boolean;
  readonly stood: boolean;
}

export class Admission {
  /** Blocks in which nothing ended: they count once the job goes on, unless they are many. */
  #pending: Block[] = [];
  #isStanding = false;
  readonly #silences: number[] = [];

  take(block: Block): Admitted {
    if (!goesOn(block)) {
      this.#pending.push(block);
      const ms = this.#pending.reduce((sum, { lengthMs }) => sum + lengthMs, 0);
      if (ms < STANDS_MS && !this.#isStanding)
        return { blocks: [], isStanding: false, stood: false };
      const stood = !this.#isStanding;
      this.#isStanding = true;
      this.#pending = [];
      return { blocks: [], isStanding: true, stood };
    }
    // It goes on in the middle of this one.
    if (this.#isStanding || this.#isSilent(block)) {
      this.#isStanding = false;
      return { blocks: [], isStanding: false, stood: false };
    }
    const blocks = [...this.#pending, block].filter(isHeard);
    this.#pending = [];
    return { blocks, isStanding: false, stood: false };
  }

  #isSilent({ silentMs }: Block): boolean {
    const sorted = this.#silences.toSorted((a, b) => a - b);
    const usual = sorted[sorted.length >> 1] ?? Infinity;
    this.#silences.push(silentMs);
    if (this.#silences.length > REMEMBERED) this.#silences.shift();
    return silentMs > Math.max(STANDS_MS, SILENT_FACTOR * usual);
  }
}

function goesOn({ ended, issued }: Block): boolean {
  return ended.some((many) => many > 0) && issued.some((many) => many > 0);
}

function isHeard({ inside }: Block): boolean {
  let heard = 0;
  for (const share of inside) if (!Number.isNaN(share)) heard++;
  return heard > FEWEST_HEARD * inside.length;
}
