/** Is a fault over? What showed it, block by block, under both levels: the usual one, and that of the fault. */
import { logStudent } from "../../../maths/shift-odds.ts";
import { median, spread } from "../../../maths/robust.ts";

/** A fault ends once in so long. */
const LASTS_MS = 60_000;
/** An end is seen in so many blocks, and in the last so many. */
const FEWEST_BLOCKS = 3;
const MOST_BLOCKS = 20;
/** No block says more than so much. */
const MOST_LOG = 5;
const DEGREES = 4;
/** Of a fault's level, how much it changes by itself. */
const UNSTEADY = 0.15;
/** The fault's level is that of its last blocks. */
const LEVEL_BLOCKS = 40;

/**
 * `values`: since the fault began, what showed it less what is usual; `sigma`: how much that does by chance, `inflation`: how
 * alike neighbours are. How many blocks ago it ended; null where it lasts.
 */
export function endedBlocksAgo(
  values: readonly number[],
  sigma: number,
  inflation: number,
  blockMs: number,
): number | null {
  const then = values.slice(0, Math.max(FEWEST_BLOCKS, values.length - FEWEST_BLOCKS));
  const level = median(then.slice(-LEVEL_BLOCKS));
  const sigmaThen = Math.max(sigma, UNSTEADY * level, spread(then.slice(-LEVEL_BLOCKS), level));
  let log = 0;
  let best = -Infinity;
  let ago = 0;
  const many = Math.min(MOST_BLOCKS, values.length - 2);
  for (let n = 1; n <= many; n++) {
    const value = values[values.length - n]!;
    const over = logStudent(Math.max(0, value), sigma, DEGREES);
    const on = logStudent(Math.min(0, value - level), sigmaThen, DEGREES);
    log += Math.max(-MOST_LOG, Math.min(MOST_LOG, over - on)) / inflation;
    if (n >= FEWEST_BLOCKS && log > best) [best, ago] = [log, n];
  }
  const odds = best + Math.log(Math.min(1, blockMs / LASTS_MS));
  return odds > Math.log(9) ? ago : null;
}
