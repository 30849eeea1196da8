/** What the library says of the lines that were kept, and which of them the job outlived. */
import type { FaultMatchers, FaultMatch } from "../../library/matcher.ts";
import type { LogDigest } from "../../model/log-digest.ts";

/** By kept line: the most telling match; null where the library knows nothing. */
export function knownLines({ kept }: LogDigest, matchers: FaultMatchers): (FaultMatch | null)[] {
  // The same text comes from many ranks.
  const seen = new Map<string, FaultMatch | null>();
  return kept.map(({ text }) => {
    let known = seen.get(text);
    if (known === undefined) {
      known = matchers.match(text)[0] ?? null;
      if (seen.size < MOST_REMEMBERED) seen.set(text, known);
    }
    return known;
  });
}

const MOST_REMEMBERED = 100_000;
/** So many reports of iterations after an error, and it did not stop the job. */
const LEAST_PROGRESS = 3;
/** Clocks of different machines are no better. */
const SKEW_MS = 60_000;

/**
 * By kept line: whether training went on for iterations after it and it did not come again (L4 §4.2: errors of an
 * earlier stage are likely irrelevant). `keyOf` says what counts as the same.
 */
export function outlived(digest: LogDigest, keyOf: (kept: number) => string | number): Uint8Array {
  const { kept, iterations, streams } = digest;
  const isOutlived = new Uint8Array(kept.length);
  const lines = new Map<number, Uint32Array>();
  let longest: Float64Array = new Float64Array(0);
  for (const { stream, line, timeMs } of iterations) {
    const { file } = streams[stream]!;
    const before = lines.get(file);
    lines.set(file, before ? Uint32Array.from([...before, ...line]).sort() : line.slice().sort());
    const timed = timeMs.filter((ms) => !Number.isNaN(ms));
    if (timed.length > longest.length) longest = timed.sort();
  }
  const lastSeen = new Map<string | number, number>();
  kept.forEach(({ file, line, timeMs }, i) => {
    const mine = lines.get(file);
    const after = mine
      ? mine.length - firstAfter(mine, line)
      : Number.isNaN(timeMs)
        ? 0
        : longest.length - firstAfter(longest, timeMs + SKEW_MS);
    if (after >= LEAST_PROGRESS) isOutlived[i] = 1;
    else lastSeen.set(keyOf(i), i);
  });
  // What comes again at the end was there all the time.
  kept.forEach((_, i) => {
    if (lastSeen.has(keyOf(i))) isOutlived[i] = 0;
  });
  return isOutlived;
}

/** Errors of the GPU that may be no more than what a teardown does to running kernels. */
const UNSPECIFIC = 0.5;
const TOGETHER_MS = 1000;

/**
 * By kept line: whether it is the aftermath of a cascade. When a watchdog or a lost peer makes a process abort its
 * communicators, kernels that still use them fail, and ranks that only waited die of a CUDA error (as in the recordings
 * of hangs and of killed ranks).
 */
export function aftermath({ kept }: LogDigest, known: readonly (FaultMatch | null)[]): Uint8Array {
  const isAftermath = new Uint8Array(kept.length);
  const waited = new Set<number>();
  let firstMs = Infinity;
  kept.forEach(({ timeMs }, i) => {
    if (known[i]?.record.role === "cascade" && timeMs < firstMs) firstMs = timeMs;
  });
  kept.forEach(({ stream, timeMs }, i) => {
    const record = known[i]?.record;
    if (record?.role === "cascade") waited.add(stream);
    else if (record?.layer === "cuda" && record.certainty <= UNSPECIFIC)
      isAftermath[i] = waited.has(stream) || timeMs >= firstMs - TOGETHER_MS ? 1 : 0;
  });
  return isAftermath;
}

/** Place of the first value greater than `limit` in sorted values. */
function firstAfter(sorted: Uint32Array | Float64Array, limit: number): number {
  let from = 0;
  let to = sorted.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if (sorted[middle]! <= limit) from = middle + 1;
    else to = middle;
  }
  return from;
}
