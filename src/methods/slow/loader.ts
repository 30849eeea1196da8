/**
 * Whether a slow CPU is held up by its data: a loader delays a few places of an iteration, the first call of each micro-batch, and
 * always the first of all; Python that is slow delays all calls a little, a garbage collector others each time.
 */
import { median } from "../../maths/robust.ts";
import type { RankOperators } from "../../model/rank-operators.ts";
import { type Account, growthAt, row } from "./account.ts";

/** The places that hold most of the delay: so much of it, at so many of all places. */
const MOST_OF_DELAY = 0.8;
const FEW_PLACES = 0.12;
/** With fewer calls in an iteration everything is at few places. */
const FEWEST_PLACES = 20;
/** Iterations that show what is usual at a place. */
const FEWEST_ITERATIONS = 3;
/** Delays that explain less of the lead are not its reason. */
const EXPLAINS = 0.5;
/** From the first place to the last, of an iteration: micro-batches are spread over it, what one pass does lies close together. */
const ALL_OVER = 0.5;

/** Of a rank that was slow from the start nothing is known to be usual, and its peers' pauses are their own. */
export function isHeldUpByData(
  account: Account,
  own: RankOperators,
  place: number,
  moment: number,
  lead: number,
): boolean {
  if (moment === 0) return false;
  const now = pauses(account, own, (k) => k >= moment);
  const usual = pauses(account, own, (k) => k < moment);
  if (!now || !usual || now.length !== usual.length || now.length < FEWEST_PLACES) return false;
  const delays = now.map((ms, k) => ({ k, ms: Math.max(0, ms - usual[k]!) }));
  // In front of the first call lies the end of the iteration before, too: how late that call is, its peers tell.
  const late = growthAt(row(account.calls.firstBehind, place, account.blocks), moment);
  delays[0] = { k: 0, ms: Math.max(0, late * account.unitMs || 0) };
  delays.sort((a, b) => b.ms - a.ms);
  const total = delays.reduce((sum, { ms }) => sum + ms, 0);
  if (!(total >= EXPLAINS * lead * account.unitMs)) return false;
  const at: number[] = [];
  for (let sum = 0; sum < MOST_OF_DELAY * total; at.push(delays[at.length]!.k))
    sum += delays[at.length]!.ms;
  if (at.length > Math.max(1, FEW_PLACES * now.length)) return false;
  const span = (Math.max(...at) - Math.min(...at)) / now.length;
  return at.includes(0) || (at.length > 1 && span >= (ALL_OVER * (at.length - 1)) / at.length);
}

/** Milliseconds in front of each call of an iteration, usually; null where iterations differ or are too few. */
function pauses(
  { numbers, areIterations }: Account,
  { iteration, from, to, ops }: RankOperators,
  isWanted: (block: number) => boolean,
): number[] | null {
  const wanted = new Set(numbers.filter((_, k) => isWanted(k)));
  const places = [...iteration.keys()].filter((i) => wanted.has(iteration[i]!));
  const last = places.at(-1);
  if (!areIterations || last === undefined) return null;
  const length = to[last]! - from[last]!;
  const same = places.filter((i) => from[i]! > 0 && to[i] === from[i]! + length);
  if (same.length < FEWEST_ITERATIONS) return null;
  return Array.from({ length }, (_, k) =>
    median(
      same.map((i) => (ops.createdNs[from[i]! + k]! - ops.createdNs[from[i]! + k - 1]!) / 1e6),
    ),
  );
}
