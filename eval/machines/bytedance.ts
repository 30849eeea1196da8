/**
 * ByteDance's trace ST (straggler analysis, OSDI 2025) as if operations' durations were machine metrics: eight
 * workers, two of each pipeline stage, where the last stage takes twice as long and nobody is at fault.
 */
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { groupBy } from "../../src/base/group-by.ts";
import { alignFleet } from "../../src/methods/machines/align.ts";
import { findMachines } from "../../src/methods/machines/find-machines.ts";
import { runMinder } from "../../src/methods/machines/minder/minder.ts";
import { shippedModels } from "../../src/methods/machines/minder/models.ts";
import type { Fleet } from "../../src/model/fleet.ts";
import type { MetricSamples, MetricSet } from "../../src/model/metrics.ts";
import { readTimeline, type Operation } from "./stage-timeline.ts";

/** A recorded step stands for a minute, so that the usual continuity of four minutes is four steps. */
const STEP_S = 60;
const CONTINUITY_STEPS = 4;
/** Of eight workers no normal score exceeds 2.47: the usual threshold of 3 can accuse nobody. */
const LOWER_THRESHOLD = 2;

export interface Slowed {
  readonly worker: string;
  /** Place of the first slow step among those recorded. */
  readonly fromStep: number;
  /** How many times as long it computes. */
  readonly factor: number;
}

export interface DurationTable {
  readonly workers: readonly string[];
  readonly stageOf: ReadonlyMap<string, string>;
  /** Recorded steps. */
  readonly steps: number;
  /** Kind of operation → mean duration of worker w in step i at w · steps + i; NaN where it has none. */
  readonly durations: ReadonlyMap<string, Float64Array>;
  /** Kind of operation → its share of the time of all operations. */
  readonly shares: ReadonlyMap<string, number>;
}

export function readDurations(file: string): DurationTable {
  return tableOf(readTimeline(gunzipSync(readFileSync(file)).toString("utf8")));
}

function tableOf(operations: readonly Operation[]): DurationTable {
  const steps = [...new Set(operations.map(({ step }) => step))].sort((a, b) => a - b);
  const placeOf = new Map(steps.map((step, i) => [step, i]));
  const byRank = groupBy(operations, ({ rank }) => rank);
  const ranks = [...byRank.keys()].sort((a, b) => a - b);
  const stageOf = new Map<string, string>();
  const workers = ranks.map((rank) => {
    const { replica, stage } = byRank.get(rank)![0]!;
    const name = `rank ${rank} (replica ${replica}, stage ${stage})`;
    stageOf.set(name, `stage ${stage}`);
    return name;
  });
  const cells = workers.length * steps.length;
  const durations = new Map<string, Float64Array>();
  const shares = new Map<string, number>();
  const wholeMs = operations.reduce((sum, { durationMs }) => sum + durationMs, 0);
  for (const [kind, alike] of groupBy(operations, (one) => one.kind)) {
    const [sum, count] = [new Float64Array(cells), new Float64Array(cells)];
    for (const { rank, step, durationMs } of alike) {
      const at = ranks.indexOf(rank) * steps.length + placeOf.get(step)!;
      sum[at]! += durationMs;
      count[at]!++;
    }
    durations.set(
      kind,
      sum.map((all, at) => all / count[at]!),
    );
    shares.set(kind, alike.reduce((all, { durationMs }) => all + durationMs, 0) / wholeMs);
  }
  return { workers, stageOf, steps: steps.length, durations, shares };
}

/** Without what takes next to no time: a quarter more of forty microseconds is a difference, but nobody's fault. */
export function withoutTrifles(table: DurationTable, leastShare: number): DurationTable {
  const durations = [...table.durations].filter(([name]) => table.shares.get(name)! >= leastShare);
  return { ...table, durations: new Map(durations) };
}

/** Only what the worker computes by itself takes longer: a message takes as long as before once both are there. */
export function slowed(table: DurationTable, { worker, fromStep, factor }: Slowed): DurationTable {
  const { steps, workers } = table;
  const own = workers.indexOf(worker);
  const durations = new Map(
    [...table.durations].map(([name, values]) => {
      if (!name.endsWith("compute")) return [name, values];
      const isSlow = (at: number): boolean =>
        Math.floor(at / steps) === own && at % steps >= fromStep;
      return [name, values.map((value, at) => (isSlow(at) ? factor * value : value))];
    }),
  );
  return { ...table, durations };
}

function fleetOf({ workers, stageOf, steps, durations }: DurationTable, withRoles: boolean): Fleet {
  const samples = [...durations].map(([name, values]): MetricSamples => {
    const series = [...workers.keys()].filter((w) => !Number.isNaN(values[w * steps]!));
    return {
      name,
      type: "gauge",
      machine: Int32Array.from(series),
      device: series.map(() => ""),
      start: Uint32Array.from({ length: series.length + 1 }, (_, s) => s * steps),
      timeS: Float64Array.from({ length: series.length * steps }, (_, i) => (i % steps) * STEP_S),
      value: Float64Array.from(
        series.flatMap((w) => [...values.subarray(w * steps, (w + 1) * steps)]),
      ),
    };
  });
  // The fleet sorts its machines by name; ours are in order already.
  const set: MetricSet = { machines: workers, hardware: workers.map(() => null), samples };
  return alignFleet([set], withRoles ? { stageOf } : {});
}

/** Who is accused, by each way of looking. */
export const DETECTORS: Readonly<Record<string, (table: DurationTable) => readonly string[]>> = {
  "Faultline, stages known": (table) =>
    findMachines(fleetOf(table, true)).faulty.map(({ machine }) => machine),
  "Faultline, stages unknown": (table) =>
    findMachines(fleetOf(table, false)).faulty.map(({ machine }) => machine),
  "Minder, threshold 3": (table) => minder(table, 3),
  [`Minder, threshold ${LOWER_THRESHOLD}`]: (table) => minder(table, LOWER_THRESHOLD),
  "plain z above 3": (table) => plainScores(table, 3),
  "plain z above 2": (table) => plainScores(table, 2),
  "plain z above 1.5": (table) => plainScores(table, 1.5),
};

function minder(table: DurationTable, similarityThreshold: number): string[] {
  const fleet = fleetOf(table, false);
  const metrics = fleet.grids.map(({ metric }) => metric);
  const continuityS = CONTINUITY_STEPS * STEP_S;
  const options = { metrics, similarityThreshold, continuityS };
  return runMinder(fleet, shippedModels(), options).faulty.map(({ machine }) => machine);
}

/** Whoever is above the threshold for four steps on end, in any kind of operation: no roles, nothing robust. */
function plainScores({ workers, steps, durations }: DurationTable, threshold: number): string[] {
  const found = new Set<string>();
  for (const values of durations.values()) {
    const lasting = new Int32Array(workers.length);
    for (let i = 0; i < steps; i++) {
      const now = workers.map((_, w) => values[w * steps + i]!);
      const seen = now.filter((value) => !Number.isNaN(value));
      const mean = seen.reduce((sum, value) => sum + value, 0) / seen.length;
      const square = seen.reduce((sum, value) => sum + (value - mean) ** 2, 0);
      const deviation = Math.sqrt(square / (seen.length - 1));
      now.forEach((value, w) => {
        lasting[w] = (value - mean) / deviation > threshold ? lasting[w]! + 1 : 0;
        if (lasting[w] >= CONTINUITY_STEPS) found.add(workers[w]!);
      });
    }
  }
  return [...found];
}
