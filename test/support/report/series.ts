/** Made-up series with what a tracker would say of them, for the report's tests. */
import type { ChangePoint, Episode, Pause, TrackedSeries } from "../../../src/model/series.ts";

export interface SeriesShape {
  readonly source?: string;
  readonly rank?: number | null;
  /** Milliseconds of each point. */
  readonly durationMs: readonly number[] | Float64Array;
  /** Numbers that the log prints; 1, 2, 3… where not given. */
  readonly iteration?: readonly number[];
  /** 1,000 where not given; NaN where the point does not count. */
  readonly levelMs?: readonly number[] | Float64Array;
  readonly changePoints?: readonly ChangePoint[];
  readonly episodes?: readonly Episode[];
  readonly restarts?: readonly number[];
  readonly pauses?: readonly Pause[];
  readonly medianMs?: number;
}

export function syntheticSeries(shape: SeriesShape): TrackedSeries {
  const durationMs = Float64Array.from(shape.durationMs);
  const points = durationMs.length;
  const source = shape.source ?? "train.log";
  const paused = new Set(shape.pauses?.map(({ iteration }) => iteration));
  const iteration = Float64Array.from(shape.iteration ?? durationMs.map((_, i) => i + 1));
  return {
    series: {
      source,
      file: source,
      rank: shape.rank ?? null,
      basis: "reported",
      iteration,
      durationMs,
      endMs: new Float64Array(points).fill(NaN),
      line: new Int32Array(points),
      batch: new Float64Array(points).fill(NaN),
      between: new Uint8Array(points),
    },
    iterations: points,
    medianMs: shape.medianMs ?? 1_000,
    changePoints: shape.changePoints ?? [],
    episodes: shape.episodes ?? [],
    restarts: shape.restarts ?? [],
    pauses: shape.pauses ?? [],
    irregular: 0,
    standstillMs: 0,
    wastedMs: (shape.episodes ?? []).reduce((sum, { wastedMs }) => sum + wastedMs, 0),
    variation: 0.01,
    levelMs: Float64Array.from(
      shape.levelMs ?? iteration.map((now) => (paused.has(now) ? NaN : 1_000)),
    ),
    periods: [],
  };
}

export function changeAt(iteration: number, beforeMs: number, afterMs: number): ChangePoint {
  return {
    iteration,
    detectedAt: iteration + 4,
    beforeMs,
    afterMs,
    ratio: afterMs / beforeMs,
    direction: afterMs > beforeMs ? "slower" : "faster",
    ramp: null,
    confidence: 0.99,
    line: 0,
    atMs: null,
  };
}

export function episodeOf(
  type: Episode["type"],
  from: number,
  to: number,
  ratio: number,
  more: Partial<Episode> = {},
): Episode {
  const iterations = to - from + 1;
  const wastedMs = (ratio - 1) * 1_000 * iterations;
  return { type, from, to, ratio, iterations, wastedMs, period: null, isOpen: false, ...more };
}

/** 120 iterations of a second; 16 to 85 take 1.9; a warm-up of half a minute, a checkpoint, a spike. */
export function slowSeries(shape: Partial<SeriesShape> = {}): TrackedSeries {
  const durationMs = Array.from({ length: 120 }, (_, i) => {
    const noise = 5 * Math.sin(i * 7);
    return noise + (i >= 15 && i <= 84 ? 1_900 : 1_000);
  });
  durationMs[0] = 30_000;
  durationMs[99] = 1_700;
  durationMs[109] = 1_600;
  return syntheticSeries({
    durationMs,
    changePoints: [
      { ...changeAt(16, 1_000, 1_900), line: 316, atMs: Date.UTC(2026, 10, 15, 0, 41, 49) },
      changeAt(86, 1_900, 1_000),
    ],
    episodes: [episodeOf("degradation", 16, 85, 1.9), episodeOf("spike", 110, 110, 1.6)],
    pauses: [
      { iteration: 1, why: "warm-up", durationMs: 30_000 },
      { iteration: 100, why: "checkpoint", durationMs: 1_700 },
    ],
    ...shape,
  });
}
