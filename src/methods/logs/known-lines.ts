/** What the library says of the lines that were kept, and which of them the job outlived. */
import { mostTelling, type FaultMatch, type FaultMatchers } from "../../library/matcher.ts";
import type { Layer } from "../../model/fault-record.ts";
import type { LogDigest } from "../../model/log-digest.ts";
import { saysContinues, saysOver } from "./recovery-words.ts";

/** By kept line: the most telling match; null where the library knows nothing. */
export function knownLines({ kept }: LogDigest, matchers: FaultMatchers): (FaultMatch | null)[] {
  // The same text comes from many ranks.
  const seen = new Map<string, FaultMatch | null>();
  return kept.map(({ text }) => {
    let known = seen.get(text);
    if (known === undefined) {
      known = mostTelling(matchers.match(text));
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
    // One reporter: where every rank reports, one iteration makes many lines.
    if (line.length > (lines.get(file)?.length ?? 0)) lines.set(file, line.slice().sort());
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

/** What ends the process that writes it, so that it does not go on writing. */
const ENDS_PROCESS: readonly Layer[] = ["cuda", "torch", "framework", "python"];
/** "rank_12.log", "task3.out", torchrun's "attempt_0/3/stderr.log": the file is one process's. */
const PROCESS_FILE = /(?:rank|task|proc)[-_.]?\d+[^/]*$|\/\d+\/std(?:out|err)\b[^/]*$/i;
const DIES_WITHIN_MS = 5_000;
const ENDS_WITHIN_MS = 60_000;
const WEAK = 0.15;

/**
 * By kept line: whether its process lived on, as it later waits for others like everybody, or writes for a minute more.
 * Only of writers that are one process.
 */
export function survived(
  { kept, streams, files }: LogDigest,
  known: readonly (FaultMatch | null)[],
): Uint8Array {
  const waitsMs = new Float64Array(streams.length).fill(-Infinity);
  kept.forEach(({ stream, timeMs }, i) => {
    const record = known[i]?.record;
    if (record?.role === "cascade" && record.certainty > WEAK && timeMs > waitsMs[stream]!)
      waitsMs[stream] = timeMs;
  });
  return Uint8Array.from(kept, ({ stream, timeMs }, i) => {
    const record = known[i]?.record;
    if (record?.role !== "root" || !ENDS_PROCESS.includes(record.layer)) return 0;
    const { file, rank, writer, lastMs } = streams[stream]!;
    if (rank === null && writer === "" && !PROCESS_FILE.test(files[file]!.name)) return 0;
    const isWaiting = waitsMs[stream]! - timeMs > DIES_WITHIN_MS;
    return isWaiting || lastMs - timeMs > ENDS_WITHIN_MS ? 1 : 0;
  });
}

/** By kept line: whether its writer reported an iteration after it. Beside others without prefixes that may be somebody else's. */
export function reportedOn({ kept, iterations }: LogDigest): Uint8Array {
  const last = new Map(iterations.map(({ stream, line }) => [stream, line.at(-1) ?? 0]));
  return Uint8Array.from(kept, ({ stream, line }) => ((last.get(stream) ?? 0) > line ? 1 : 0));
}

/** So many ordinary lines of the same writer, and what should have ended it has not. */
const WROTE_ON = 300;

/** By kept line: whether its writer went on as if nothing had been; what ends a process comes with a traceback. */
export function wroteOn(digest: LogDigest, known: readonly (FaultMatch | null)[]): Uint8Array {
  const { kept, shapes, cells, blocks } = digest;
  const inBlock = new Set(blocks.map(({ stream, line }) => `${stream} ${line}`));
  const asked = new Map<number, number>();
  known.forEach((match, i) => {
    const { stream, line } = kept[i]!;
    if (match?.record.role !== "root" || !ENDS_PROCESS.includes(match.record.layer)) return;
    if (!inBlock.has(`${stream} ${line}`))
      asked.set(stream, Math.max(asked.get(stream) ?? 0, line));
  });
  // Lines of shapes that were first met after the last such line surely came after it.
  const after = new Map<number, number>();
  for (let c = 0; c < cells.count && asked.size > 0; c++) {
    const { isTelling, isPart } = shapes[cells.shape[c]!]!;
    const stream = cells.stream[c]!;
    const line = asked.get(stream);
    if (line === undefined || isTelling || isPart || cells.lastLine[c]! < line) continue;
    const some = cells.firstLine[c]! > line ? cells.lines[c]! : 1;
    after.set(stream, (after.get(stream) ?? 0) + some);
  }
  return Uint8Array.from(kept, ({ stream, line }, i) => {
    const record = known[i]?.record;
    const isAsked = record?.role === "root" && ENDS_PROCESS.includes(record.layer);
    return isAsked && !inBlock.has(`${stream} ${line}`) && (after.get(stream) ?? 0) >= WROTE_ON
      ? 1
      : 0;
  });
}

/** By kept line: whether its writer said later that the trouble was over. */
export function over({ kept, shapes, cells }: LogDigest): Uint8Array {
  const isOver = shapes.map(({ text }) => saysOver(text));
  const last = new Map<number, number>();
  for (let c = 0; c < cells.count; c++) {
    if (!isOver[cells.shape[c]!]) continue;
    const stream = cells.stream[c]!;
    last.set(stream, Math.max(last.get(stream) ?? 0, cells.lastLine[c]!));
  }
  return Uint8Array.from(kept, ({ stream, shape, line }) =>
    !isOver[shape] && (last.get(stream) ?? 0) > line ? 1 : 0,
  );
}

/** By kept line: whether it says itself that the program goes on. */
export function goingOn({ kept }: LogDigest): Uint8Array {
  return Uint8Array.from(kept, ({ text }) => (saysContinues(text) ? 1 : 0));
}

export const EXCEPTION = /^\s*[\w.]{0,80}(?:Error|Exception)\b/;

/**
 * By kept line: whether it is an exception that came without a traceback and after which its writer went on with
 * ordinary lines: then the program reported it and did not die of it.
 */
export function mentioned(digest: LogDigest): Uint8Array {
  const { kept, shapes, cells, blocks } = digest;
  const inBlock = new Set(blocks.map(({ stream, line }) => `${stream} ${line}`));
  const ordinary = new Map<number, number>();
  for (let c = 0; c < cells.count; c++) {
    const { isTelling, isPart } = shapes[cells.shape[c]!]!;
    if (isTelling || isPart) continue;
    const stream = cells.stream[c]!;
    ordinary.set(stream, Math.max(ordinary.get(stream) ?? 0, cells.lastLine[c]!));
  }
  return Uint8Array.from(kept, ({ stream, line, text }) =>
    EXCEPTION.test(text) && !inBlock.has(`${stream} ${line}`) && (ordinary.get(stream) ?? 0) > line
      ? 1
      : 0,
  );
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
