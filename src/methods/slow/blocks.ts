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
  const { ranks, numbers } = commonIterations(all, last);
  if (last < Infinity && numbers.length < FEWEST_ITERATIONS) return null;
  return numbers.length < FEWEST_ITERATIONS ? stretchesOf(all) : ofIterations(ranks, numbers);
}

function commonIterations(
  all: readonly RankOperators[],
  last: number,
): {
  readonly ranks: readonly RankOperators[];
  readonly numbers: readonly number[];
} {
  const held = new Map<number, number>();
  const sets = all.map(({ iteration }) =>
    iteration.filter((n) => n > WARM_UP_ITERATIONS && n <= last),
  );
  for (const own of sets) for (const number of own) held.set(number, (held.get(number) ?? 0) + 1);
  const common = (count: number): number[] =>
    [...held].filter(([, n]) => n >= count).map(([number]) => number);
  const byAll = common(all.length);
  const most = Math.floor(MOST_LEFT_OUT * all.length);
  // Those that hold what nearly all hold.
  const nearly = common(all.length - most);
  if (most > 0 && nearly.length >= WORTH_LEAVING_OUT * Math.max(1, byAll.length)) {
    const wanted = new Set(nearly);
    const kept = all.filter((_, place) => {
      let own = 0;
      for (const number of sets[place]!) if (wanted.has(number)) own++;
      return own === wanted.size;
    });
    if (kept.length >= all.length - most) return { ranks: kept, numbers: ordered(nearly) };
  }
  return { ranks: all, numbers: ordered(byAll) };
}

function ordered(numbers: readonly number[]): number[] {
  return numbers.toSorted((a, b) => a - b).slice(-MOST_ITERATIONS);
}

function ofIterations(ranks: readonly RankOperators[], numbers: readonly number[]): Blocks {
  const blocks = numbers.length;
  const from = new Int32Array(ranks.length * blocks);
  const to = new Int32Array(ranks.length * blocks);
  const iterations = ranks.map((one, place) => {
    const at = new Map(Array.from(one.iteration, (number, i) => [number, i]));
    return Int32Array.from(numbers, (number, k) => {
      const i = at.get(number)!;
      from[place * blocks + k] = one.from[i]!;
      to[place * blocks + k] = one.to[i]!;
      return i;
    });
  });
  const lengths = new Float64Array(ranks.length);
  const lengthMs = Float64Array.from(numbers, (_, k) => {
    for (const [place, one] of ranks.entries())
      lengths[place] = one.durationMs[iterations[place]![k]!]!;
    return lengths.toSorted()[ranks.length >> 1]!;
  });
  return {
    ranks,
    numbers: Float64Array.from(numbers),
    areIterations: true,
    from,
    to,
    iterations,
    lengthMs,
  };
}

/** Of the time that all ranks have on record; null where there is none. */
function stretchesOf(ranks: readonly RankOperators[]): Blocks | null {
  let [fromMs, toMs] = [-Infinity, Infinity];
  for (const one of ranks) {
    if (one.ops.count === 0) return null;
    fromMs = Math.max(fromMs, absoluteMs(one, 0));
    toMs = Math.min(toMs, absoluteMs(one, one.ops.count - 1));
  }
  const lengthMs = (toMs - fromMs) / STRETCHES;
  if (!(lengthMs > 0)) return null;
  const from = new Int32Array(ranks.length * STRETCHES);
  const to = new Int32Array(ranks.length * STRETCHES);
  for (const [place, one] of ranks.entries()) {
    let op = 0;
    for (let k = 0; k < STRETCHES; k++) {
      const begin = fromMs + k * lengthMs;
      while (op < one.ops.count && absoluteMs(one, op) < begin) op++;
      from[place * STRETCHES + k] = op;
      while (op < one.ops.count && absoluteMs(one, op) < begin + lengthMs) op++;
      to[place * STRETCHES + k] = op;
    }
  }
  return {
    ranks,
    numbers: Float64Array.from({ length: STRETCHES }, (_, k) => fromMs + k * lengthMs),
    areIterations: false,
    from,
    to,
    iterations: ranks.map(() => new Int32Array(0)),
    lengthMs: new Float64Array(STRETCHES).fill(lengthMs),
  };
}
