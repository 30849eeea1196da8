/**
 * The simplest script that could answer: whoever makes the others wait waits least itself. Adds up how long each rank's
 * operators took in the second half of its dump and names the rank with the least, if it is far below the usual. No
 * method of ours may do worse on slow and healthy jobs. Transfers count as well: with collectives alone it would name the stage
 * of a pipeline that has fewest of them.
 */
import { median } from "../../src/maths/robust.ts";
import type { RankDump } from "../../src/model/job.ts";

const FAR_BELOW = 0.9;

/** The slow rank, or nobody; null where the dumps hold no durations. */
export function tenLines(dumps: Iterable<RankDump>): number[] | null {
  const tookMs = [...dumps].flatMap(({ rank, dump: { ops } }) => {
    let sum = 0;
    for (let i = ops.count >> 1; i < ops.count; i++)
      if (ops.durationMs[i]! > 0) sum += ops.durationMs[i]!;
    return sum > 0 ? [{ rank, sum }] : [];
  });
  if (tookMs.length < 2) return null;
  const least = tookMs.reduce((a, b) => (b.sum < a.sum ? b : a));
  return least.sum < FAR_BELOW * median(tookMs.map(({ sum }) => sum)) ? [least.rank] : [];
}
