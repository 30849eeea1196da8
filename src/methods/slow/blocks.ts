/**
 * Blocks of time in which ranks are compared: iterations that all of them have on record. Where operators do not repeat, or fewer
 * are on record, equal stretches of time: they cut iterations anywhere, so that of iterations even three tell more.
 */
import type { RankOperators } from "../../model/rank-operators.ts";
import { absoluteMs } from "./times.ts";

/** Fewer iterations show no level before and since. */
export const FEWEST_ITERATIONS = 3;
/** The first iterations of a job warm up. */
const WARM_UP_ITERATIONS = 2;
/** As many stretches of time, where iterations are not known. */
const STRETCHES = 24;
/** The latest iterations of a long record: what was slow further back is told by logs. */
const MOST_ITERATIONS = 512;
/** With a few damaged records left out, the others may share more: so many of the ranks at most. */
const MOST_LEFT_OUT = 0.25;
/** It pays to leave a rank out where the others then share twice as many iterations. */
const WORTH_LEAVING_OUT = 2;

export interface Blocks {
  readonly ranks: readonly RankOperators[];
  readonly numbers: Float64Array;
  readonly areIterations: boolean;
  /** By place and block, the operators of the block: from the first to the one behind the last, in the order of issue. */
  readonly from: Int32Array;
  readonly to: Int32Array;
  /** By place: where the blocks' iterations lie among the rank's own; empty for stretches of time. */
  readonly iterations: readonly Int32Array[];
  /** Milliseconds. */
  readonly lengthMs: Float64Array;
}

/** null where nothing can be compared. */
export function blocksOf(all: readonly RankOperators[], last = Infinity): Blocks | null {
  if (all.length < 2) return null;
  // Of a short record the first ones are better than none.
  for (let left = WARM_UP_ITERATIONS; left >= 0; left--) {
    const { ranks, numbers } = commonIterations(all, left, last);
    if (numbers.length >= FEWEST_ITERATIONS) return ofIterations(ranks, numbers);
  }
  return last < Infinity ? null : stretchesOf(all);
}

function commonIterations(
  all: readonly RankOperators[],
  leftOut: number,
  last: number,
): Pick<Blocks, "ranks" | "numbers"> {
  const held = new Map<number, number>();
  const sets = all.map(
    ({ iteration }) => new Set(iteration.filter((n) => n > leftOut && n <= last)),
  );
  for (const own of sets) for (const number of own) held.set(number, (held.get(number) ?? 0) + 1);
  const heldBy = (fewest: number): Float64Array =>
    Float64Array.from([...held].flatMap(([number, ranks]) => (ranks >= fewest ? [number] : [])))
      .sort()
      .slice(-MOST_ITERATIONS);
  const byAll = heldBy(all.length);
  const fewest = all.length - Math.floor(MOST_LEFT_OUT * all.length);
  const byMost = heldBy(fewest);
  const kept = all.filter((_, place) => byMost.every((number) => sets[place]!.has(number)));
  const isWorth = byMost.length >= WORTH_LEAVING_OUT * Math.max(1, byAll.length);
  return isWorth && kept.length >= fewest
    ? { ranks: kept, numbers: byMost }
    : { ranks: all, numbers: byAll };
}

function ofIterations(ranks: readonly RankOperators[], numbers: Float64Array): Blocks {
  const iterations = ranks.map(({ iteration }) => {
    const at = new Map(Array.from(iteration, (number, i) => [number, i]));
    return Int32Array.from(numbers, (number) => at.get(number)!);
  });
  const cut = (side: "from" | "to"): Int32Array =>
    Int32Array.from(
      ranks.flatMap((one, place) => Array.from(iterations[place]!, (i) => one[side][i]!)),
    );
  const lengthMs = Float64Array.from(numbers, (_, k) => {
    const lengths = Float64Array.from(ranks, (one, p) => one.durationMs[iterations[p]![k]!]!);
    return lengths.sort()[ranks.length >> 1]!;
  });
  return {
    ranks,
    numbers,
    areIterations: true,
    from: cut("from"),
    to: cut("to"),
    iterations,
    lengthMs,
  };
}

/** Of the time that all ranks have on record; null where there is none. */
function stretchesOf(ranks: readonly RankOperators[]): Blocks | null {
  if (ranks.some(({ ops }) => ops.count === 0)) return null;
  const fromMs = Math.max(...ranks.map((one) => absoluteMs(one, 0)));
  const toMs = Math.min(...ranks.map((one) => absoluteMs(one, one.ops.count - 1)));
  const lengthMs = (toMs - fromMs) / STRETCHES;
  if (!(lengthMs > 0)) return null;
  const numbers = Float64Array.from({ length: STRETCHES }, (_, k) => fromMs + k * lengthMs);
  const from = new Int32Array(ranks.length * STRETCHES);
  const to = new Int32Array(ranks.length * STRETCHES);
  for (const [place, one] of ranks.entries()) {
    let op = 0;
    for (const [k, begin] of numbers.entries()) {
      while (op < one.ops.count && absoluteMs(one, op) < begin) op++;
      from[place * STRETCHES + k] = op;
      while (op < one.ops.count && absoluteMs(one, op) < begin + lengthMs) op++;
      to[place * STRETCHES + k] = op;
    }
  }
  return {
    ranks,
    numbers,
    areIterations: false,
    from,
    to,
    iterations: ranks.map(() => new Int32Array(0)),
    lengthMs: new Float64Array(STRETCHES).fill(lengthMs),
  };
}
