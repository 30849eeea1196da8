/** The iterations that one writer of a log reports, and how long they took: said, or worked out at the end. */
import { START } from "../../model/series.ts";
import type { IterationSeries, SeriesBasis } from "../../model/series.ts";
import { resolveStamp } from "../log-time.ts";
import type { Stamp } from "../log-time.ts";
import { SeriesColumns } from "../series-columns.ts";
import type { IterationLine } from "./iteration-line.ts";
import { TORCHTITAN } from "./iteration-line.ts";
import {
  areParts,
  areSteadier,
  byRate,
  byTimes,
  foldCoarse,
  followLeader,
  isCoarse,
} from "./series-times.ts";

/** In the columns' `between` while the log is read: the time has no year yet, or counts from the start of the training. */
const YEARLESS = 128;
const SINCE_START = 64;
/** Characters of a line that are shown as an example. */
const MOST_SHOWN = 300;

export class LogSeries {
  readonly columns = new SeriesColumns();
  /** Kinds of the lines that make up the last point. */
  #kinds = 0;
  #allKinds = 0;
  #last = { iteration: NaN, elapsedMs: NaN };
  #example = { line: 0, text: "", iteration: 0, time: "" };

  /** Line of the last point, 0 where there is none. */
  get lastLine(): number {
    return this.columns.count === 0 ? 0 : this.columns.line[this.columns.count - 1]!;
  }

  /** Whether the line tells more of the last point, which is then added to. */
  joins({ kind, iteration }: IterationLine, between: number): boolean {
    const { count } = this.columns;
    return (
      count > 0 &&
      this.columns.iteration[count - 1] === iteration &&
      (this.#kinds & kind) === 0 &&
      (between & START) === 0
    );
  }

  /** Another line of the last point's step, by another part of the framework. */
  join({ kind, ms, rate, batch }: IterationLine): void {
    const { columns } = this;
    const at = columns.count - 1;
    this.#kinds |= kind;
    this.#allKinds |= kind;
    if (Number.isNaN(columns.durationMs[at])) columns.durationMs[at] = ms;
    if (Number.isNaN(columns.rate[at])) columns.rate[at] = rate;
    if (Number.isNaN(columns.batch[at])) columns.batch[at] = batch;
  }

  add(
    point: IterationLine,
    line: number,
    stamp: Stamp | null,
    between: number,
    text: string,
  ): void {
    const { columns } = this;
    // The second line is a better example than the first, which has no line before it.
    if (columns.count < 2)
      this.#example = {
        line,
        text: text.slice(0, MOST_SHOWN),
        iteration: point.iteration,
        time: point.time,
      };
    const yearless = stamp !== null && !stamp.hasYear ? YEARLESS : 0;
    const sinceStart = point.isCoarse ? SINCE_START : 0;
    const endMs = point.isCoarse ? point.elapsedMs : (stamp?.ms ?? NaN);
    const ms = point.isCoarse ? NaN : this.#sinceLast(point);
    columns.add(point.iteration, ms, endMs, line, between | yearless | sinceStart);
    columns.rate[columns.count - 1] = point.rate;
    columns.batch[columns.count - 1] = point.batch;
    this.#kinds = point.kind;
    this.#allKinds |= point.kind;
  }

  /** What the line says of an iteration, or how much later it is since the start than the line before. */
  #sinceLast({ iteration, ms, elapsedMs }: IterationLine): number {
    if (Number.isNaN(elapsedMs)) return ms;
    const last = this.#last;
    this.#last = { iteration, elapsedMs };
    const isOn = iteration > last.iteration && elapsedMs >= last.elapsedMs;
    return isOn ? (elapsedMs - last.elapsedMs) / (iteration - last.iteration) : NaN;
  }

  /** A line, and what of it was taken for what. */
  example(basis: SeriesBasis): IterationSeries["example"] {
    const { line, text, iteration, time } = this.#example;
    const from = {
      reported: time,
      throughput: `${time}, the inverse of throughput, scaled to the times of the lines where they have any`,
      timestamps: time.includes("since the start")
        ? time
        : "the times at which lines were written" +
          (time === "none" || time === '"none"'
            ? ""
            : ` (${time} is not the whole iteration, or varies more)`),
      operators: "",
    }[basis];
    return { line, text, taken: `iteration ${iteration}; how long it took from ${from}` };
  }

  /** Settles the durations in the columns. Null where nothing says how long iterations took. */
  settle(nearMs: number | null): SeriesBasis | null {
    const { columns } = this;
    followLeader(columns);
    const hasNoYear = this.#date(nearMs);
    const basis = this.#basis();
    if (basis === "timestamps") {
      if (isCoarse(columns)) foldCoarse(columns);
      byTimes(columns);
    } else if (basis === "throughput") byRate(columns);
    // Differences of such times are right, the times themselves are not.
    if (hasNoYear) columns.endMs.fill(NaN);
    return columns.tells ? basis : null;
  }

  /** Whether there are times without a year and no year for them. */
  #date(nearMs: number | null): boolean {
    const { endMs, between, count } = this.columns;
    let isUnknown = false;
    for (let at = 0; at < count; at++) {
      if ((between[at]! & SINCE_START) !== 0) isUnknown = true;
      between[at]! &= ~SINCE_START;
      if ((between[at]! & YEARLESS) === 0) continue;
      between[at]! &= ~YEARLESS;
      if (nearMs === null) isUnknown = true;
      else endMs[at] = resolveStamp({ ms: endMs[at]!, hasYear: false }, nearMs) ?? NaN;
    }
    return isUnknown;
  }

  /** The best that at least half as many points have as have any. */
  #basis(): SeriesBasis {
    const { columns } = this;
    let reported = 0;
    let rated = 0;
    let timed = 0;
    for (let at = 0; at < columns.count; at++) {
      if (columns.durationMs[at]! >= 0) reported++;
      if (columns.rate[at]! > 0) rated++;
      if (columns.endMs[at]! > 0) timed++;
    }
    const enough = Math.max(reported, rated, timed) / 2;
    const isTimed = timed > 1 && timed >= enough && !isCoarse(columns);
    if (reported > 0 && reported >= enough)
      return isTimed && areParts(columns) ? "timestamps" : "reported";
    // torchtitan's tokens a second are those of the stretch between two lines, which exact times tell as well,
    // in milliseconds. DeepSpeed's samples a second are those of one step, without the pauses around it, and of one of
    // several passes where a step has several: times that are steadier know better.
    const timesWillDo = isTimed && ((this.#allKinds & TORCHTITAN) !== 0 || areSteadier(columns));
    return rated > 0 && rated >= enough && !timesWillDo ? "throughput" : "timestamps";
  }
}
