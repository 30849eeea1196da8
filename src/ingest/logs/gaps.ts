/** Which silences are worth telling: those that are long for a stream that writes often. */
import type { LogGap } from "../../model/log-digest.ts";
import { largest } from "../../base/numbers.ts";
import { FIRST_ABSOLUTE_MS } from "./stamps.ts";
import { MOST_GAPS, type StreamTable } from "./stream-table.ts";

/** Fewer lines with a time say nothing about how often a stream writes. */
const FEWEST = 8;
const SHORTEST_MS = 1000;
/** Against the usual distance of two lines. */
const FACTOR = 5;

export function foundGaps(streams: StreamTable): LogGap[] {
  const gaps: LogGap[] = [];
  const absolute = streams.lastMs.subarray(0, streams.size).filter((ms) => ms >= FIRST_ABSOLUTE_MS);
  const endMs = largest(absolute, Number.NEGATIVE_INFINITY);
  for (let stream = 0; stream < streams.size; stream++) {
    const stamped = streams.stamped[stream]!;
    if (stamped < FEWEST) continue;
    const base = stream * MOST_GAPS;
    const least = Math.max(SHORTEST_MS, FACTOR * usualMs(streams, stream));
    for (let g = base; g < base + MOST_GAPS; g++) {
      const ms = streams.gapMs[g]!;
      if (ms < least) continue;
      const fromMs = streams.gapFrom[g]!;
      gaps.push({ stream, fromMs, toMs: fromMs + ms, afterLine: streams.gapLine[g]! });
    }
    const lastMs = streams.lastMs[stream]!;
    if (lastMs >= FIRST_ABSOLUTE_MS && endMs - lastMs >= Math.max(least, 10 * SHORTEST_MS))
      gaps.push({ stream, fromMs: lastMs, toMs: NaN, afterLine: streams.lastLine[stream]! });
  }
  return gaps.sort((x, y) => x.stream - y.stream || x.fromMs - y.fromMs);
}

/** The mean distance of its lines, the longest silences aside: they are what is asked about. */
function usualMs(streams: StreamTable, stream: number): number {
  const base = stream * MOST_GAPS;
  const stamped = streams.stamped[stream]!;
  // Of few lines few silences, or nothing would be left.
  const aside = Math.min(MOST_GAPS, Math.floor(stamped / 8));
  let ms = Math.max(0, streams.lastMs[stream]! - streams.firstMs[stream]!);
  for (let g = base + MOST_GAPS - aside; g < base + MOST_GAPS; g++) ms -= streams.gapMs[g]!;
  return Math.max(0, ms) / Math.max(1, stamped - 1 - aside);
}
