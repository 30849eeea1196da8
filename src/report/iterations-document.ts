/** The document of `iterations --json`; its names are fixed by the contract, the rest is added. */
import type { TrackedSeries } from "../model/series.ts";

const HOUR_MS = 3_600_000;

interface IterationsDocument {
  readonly schema: "faultline.iterations/1";
  readonly series: readonly Record<string, unknown>[];
  readonly missing: readonly string[];
}

export function iterationsDocument(
  tracked: readonly TrackedSeries[],
  missing: readonly string[],
): IterationsDocument {
  return { schema: "faultline.iterations/1", series: tracked.map(seriesOf), missing };
}

function seriesOf(tracked: TrackedSeries): Record<string, unknown> {
  const { series, changePoints, episodes } = tracked;
  // Of times in no unit no hours can be made.
  const hours = (ms: number): number | null => (series.isRelative ? null : figure(ms / HOUR_MS));
  return {
    source: series.source,
    rank: series.rank,
    basis: series.basis,
    iterations: Math.round(tracked.iterations),
    timesAreRelative: series.isRelative === true,
    medianMs: figure(tracked.medianMs),
    variation: figure(tracked.variation),
    changePoints: changePoints.map(({ atMs, ...change }) => ({
      iteration: change.iteration,
      detectedAt: change.detectedAt,
      beforeMs: figure(change.beforeMs),
      afterMs: figure(change.afterMs),
      ratio: figure(change.ratio),
      direction: change.direction,
      shape: change.ramp ? "ramp" : "step",
      ramp: change.ramp && {
        until: change.ramp.until,
        msPerIteration: figure(change.ramp.msPerIteration),
      },
      confidence: figure(change.confidence),
      line: change.line,
      at: atMs === null ? null : new Date(atMs).toISOString(),
    })),
    episodes: episodes.map((episode) => ({
      from: episode.from,
      to: episode.to,
      ratio: figure(episode.ratio),
      type: episode.type,
      iterations: Math.round(episode.iterations),
      wastedHours: hours(episode.wastedMs),
      period: episode.period,
      open: episode.isOpen,
    })),
    restarts: tracked.restarts,
    pauses: tracked.pauses.map(({ iteration, why, durationMs }) => ({
      iteration,
      why,
      durationMs: figure(durationMs),
    })),
    irregularIterations: Math.round(tracked.irregular),
    wastedHours: hours(tracked.wastedMs),
    standstillHours: hours(tracked.standstillMs),
    periods: tracked.periods,
  };
}

/** JSON has no NaN, and nobody needs 17 digits. */
function figure(value: number): number | null {
  return Number.isFinite(value) ? Number(value.toPrecision(7)) : null;
}
