/** Iteration times from operator records alone, beside what the log says (Greyhound's figure 13). */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { TrackedSeries } from "../../src/model/series.ts";
import { readJob } from "../../src/pipeline/diagnose.ts";
import { simulatedJob } from "./simulated.ts";

const env = { signal: new AbortController().signal, progress: () => undefined };

export async function recordings(folder: string): Promise<string> {
  if (!existsSync(folder)) return `not here: ${folder}\n`;
  const rows: string[] = [];
  for (const name of readdirSync(folder).filter((file) => /^slow-.*\.tar\.gz$/.test(file))) {
    const { job } = await readJob({ paths: [join(folder, name)] }, env);
    const pairs = pairsOf(job.iterations);
    const errors = pairs.map(([told, found]) => Math.abs(meanOf(found) / meanOf(told) - 1));
    const one = pairs.flatMap(([told, found]) => differences(told, found));
    rows.push(
      `| ${name.replace(".tar.gz", "")} | ${pairs.length} | ${percent(Math.max(...errors))} | ${percent(middle(one))} | ${job.iterations.find(({ periods }) => periods.length > 0)?.periods.join(", ") ?? ""} |`,
    );
  }
  return [
    "| recording | ranks with both | largest error of the mean | median error of single iterations | periods (calls) |",
    "|---|---|---|---|---|",
    ...rows,
    "",
  ].join("\n");
}

/** Every rank that has a log and operators. */
function pairsOf(all: readonly TrackedSeries[]): [TrackedSeries, TrackedSeries][] {
  return all
    .filter(({ series }) => series.basis !== "operators")
    .flatMap((told): [TrackedSeries, TrackedSeries][] => {
      const found = all.find(
        ({ series }) => series.basis === "operators" && series.rank === told.series.rank,
      );
      return found ? [[told, found]] : [];
    });
}

/** Mean over the iterations from the third on: the first two warm up. */
function meanOf({ series }: TrackedSeries): number {
  const times = [...series.durationMs].filter(
    (time, i) => series.iteration[i]! > 2 && Number.isFinite(time),
  );
  return times.reduce((sum, time) => sum + time, 0) / times.length;
}

function differences(told: TrackedSeries, found: TrackedSeries): number[] {
  const byIteration = new Map([...told.series.iteration].map((n, i) => [n, i]));
  return [...found.series.iteration].flatMap((n, i) => {
    const at = byIteration.get(n);
    if (at === undefined || n <= 2) return [];
    const error = Math.abs(found.series.durationMs[i]! / told.series.durationMs[at]! - 1);
    return Number.isFinite(error) ? [error] : [];
  });
}

const LAYOUTS: readonly (readonly [string, Readonly<Record<string, number | string>>])[] = [
  ["4T1D1P", { tp: 4, dp: 1, pp: 1 }],
  ["1T4D1P", { tp: 1, dp: 4, pp: 1 }],
  ["1T1D4P", { tp: 1, dp: 1, pp: 4 }],
  ["2T2D1P", { tp: 2, dp: 2, pp: 1 }],
  ["2T1D2P", { tp: 2, dp: 1, pp: 2 }],
  ["1T2D2P", { tp: 1, dp: 2, pp: 2 }],
  ["2T2D2P", { tp: 2, dp: 2, pp: 2 }],
  ["2T4D1P", { tp: 2, dp: 4, pp: 1 }],
  ["2T4D2P, 32 micro-batches", { tp: 2, dp: 4, pp: 2, microBatches: 32 }],
  ["2T4D4P interleaved", { tp: 2, dp: 4, pp: 4, schedule: "interleaved" }],
  ["2T2D4P gpipe", { tp: 2, dp: 2, pp: 4, schedule: "gpipe" }],
  ["2T8D2P, 4 experts", { tp: 2, dp: 8, pp: 2, ep: 4 }],
  ["2T2D2P, context 2", { tp: 2, dp: 2, pp: 2, cp: 2 }],
  ["8T16D2P", { tp: 8, dp: 16, pp: 2 }],
];

/** From the ring that a flight recorder keeps (2,000 entries), and from all operators. */
export function layouts(seeds: readonly number[]): string {
  const rows = LAYOUTS.map(([name, layout]) => {
    const cells = ["flight-recorder", "operators"].map((emit) => {
      const errors = seeds.flatMap((seed) => errorsOf({ ...layout, iterations: 30, seed }, emit));
      return errors.length === 0 ? "no period" : percent(Math.max(...errors));
    });
    return `| ${name} | ${seeds.length} | ${cells.join(" | ")} |`;
  });
  return [
    "| layout | jobs | largest error of the mean of any rank: flight recorder | all operators |",
    "|---|---|---|---|",
    ...rows,
    "",
  ].join("\n");
}

/** By rank: the mean over the iterations found, against the mean over the same iterations. */
function errorsOf(changes: Readonly<Record<string, unknown>>, emit: string): number[] {
  const { iterationMs, tracked } = simulatedJob(changes, emit);
  return tracked
    .filter(({ series }) => series.basis === "operators")
    .map(({ series }) => {
      let found = 0;
      let truth = 0;
      for (const [k, n] of series.iteration.entries()) {
        if (n <= 2 || !Number.isFinite(series.durationMs[k])) continue;
        found += series.durationMs[k]!;
        truth += iterationMs[n - 1] ?? 0;
      }
      return Math.abs(found / truth - 1);
    });
}

function percent(value: number): string {
  return `${(100 * value).toFixed(2)} %`;
}

function middle(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN;
}
