/**
 * Where in the job's progress a line stands: how many iterations had been reported before it and how many came after.
 * Lines after which the job went on for a while did not end it.
 */
import type { LogDigest, LogIterations } from "../../model/log-digest.ts";

interface Progress {
  /** Iterations of the stream that reports most; null where none does. */
  readonly reporter: LogIterations | null;
  /** Reports in all. */
  readonly count: number;
  /** Reports before a line of a stream; NaN where nothing tells. */
  before(stream: number, line: number, timeMs: number): number;
}

export function progressOf({ streams, iterations }: LogDigest): Progress {
  let reporter: LogIterations | null = null;
  const ofFile = new Map<number, LogIterations>();
  for (const one of iterations) {
    const { length } = one.iteration;
    if (length > (reporter?.iteration.length ?? 0)) reporter = one;
    const { file } = streams[one.stream]!;
    if (length > (ofFile.get(file)?.iteration.length ?? 0)) ofFile.set(file, one);
  }
  const count = reporter?.iteration.length ?? 0;
  const hasTimes = reporter !== null && !Number.isNaN(reporter.timeMs[0] ?? NaN);
  return {
    reporter,
    count,
    before(stream, line, timeMs) {
      const own = ofFile.get(streams[stream]!.file);
      if (own) return placeOf(own.line, line);
      return hasTimes && !Number.isNaN(timeMs) ? placeOf(reporter!.timeMs, timeMs) : NaN;
    },
  };
}

/** How many of ascending values lie below one. */
function placeOf(ascending: ArrayLike<number>, value: number): number {
  let low = 0;
  let high = ascending.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ascending[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
