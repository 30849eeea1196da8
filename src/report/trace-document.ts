/** The document of `trace --json`; its names are fixed by the contract, the rest is added. */
import type { Rank } from "../model/ids.ts";
import type { Regression } from "../model/regression.ts";
import type { RankClock } from "../model/trace-picture.ts";
import { STALL_CAUSES, type RankProfile, type RunProfile } from "../model/trace-profile.ts";

export interface TraceReport {
  readonly run: RunProfile;
  /** Where the healthy runs came from; none where there is no baseline. */
  readonly baseline: readonly string[];
  readonly regressions: readonly Regression[];
  readonly distanceMs: ReadonlyMap<Rank, number>;
  readonly notes: readonly string[];
  readonly missing: readonly string[];
  /** How clocks were aligned, where a merged trace was asked for. */
  readonly clocks?: readonly RankClock[];
}

interface TraceDocument {
  readonly schema: "faultline.trace/1";
  readonly ranks: readonly Record<string, unknown>[];
  readonly regressions: readonly Record<string, unknown>[];
  readonly baseline: readonly string[];
  readonly notes: readonly string[];
  readonly missing: readonly string[];
  readonly clocks?: readonly Record<string, unknown>[];
}

export function traceDocument(report: TraceReport): TraceDocument {
  const { run, baseline, regressions, distanceMs, notes, missing, clocks } = report;
  return {
    schema: "faultline.trace/1",
    ranks: run.ranks.map((profile) => rankOf(profile, distanceMs.get(profile.rank) ?? null)),
    regressions: regressions.map(({ at, ...one }) => ({
      ...one,
      value: figure(one.value),
      baseline: figure(one.baseline),
      share: figure(one.share),
      weight: figure(one.weight),
      at: at.map(({ file, line = 0 }) => ({ file, line })),
    })),
    baseline,
    notes,
    missing,
    ...(clocks ? { clocks: clocks.map(clockOf) } : {}),
  };
}

/** Clocks of different components cannot be compared. */
function clockOf({ rank, aheadNs, component }: RankClock): Record<string, unknown> {
  return { rank, aheadUs: figure(aheadNs / 1000), component };
}

function rankOf(profile: RankProfile, distanceMs: number | null): Record<string, unknown> {
  const { latencyMs, latencyByCollective } = profile;
  return {
    rank: profile.rank,
    files: profile.files,
    steps: profile.stepMs.length,
    stepsFrom: profile.stepsFrom,
    stepMs: figure(middle(profile.stepMs)),
    flops: profile.flops.map(({ kernel, shape, tflops, count, overlapped, share }) => ({
      kernel,
      shape,
      tflops: figure(tflops),
      count,
      overlapped,
      share: figure(share),
    })),
    bandwidth: profile.bandwidth.map((row) => ({
      collective: row.collective,
      group: row.group,
      bytes: row.bytes,
      busGBps: figure(row.busGBps),
      count: row.count,
      ranks: row.groupRanks,
      isWhole: row.isWhole,
      msPerStep: figure(row.msPerStep),
    })),
    issueLatencyMs: {
      ...quantiles(latencyMs),
      distance: distanceMs === null ? null : figure(distanceMs),
      byCollective: Object.fromEntries(
        Object.entries(latencyByCollective).map(([kind, values]) => [kind, quantiles(values)]),
      ),
    },
    vInter: figure(middle(profile.vInter)),
    vMinority: figure(middle(profile.vMinority)),
    commMs: figure(profile.commMs),
    overlapMs: figure(profile.overlapMs),
    stalls: Object.fromEntries(
      STALL_CAUSES.map((cause) => [
        cause,
        {
          intra: figure(middle(profile.intraStalls[cause])),
          inter: figure(middle(profile.interStalls[cause])),
        },
      ]),
    ),
    minority: profile.kernels
      .filter(({ kind }) => kind === "minority")
      .slice(0, 8)
      .map(({ name, share, perStep }) => ({
        name,
        share: figure(share),
        perStep: figure(perStep),
      })),
  };
}

/** Ascending in. */
export function quantiles(sorted: readonly number[]): {
  p10: number | null;
  p50: number | null;
  p90: number | null;
} {
  const at = (q: number): number | null =>
    sorted.length === 0
      ? null
      : figure(sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))]!);
  return { p10: at(0.1), p50: at(0.5), p90: at(0.9) };
}

/** Of a few steps; NaN of none. */
export function middle(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const at = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[at]! : (sorted[at - 1]! + sorted[at]!) / 2;
}

/** Six digits; null for what is not a number, as JSON has it. */
function figure(value: number): number | null {
  return Number.isFinite(value) ? Number(value.toPrecision(6)) : null;
}
