/** Collects the iteration lines of a log, a series a writer. */
import type { Defect } from "../../model/reading.ts";
import { EVALUATION } from "../../model/series.ts";
import type { IterationSeries } from "../../model/series.ts";
import type { Stamp } from "../log-time.ts";
import { MAX_POINTS } from "../series-columns.ts";
import { IterationLine } from "./iteration-line.ts";
import { LogSeries } from "./log-series.ts";
import { pauseOf, Pauses } from "./pauses.ts";
import type { Stream } from "./stream.ts";

/** What is known once all lines are read. */
interface Settled {
  readonly file: string;
  readonly streams: readonly Stream[];
  readonly rankOf: (stream: Stream) => number | null;
  /** The one rank that wrote the file, or null. */
  readonly fileRank: number | null;
  readonly fullTimeMs: number | null;
}

export class IterationLines {
  readonly #timeOf: (body: string) => Stamp | null;
  readonly point = new IterationLine();
  /** Reported by writers that report no iterations: they speak for all. */
  readonly #ofAll = new Pauses();
  #points = 0;
  #dropped = 0;

  constructor(timeOf: (body: string) => Stamp | null) {
    this.#timeOf = timeOf;
  }

  /**
   * A line that may be about iterations, or about what is between them; `iteration` is what iterationOf() says.
   * Gives it back, or -1 where it is an iteration of an evaluation.
   */
  line(body: string, iteration: number, no: number, stream: Stream, stamped: boolean): number {
    if (this.point.read(body, iteration)) return this.take(body, no, stream, stamped);
    if (this.point.isEvaluation) {
      this.#pause(EVALUATION, no, stream);
      return -1;
    } else if (iteration < 0) this.pause(body, no, stream);
    return iteration;
  }

  pause(body: string, no: number, stream: Stream): void {
    const bits = pauseOf(body);
    if (bits !== 0) this.#pause(bits, no, stream);
  }

  /** Adds what `point` holds, and gives its number. The time is read where it is needed: that costs most. */
  take(body: string, no: number, stream: Stream, stamped: boolean): number {
    stream.series ??= new LogSeries();
    const { series } = stream;
    const since = series.lastLine;
    const between = stream.pauses.since(since) | this.#ofAll.since(since);
    if (series.joins(this.point, between)) series.join(this.point);
    else if (this.#points >= MAX_POINTS) this.#dropped++;
    else {
      this.#points++;
      const stamp = stamped && !this.point.isCoarse ? this.#timeOf(body) : null;
      series.add(this.point, no, stamp, between, body);
    }
    return this.point.iteration;
  }

  /**
   * Megatron's last rank reports iterations, its first rank checkpoints. A writer that does both is believed for
   * itself only: the lines of others may come late.
   */
  #pause(bits: number, no: number, stream: Stream): void {
    stream.pauses.add(bits, no);
    if (stream.series === null) this.#ofAll.add(bits, no);
  }

  series({ file, streams, rankOf, fileRank, fullTimeMs }: Settled): IterationSeries[] {
    const found: IterationSeries[] = [];
    for (const stream of streams) {
      const basis = stream.series?.settle(fullTimeMs) ?? null;
      if (stream.series === null || basis === null) continue;
      const rank = rankOf(stream);
      const source = fileRank !== null ? file : file + writerOf(stream, rank);
      const { lastLine, columns } = stream.series;
      const after = stream.pauses.since(lastLine) | this.#ofAll.since(lastLine);
      const series = columns.series({ source, file, rank, basis });
      const example = stream.series.example(basis);
      // Throughput without any time of day: how long an iteration took is known up to a factor only.
      const isRelative = basis === "throughput" && series.endMs.every((at) => Number.isNaN(at));
      found.push({
        ...series,
        ...(example ? { example } : {}),
        ...(isRelative ? { isRelative } : {}),
        ...(after === 0 ? {} : { after }),
      });
    }
    return found;
  }

  defects(file: string): Defect[] {
    if (this.#dropped === 0) return [];
    const what = `${this.#dropped} iterations after the first ${MAX_POINTS} were left out`;
    return [{ file, what }];
  }
}

function writerOf({ is }: Stream, rank: number | null): string {
  if (rank !== null) return `, rank ${rank}`;
  if (is.local >= 0) return `, local rank ${is.local}`;
  if (is.task >= 0) return `, task ${is.task}`;
  return is.writer === "" ? "" : `, ${is.writer}`;
}
