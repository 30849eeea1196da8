/** A run's traces → its profile: the five metrics of every rank. */
import { median } from "../../maths/robust.ts";
import { thinned } from "../../maths/wasserstein.ts";
import type { Rank } from "../../model/ids.ts";
import type { RankKernels } from "../../model/kernels.ts";
import type { BandwidthRow, RankProfile, RunProfile } from "../../model/trace-profile.ts";
import { bandwidthRows } from "./bandwidth.ts";
import type { CollectTimes } from "./collect-time.ts";
import { byActivity } from "./gpu-activity.ts";
import { COLLECTIVE, MATRIX } from "./instrumented.ts";
import { measured, type Measured } from "./measured.ts";
import { byCause, profileTrace, type TracePart } from "./profile-trace.ts";

/** Enough for a distance exact to a thousandth of the range; a trace of a step has thousands of kernels. */
const LATENCY_POINTS = 512;

const ONLY_INSTRUMENTED =
  "rings record communication, and matrix products where kernel tracing is on: time of other kernels is estimated by the gaps before kernels that were launched, and what the CPU did while the GPU was idle is not measured";

/** null where no trace has GPU events in it. */
export function profileRun(kernels: readonly RankKernels[], source: string): RunProfile | null {
  const byRank = new Map<Rank, Measured[]>();
  for (const [rank, trace] of ranked(kernels)) {
    const one = measured(trace);
    if (one.steps.startNs.length > 0) byRank.set(rank, [...(byRank.get(rank) ?? []), one]);
  }
  if (byRank.size === 0) return null;
  const bandwidth = bandwidthRows(byRank);
  const sorted = [...byRank].toSorted((a, b) => a[0] - b[0]);
  const traces = sorted.flatMap(([, list]) => list.map(({ trace }) => trace));
  const isPart = traces.some(({ coverage }) => coverage === "instrumented");
  return {
    ...(isPart ? { lacks: [ONLY_INSTRUMENTED] } : {}),
    source,
    backend: traces.find(({ backend }) => backend !== "")?.backend ?? "",
    mix: mixOf(sorted.flatMap(([, list]) => list)),
    worldSize: traces.reduce((most, { worldSize }) => Math.max(most, worldSize), byRank.size),
    hardware: traces.find(({ devices }) => devices.length > 0)?.devices[0]!.name ?? "",
    ranks: sorted.map(([rank, list]) => profileRank(rank, list, bandwidth.get(rank) ?? [])),
  };
}

/** Traces without a rank get the first free numbers, in the order of their files. */
export function ranked(kernels: readonly RankKernels[]): [Rank, RankKernels][] {
  const taken = new Set(kernels.map(({ rank }) => rank));
  let next = 0;
  return kernels
    .filter(({ gpu }) => gpu.count > 0)
    .map((trace) => {
      if (trace.rank !== null) return [trace.rank, trace];
      while (taken.has(next)) next++;
      taken.add(next);
      return [next, trace];
    });
}

/** A rank may have several traces, of different steps: steps are put one after the other, rows of the first count. */
function profileRank(
  rank: Rank,
  list: readonly Measured[],
  bandwidth: readonly BandwidthRow[],
): RankProfile & CollectTimes {
  const parts = list.map(profileTrace);
  const [first] = parts as [TracePart];
  const all = <T>(of: (part: TracePart) => readonly T[]): T[] => parts.flatMap(of);
  const stalls = (which: "intraStalls" | "interStalls"): RankProfile["intraStalls"] =>
    byCause((cause) => all((part) => part[which][cause]));
  const kinds = new Set(
    parts.flatMap(({ latencyByCollective }) => [...latencyByCollective.keys()]),
  );
  const stepMs = all((part) => part.stepMs);
  const relative = all((part) => part.relative);
  const steps = stepMs.length;
  const half = (isFirst: boolean): number[] =>
    points(relative.flatMap((of, step) => (step < steps / 2 === isFirst ? of : [])));
  return {
    rank,
    ...(list.some(({ trace }) => trace.isCut) ? { isCut: true } : {}),
    files: list.map(({ trace }) => trace.file),
    stepsFrom: list[0]!.steps.from,
    stepMs,
    flops: first.flops,
    bandwidth,
    latencyMs: points(all((part) => part.latencyMs)),
    latencyHalves: [half(true), half(false)],
    latencyByCollective: Object.fromEntries(
      [...kinds]
        .toSorted((a, b) => (a < b ? -1 : 1))
        .map((kind) => [kind, points(all((part) => part.latencyByCollective.get(kind) ?? []))]),
    ),
    vInter: all((part) => part.vInter),
    vMinority: all((part) => part.vMinority),
    intraStalls: stalls("intraStalls"),
    interStalls: stalls("interStalls"),
    calls: {
      synchronization: all((part) => part.calls.synchronization),
      "memory-management": all((part) => part.calls["memory-management"]),
    },
    loads: all((part) => part.loads),
    collectShares: all((part) => part.collectShares),
    kernels: first.kernels,
    stallNames: first.stallNames,
    commMs: median(all((part) => part.commMs)),
    overlapMs: median(all((part) => part.overlapMs)),
    breakdown: byActivity((activity) => all((part) => part.breakdown[activity])),
  };
}

/** What the run computes: shares of its matrix operators and collectives. Sizes do not matter, kinds do. */
function mixOf(list: readonly Measured[]): Record<string, number> {
  const counts = new Map<string, number>();
  let total = 0;
  for (const { trace, classes, step } of list) {
    const { gpu, matrixOps, collectives, names } = trace;
    for (let i = 0; i < gpu.count; i++) {
      if (step[i]! < 0) continue;
      let name = "";
      if (classes[i] === MATRIX) {
        const op = gpu.matrixOp[i]!;
        name = op < 0 ? "matrix" : names[matrixOps.name[op]!]!;
      } else if (classes[i] === COLLECTIVE) {
        const row = gpu.collective[i]!;
        name = row < 0 ? "communication" : names[collectives.operation[row]!]!;
      } else continue;
      counts.set(name, (counts.get(name) ?? 0) + 1);
      total++;
    }
  }
  return Object.fromEntries(
    [...counts]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, count]) => [name, count / total]),
  );
}

function points(values: readonly number[]): number[] {
  return [...thinned(Float64Array.from(values).sort(), LATENCY_POINTS)];
}
