/**
 * How long iterations took, as one writer tells: a log, a table, or the operators of one rank. Columns, one
 * point an index, in the order of the file.
 */
import type { Rank } from "./ids.ts";

/** What the writer did between the point before and this one; bits of `IterationSeries.between`. */
export const CHECKPOINT = 1;
export const EVALUATION = 2;
/** A process started (again): banners, model building, checkpoint loading. */
export const START = 4;

/**
 * reported: the line says how long iterations took. throughput: from samples or tokens per second.
 * timestamps: from the times of the lines. operators: from the period of the operators.
 */
export type SeriesBasis = "reported" | "throughput" | "timestamps" | "operators";

export interface IterationSeries {
  /** For people: "train.log", "train.log, rank 3". */
  readonly source: string;
  readonly file: string;
  readonly rank: Rank | null;
  readonly basis: SeriesBasis;
  /** For `--explain`: a line as it was read, and what of it was taken for what. */
  readonly example?: { readonly line: number; readonly text: string; readonly taken: string };
  /** Whether durations are in no unit: normalised, or out of throughput and no times. Ratios hold, milliseconds do not. */
  readonly isRelative?: boolean;
  /** Whether the numbers are times and not a count of iterations: then a point is one. */
  readonly areTimes?: boolean;
  /** The number that the line prints: the last iteration that the point covers. */
  readonly iteration: Float64Array;
  /** Milliseconds an iteration (a mean, where lines come every N iterations); NaN where unknown. */
  readonly durationMs: Float64Array;
  /** When the line was written, milliseconds since 1970; NaN where unknown. */
  readonly endMs: Float64Array;
  /** Line in the file; 0 where it has none. */
  readonly line: Int32Array;
  /** Global batch size; NaN where the line does not say. */
  readonly batch: Float64Array;
  /** CHECKPOINT, EVALUATION, START. */
  readonly between: Uint8Array;
  /** The same, after the last point; absent where nothing was announced. */
  readonly after?: number;
}

/** A lasting change of the level. Iteration numbers are those that the log prints. */
export interface ChangePoint {
  /** The first slow, or again fast, iteration. */
  readonly iteration: number;
  /** The iteration at which an online reader knew. */
  readonly detectedAt: number;
  readonly beforeMs: number;
  readonly afterMs: number;
  /** after / before */
  readonly ratio: number;
  readonly direction: "slower" | "faster";
  /** A level that came slowly: how fast, and at which iteration it was there; null where it came at once. */
  readonly ramp: Ramp | null;
  /** 0..1: how sure the detector is of a change of 10 % or more. */
  readonly confidence: number;
  /** Line in the series' file, 0 where none. */
  readonly line: number;
  /** Milliseconds since 1970, null where unknown. */
  readonly atMs: number | null;
}

export interface Ramp {
  /** The first iteration of the new level; the last of the stretch where it still goes on then. */
  readonly until: number;
  /** Milliseconds that an iteration takes longer than the one before it; negative where it becomes faster. */
  readonly msPerIteration: number;
}

/** Holmes §3.1: a stretch of irregular iterations and what it looks like. */
export interface Episode {
  readonly from: number;
  /** The last iteration of it; the last of the series where it still goes on. */
  readonly to: number;
  /** Mean duration in it over the level without it. */
  readonly ratio: number;
  readonly type: "spike" | "fluctuation" | "degradation";
  /** Irregular iterations in it. */
  readonly iterations: number;
  readonly wastedMs: number;
  /** Iterations from one peak to the next, of a fluctuation that has a period; else null. */
  readonly period: number | null;
  /** Whether it reaches the end of the series. */
  readonly isOpen: boolean;
}

/** A point that is no slowness, whatever it took. */
export interface Pause {
  readonly iteration: number;
  /** standstill: one iteration of many times the length, and nothing that says why. */
  readonly why: "warm-up" | "restart" | "standstill" | "checkpoint" | "evaluation";
  readonly durationMs: number;
}

/** A series with what the tracker sees in it. */
export interface TrackedSeries {
  readonly series: IterationSeries;
  /** Iterations that the points cover; those done again after a restart count again. */
  readonly iterations: number;
  /** Median of the iterations that count. */
  readonly medianMs: number;
  readonly changePoints: readonly ChangePoint[];
  readonly episodes: readonly Episode[];
  /** First iteration after each restart: the counter went back, or the log has lines of a start. */
  readonly restarts: readonly number[];
  readonly pauses: readonly Pause[];
  /** δ-irregular iterations (Holmes, definition 1). */
  readonly irregular: number;
  /** Time above what the iterations would have taken, all episodes together. */
  readonly wastedMs: number;
  /** Time beyond an iteration's at restarts and standstills. */
  readonly standstillMs: number;
  /** Robust variation of the iterations within their level: what the job's own noise is. */
  readonly variation: number;
  /** Per point: the level that it is compared with; NaN where the point does not count. */
  readonly levelMs: Float64Array;
  /** Calls of an iteration and of what repeats inside it, for a series out of operators; else empty. */
  readonly periods: readonly number[];
}
