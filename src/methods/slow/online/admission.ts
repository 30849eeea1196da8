/** Which blocks the judge may compare: not those in which the job stands, nor those in which hardly anybody was heard of. */
import type { Block } from "./online-judge.ts";

/** Without any operator's end for so long the job stands: no rank is slow, it hangs. */
const STANDS_MS = 3000;
/** Long iterations have long silences: so many times the usual one, and the usual iteration. */
const SILENT_FACTOR = 3;
const REMEMBERED = 64;
/** Silences that come back within so many blocks are no stand-stills: somebody is slow. */
const COMES_BACK = 8;
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
  readonly #lengths: number[] = [];
  #sinceSilent = Infinity;

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

  /** It stood still in this one, for once. */
  #isSilent({ silentMs, lengthMs }: Block): boolean {
    const usualMs = Math.max(usualOf(this.#silences, silentMs), usualOf(this.#lengths, lengthMs));
    const isSilent = silentMs > Math.max(STANDS_MS, SILENT_FACTOR * usualMs);
    const comesBack = this.#sinceSilent < COMES_BACK;
    this.#sinceSilent = isSilent ? 0 : this.#sinceSilent + 1;
    return isSilent && !comesBack;
  }
}

/** The median of those before, which it joins; Infinity of the first. */
function usualOf(last: number[], value: number): number {
  const sorted = last.toSorted((a, b) => a - b);
  last.push(value);
  if (last.length > REMEMBERED) last.shift();
  return sorted[sorted.length >> 1] ?? Infinity;
}

function goesOn({ ended, issued }: Block): boolean {
  return ended.some((many) => many > 0) && issued.some((many) => many > 0);
}

function isHeard({ inside }: Block): boolean {
  let heard = 0;
  for (const share of inside) if (!Number.isNaN(share)) heard++;
  return heard > FEWEST_HEARD * inside.length;
}
