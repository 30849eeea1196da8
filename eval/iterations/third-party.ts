/** Others' series with known answers, read from their archives by our own readers. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { openFile } from "../../src/ingest/sources.ts";
import type { TrackedSeries } from "../../src/model/series.ts";
import { readJob } from "../../src/pipeline/diagnose.ts";

const env = { signal: new AbortController().signal, progress: () => undefined };

async function trackedIn(path: string): Promise<readonly TrackedSeries[]> {
  return (await readJob({ paths: [path] }, env)).job.iterations;
}

function missing(path: string): string {
  return `not here: ${path}\n`;
}

/** Megatron's log of 128 GPUs with nine injected slow episodes: 18 change points. */
export async function pipemorph(folder: string): Promise<string> {
  const path = join(folder, "iterations-pipemorph.tar.gz");
  if (!existsSync(path)) return missing("iterations-pipemorph.tar.gz");
  const truth: number[] = [];
  await openFile(
    path,
    async (file) => {
      if (!file.path.endsWith(".trace")) return;
      const chunks: Uint8Array[] = [];
      for await (const chunk of file.chunks) chunks.push(chunk);
      for (const line of Buffer.concat(chunks).toString().trim().split("\n")) {
        const [at, , delay] = line.split(";");
        if (delay !== "inf") truth.push(Number(at));
      }
    },
    () => undefined,
  );
  const [tracked] = await trackedIn(path);
  const changes = tracked?.changePoints ?? [];
  const rows = truth.map((at) => {
    const found = changes.find(({ iteration }) => iteration >= at && iteration <= at + 3);
    return { at, found };
  });
  const within = rows.filter(({ at, found }) => found && found.iteration - at <= 2).length;
  const others = changes.filter((change) => !rows.some(({ found }) => found === change));
  const delays = rows.flatMap(({ found }) => (found ? [found.detectedAt - found.iteration] : []));
  return [
    `${within} of ${truth.length} change points within 2 iterations of the injection, ${others.length} others; known ${Math.min(...delays)} to ${Math.max(...delays)} iterations after the first changed one; restarts at ${tracked?.restarts.join() || "none"}`,
    "",
    "| injected at | we say | known at | before ms | after ms |",
    "|---|---|---|---|---|",
    ...rows.map(
      ({ at, found }) =>
        `| ${at} | ${found?.iteration ?? "missed"} | ${found?.detectedAt ?? ""} | ${found?.beforeMs.toFixed(0) ?? ""} | ${found?.afterMs.toFixed(0) ?? ""} |`,
    ),
    "",
  ].join("\n");
}

/** Healthy series, mostly: every alarm is listed with its shift. */
export async function golden(folder: string): Promise<string> {
  const path = join(folder, "iterations-megatron-golden.tar.gz");
  if (!existsSync(path)) return missing("iterations-megatron-golden.tar.gz");
  const all = await trackedIn(path);
  const alarmed = all.filter(({ changePoints }) => changePoints.length > 0);
  // A level shift by another measure than ours: medians of five points, five apart, in the same run.
  const quiet = alarmed.filter((tracked) => largestShift(tracked) < 1.1);
  return [
    `${all.length} series, ${alarmed.length} with an alarm, ${quiet.length} of them without a level shift over 10 % (largest ratio of the medians of five points before and after any point of the series)`,
    "",
    "| series | alarms (iteration: before → after ms) | largest shift |",
    "|---|---|---|",
    ...alarmed.map((tracked) => {
      const name = tracked.series.file.split("/").at(-1)!.replace(".json", "");
      const list = tracked.changePoints.map(
        ({ iteration, beforeMs, afterMs, ratio }) =>
          `${iteration}: ${beforeMs.toFixed(0)} → ${afterMs.toFixed(0)} (×${ratio.toFixed(2)})`,
      );
      return `| ${name} | ${list.join("; ")} | ×${largestShift(tracked).toFixed(2)} |`;
    }),
    "",
  ].join("\n");
}

function largestShift({ series, levelMs }: TrackedSeries): number {
  const times = [...series.durationMs].filter((_, i) => !Number.isNaN(levelMs[i]!));
  const middle = (from: number): number =>
    times.slice(from, from + 5).toSorted((a, b) => a - b)[2]!;
  let most = 1;
  for (let i = 0; i + 10 <= times.length; i++) {
    const ratio = middle(i + 5) / middle(i);
    most = Math.max(most, ratio, 1 / ratio);
  }
  return most;
}

/** Per-worker times: job 1 has one straggler, worker 6; job 2 is unbalanced but steady. */
export async function alibaba(folder: string): Promise<string> {
  const path = join(folder, "straggler-alibaba.tar.gz");
  if (!existsSync(path)) return missing("straggler-alibaba.tar.gz");
  const all = await trackedIn(path);
  const blamed = (job: string): string =>
    all
      .filter(({ series, changePoints }) => series.file.includes(job) && changePoints.length > 0)
      .map(({ series }) => String(series.rank))
      .join() || "nobody";
  return `job 1 → worker ${blamed("job_1")} (truth: 6); job 2 → ${blamed("job_2")} (truth: nobody)\n`;
}
