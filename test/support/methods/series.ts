/** Series for tests: iteration times as a job of a given shape would print them. */
import { seeded } from "../../../src/base/random.ts";
import type { IterationSeries } from "../../../src/model/series.ts";

export interface Shape {
  /** Milliseconds of iteration i (from 1). */
  readonly level: (iteration: number) => number;
  readonly from?: number;
  readonly to: number;
  /** Iterations between two lines. */
  readonly every?: number;
  readonly noise?: number;
  readonly seed?: number;
  readonly rank?: number;
  readonly batch?: (iteration: number) => number;
  readonly between?: (iteration: number) => number;
}

export function makeSeries(...runs: readonly Shape[]): IterationSeries {
  const iteration: number[] = [];
  const durationMs: number[] = [];
  const batch: number[] = [];
  const between: number[] = [];
  for (const { level, from = 1, to, every = 1, noise = 0.01, seed = 1, ...run } of runs) {
    const random = seeded(seed);
    for (let i = from + every - 1; i <= to; i += every) {
      iteration.push(i);
      durationMs.push(level(i) * (1 + noise * 3.46 * (random() - 0.5)));
      batch.push(run.batch?.(i) ?? NaN);
      between.push(run.between?.(i) ?? 0);
    }
  }
  let atMs = Date.UTC(2026, 0, 1);
  return {
    source: `rank${runs[0]?.rank ?? 0}.log`,
    file: `rank${runs[0]?.rank ?? 0}.log`,
    rank: runs[0]?.rank ?? null,
    basis: "reported",
    iteration: Float64Array.from(iteration),
    durationMs: Float64Array.from(durationMs),
    endMs: Float64Array.from(durationMs, (each) => (atMs += Number.isNaN(each) ? 0 : each)),
    line: Int32Array.from(iteration, (_, k) => k + 1),
    batch: Float64Array.from(batch),
    between: Uint8Array.from(between),
  };
}
