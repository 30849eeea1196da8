/**
 * Slow now and then: blocks in which a rank leads everybody it is compared with by far more than it usually does. Hiccups come to
 * ranks at random; a fault comes back to one.
 */
import { median, spread } from "../../maths/robust.ts";
import { logCountOdds } from "../../maths/shift-odds.ts";
import { type Account, row } from "./account.ts";
import type { LeadSeries } from "./leads.ts";

/** A spike: so much of a block, and so many deviations of what leads do in other blocks. */
const SPIKE = 0.2;
const SPIKE_SIGMAS = 6;
/** In what share of the blocks a rank that has them has them. */
const SPIKES_USUAL = 0.15;
/** Of slow ranks, how many are slow now and then. */
export const SPIKING = 0.1;
/** Together they add so much to a block on average, or nobody looks. */
const LEAST_COST = 0.02;

/** By place: log odds that it is slow now and then. `assumed`: slow by assumption; theirs are no chance. */
export function spikesOf(
  { blocks, ranks }: Account,
  series: LeadSeries,
  assumed: readonly number[],
): Float64Array {
  const isAssumed = new Set(assumed);
  const least = ranks.map((_, place) => leastBeyondUsual(series, place, blocks));
  const noises = ranks.map((_, place) => {
    const own = series.of[place]!;
    return own.length === 0
      ? Infinity
      : Math.min(...Array.from(own, (s) => spread(row(series.lead, s, blocks))));
  });
  const limit = Math.max(SPIKE, SPIKE_SIGMAS * median(noises));
  const counts = least.map((values) => {
    let [cost, runs] = [0, 0];
    for (const [k, value] of values.entries()) {
      if (!(value > limit)) continue;
      cost += value;
      // Blocks in a row are one spike: what lasts is another question.
      if (k === 0 || !(values[k - 1]! > limit)) runs++;
    }
    return cost < LEAST_COST * blocks ? 0 : runs;
  });
  let total = 0;
  for (const [place, count] of counts.entries()) if (!isAssumed.has(place)) total += count;
  const all = ranks.length - isAssumed.size;
  return Float64Array.from(counts, (count, place) => {
    const isOther = !isAssumed.has(place);
    const others = Math.max(1, all - (isOther ? 1 : 0));
    return logCountOdds(count, total - (isOther ? count : 0), others, SPIKES_USUAL * blocks);
  });
}

/** The blocks in which the rank spiked: those half as far above its usual lead as its spikes are. */
export function spikingBlocks({ blocks }: Account, series: LeadSeries, place: number): Int32Array {
  const least = leastBeyondUsual(series, place, blocks);
  const limit = Math.min(SPIKE, median(least.filter((value) => value > SPIKE)) / 2) || SPIKE;
  return Int32Array.from(least.keys()).filter((k) => least[k]! > limit);
}

/** By block: how far the rank leads all it is compared with, at least, beyond its usual lead over each. */
function leastBeyondUsual(series: LeadSeries, place: number, blocks: number): Float64Array {
  const own = series.of[place]!;
  const least = new Float64Array(blocks).fill(own.length === 0 ? 0 : Infinity);
  for (const s of own) {
    const lead = row(series.lead, s, blocks);
    const usual = median(lead);
    for (let k = 0; k < blocks; k++) least[k] = Math.min(least[k]!, lead[k]! - usual);
  }
  return least;
}
