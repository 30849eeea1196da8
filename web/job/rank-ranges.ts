import { ranges } from "../../src/base/text.ts";

/** As `ranges`, and "0, 8 … 56 (every 8)": members of a data-parallel group are that far apart. */
export function memberWords(ranks: readonly number[]): string {
  const few = ranks.slice(0, 20_000).toSorted((a, b) => a - b);
  const step = few.length > 3 ? few[1]! - few[0]! : 1;
  if (step > 1 && few.every((rank, at) => rank === few[0]! + at * step))
    return `${few[0]}, ${few[1]} … ${few.at(-1)} (every ${step})`;
  return ranges(few, 6);
}
