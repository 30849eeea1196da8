/** Who wrote lines, how many, from when to when, and when they were silent longest. */
import { grown } from "../grown.ts";
import { HashIndex } from "./hash-index.ts";
import type { LogGap } from "../../model/log-digest.ts";
import { largest } from "../../base/numbers.ts";
import { FIRST_ABSOLUTE_MS } from "./stamps.ts";

/** Fewer lines with a time say nothing about how often a stream writes. */
const FEWEST = 8;
const SHORTEST_MS = 1000;

/** Against the usual distance of two lines. */
const FACTOR = 5;

export const MOST_GAPS = 8;
export const MOST_STREAMS = 100_000;
/** No rank. */
export const NO_RANK = -1;

/** Streams as plain columns: what threads hand to each other. */
export interface StreamColumns {
  readonly count: number;
  /** The hash of file, host, rank and writer. */
  readonly a: Int32Array;
  readonly b: Int32Array;
  readonly file: Int32Array;
  readonly host: readonly (string | null)[];
  readonly rank: Int32Array;
  readonly writer: readonly string[];
  readonly lines: Float64Array;
  readonly firstMs: Float64Array;
  readonly lastMs: Float64Array;
  /** Line of `lastMs`, and how many lines have a time. */
  readonly lastLine: Float64Array;
  readonly stamped: Float64Array;
  /** MOST_GAPS for every stream: length and beginning; 0 where there are fewer. */
  readonly gapMs: Float64Array;
  readonly gapFrom: Float64Array;
}

export class StreamTable {
  readonly #index = new HashIndex(256);
  file = new Int32Array(256);
  readonly host: (string | null)[] = [];
  rank = new Int32Array(256);
  readonly writer: string[] = [];
  lines = new Float64Array(256);
  firstMs = new Float64Array(256);
  lastMs = new Float64Array(256);
  lastLine = new Float64Array(256);
  stamped = new Float64Array(256);
  gapMs = new Float64Array(256 * MOST_GAPS);
  gapFrom = new Float64Array(256 * MOST_GAPS);

  get size(): number {
    return this.#index.size;
  }

  /** -1 where it is new. The hash stands for file, host, rank and writer. */
  find(a: number, b: number): number {
    return this.#index.find(a, b);
  }

  add(
    a: number,
    b: number,
    file: number,
    host: string | null,
    rank: number,
    writer: string,
  ): number {
    const stream = this.#index.add(a, b);
    const { size } = this.#index;
    this.file = grown(this.file, size);
    this.rank = grown(this.rank, size);
    this.lines = grown(this.lines, size);
    this.firstMs = grown(this.firstMs, size);
    this.lastMs = grown(this.lastMs, size);
    this.lastLine = grown(this.lastLine, size);
    this.stamped = grown(this.stamped, size);
    this.gapMs = grown(this.gapMs, size * MOST_GAPS);
    this.gapFrom = grown(this.gapFrom, size * MOST_GAPS);
    this.file[stream] = file;
    this.host.push(host);
    this.rank[stream] = rank;
    this.writer.push(writer);
    this.firstMs[stream] = this.lastMs[stream] = NaN;
    return stream;
  }

  /** A line with a time of its own. Clocks that go back make no gap. */
  stamp(stream: number, line: number, ms: number): void {
    const before = this.lastMs[stream]!;
    if (ms - before > this.gapMs[stream * MOST_GAPS]!) this.gap(stream, ms - before, before);
    if (!(this.firstMs[stream]! <= ms)) this.firstMs[stream] = ms;
    this.lastMs[stream] = ms;
    this.lastLine[stream] = line;
    this.stamped[stream]!++;
  }

  /** Puts a gap in its place; the shortest of the longest stands first. */
  gap(stream: number, length: number, fromMs: number): void {
    const base = stream * MOST_GAPS;
    const { gapMs, gapFrom } = this;
    if (!(length > gapMs[base]!)) return;
    let i = base;
    for (; i + 1 < base + MOST_GAPS && gapMs[i + 1]! < length; i++) {
      gapMs[i] = gapMs[i + 1]!;
      gapFrom[i] = gapFrom[i + 1]!;
    }
    gapMs[i] = length;
    gapFrom[i] = fromMs;
  }

  columns(): StreamColumns {
    const { size } = this;
    return {
      count: size,
      a: this.#index.a.slice(0, size),
      b: this.#index.b.slice(0, size),
      file: this.file.slice(0, size),
      host: this.host,
      rank: this.rank.slice(0, size),
      writer: this.writer,
      lines: this.lines.slice(0, size),
      firstMs: this.firstMs.slice(0, size),
      lastMs: this.lastMs.slice(0, size),
      lastLine: this.lastLine.slice(0, size),
      stamped: this.stamped.slice(0, size),
      gapMs: this.gapMs.slice(0, size * MOST_GAPS),
      gapFrom: this.gapFrom.slice(0, size * MOST_GAPS),
    };
  }
}

/** Which silences are worth telling: those that are long for a stream that writes often. */
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
      gaps.push({ stream, fromMs, toMs: fromMs + ms });
    }
    const lastMs = streams.lastMs[stream]!;
    if (lastMs >= FIRST_ABSOLUTE_MS && endMs - lastMs >= Math.max(least, 10 * SHORTEST_MS))
      gaps.push({ stream, fromMs: lastMs, toMs: NaN });
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
