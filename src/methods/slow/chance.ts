/**
 * What leads do by chance, as the others' leads show it at the same moment. Only what grows counts: where one rank becomes slow, the
 * others' leads collapse.
 */
import type { Tails } from "../../maths/shift-odds.ts";

/** Healthy ranks of a role agree to so much of a block; that is worth so many observations. */
const USUAL_CHANCE = 0.02;
const USUAL_WORTH = 3;
/** Degrees of freedom: hiccups come to healthy ranks, too. (To ask the others how heavy the tails are made short records worse.) */
export const CHANCE_TAILS: Tails = [[4, 1]];

export interface Chance {
  readonly variance: number;
  /** Others that were seen. */
  readonly count: number;
}

/** By index: what all others show that are not left out. `usual`: the shift to expect before any other was seen; NaN: not known. */
export function chanceBeside(
  growths: Float64Array,
  isLeftOut: (index: number) => boolean,
  usual = USUAL_CHANCE,
): (index: number) => Chance {
  const squareOf = (index: number): number => Math.max(0, growths[index]!) ** 2;
  const isSeen = (index: number): boolean => !Number.isNaN(growths[index]!) && !isLeftOut(index);
  const seen = [...growths.keys()].filter(isSeen);
  const squares = seen.reduce((sum, index) => sum + squareOf(index), 0);
  return (index) => {
    const [own, square] = isSeen(index) ? [1, squareOf(index)] : [0, 0];
    const count = seen.length - own;
    const variance = (USUAL_WORTH * usual ** 2 + 2 * (squares - square)) / (USUAL_WORTH + count);
    return { variance, count };
  };
}

/**
 * Scale of chance for a shift with this error: what the others' shifts do has the usual noise in it already, as far as they are
 * many; `beside`: the growth of ranks that are slow by assumption, of which those beside them take a little part.
 */
export function scaleOf(
  { variance, count }: Chance,
  error: number,
  usualError: number,
  beside = 0,
): number {
  const known = count / (USUAL_WORTH + count);
  const own = Math.max(0, error ** 2 - known * Math.min(usualError ** 2, variance));
  return Math.sqrt(variance + beside ** 2 + own);
}
