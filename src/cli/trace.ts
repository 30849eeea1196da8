/** `faultline trace`: the five metrics of kernel timelines, and regressions against healthy runs. */
import pico from "picocolors";
import { UserError } from "../base/errors.ts";
import { count, harmless } from "../base/text.ts";
import { healthyRuns, keepRun, keyOf, keyWords } from "../history/trace-baselines.ts";
import type { RunProfile } from "../model/trace-profile.ts";
import { type TraceReport, traceDocument } from "../report/trace-document.ts";
import { renderTraceTerminal } from "../report/trace-terminal.ts";
import { judge as judgeTraces } from "../methods/traces/regression-method.ts";
import { kernelClocks } from "../methods/traces/kernel-clocks.ts";
import { ranked as rankedTraces } from "../methods/traces/profile-run.ts";
import { readHealthyRuns, readRun } from "../pipeline/traces.ts";
import { timelinePicture } from "../methods/traces/pictures/timeline.ts";
import { FOUND_SOMETHING, printAnswer, printJson, remarkUnread, writeReport } from "./output.ts";
import { perfettoWords, refuseInput, writePerfetto } from "./perfetto-file.ts";
import { progressEnv } from "./progress.ts";
import type { Io } from "./io.ts";

export interface TraceFlags {
  readonly baseline?: readonly string[];
  readonly store?: string;
  readonly family?: string;
  readonly json?: boolean;
  readonly out?: string;
  readonly perfetto?: string;
  readonly quiet?: boolean;
  readonly exitCode?: boolean;
}

/** Returns the exit status. */
export async function runTrace(
  io: Io,
  paths: readonly string[],
  flags: TraceFlags,
): Promise<number> {
  if (flags.perfetto !== undefined) refuseInput(flags.perfetto, paths);
  const { env, done } = progressEnv(io, flags.quiet === true);
  const { run, kernels, missing, unrecognised, healthy } = await (async () => {
    const read = await readRun(paths, env);
    return {
      ...read,
      healthy: [
        ...(await storedRuns(read.run, flags)),
        ...(await readHealthyRuns(flags.baseline ?? [], env)),
      ],
    };
  })().finally(done);
  const { regressions, distanceMs, notes } = judgeTraces(run, healthy);
  const baseline = healthy.map(({ source }) => source);
  const clocks = flags.perfetto === undefined ? null : kernelClocks(rankedTraces(kernels));
  const report: TraceReport = {
    run,
    baseline,
    regressions,
    distanceMs,
    notes,
    missing,
    ...(clocks ? { clocks } : {}),
  };
  const document = JSON.stringify(traceDocument(report), null, 2);
  if (flags.out !== undefined) {
    const { renderTracePage } = await import("../report/html/trace-page.ts");
    const text = renderTraceTerminal(report, pico.createColors(false), 120);
    const timeline = timelinePicture(kernels, run, regressions);
    await writeReport(flags.out, document, renderTracePage({ report, healthy, timeline, text }));
  }
  if (flags.perfetto !== undefined && clocks)
    await writePerfetto(flags.perfetto, rankedTraces(kernels), clocks);
  printAnswer(io, flags, document, (colours, width) => renderTraceTerminal(report, colours, width));
  if (!flags.json && flags.perfetto !== undefined && clocks)
    io.out.write(`${perfettoWords(flags.perfetto, clocks)}\n`);
  if (!flags.quiet) remarkUnread(io, unrecognised);
  return flags.exitCode && regressions.length > 0 ? FOUND_SOMETHING : 0;
}

async function storedRuns(
  run: RunProfile,
  { store, family = "" }: TraceFlags,
): Promise<readonly RunProfile[]> {
  if (store === undefined) return [];
  const key = keyOf(run, family);
  const runs = await healthyRuns(store, key);
  if (runs.length === 0) {
    throw new UserError(
      `${store} has no healthy run of this kind (${keyWords(key)})`,
      `add one with faultline trace learn --store ${store} PATH…`,
      3,
    );
  }
  return runs;
}

export interface LearnFlags {
  readonly store?: string;
  readonly family?: string;
  readonly json?: boolean;
  readonly quiet?: boolean;
}

/** Returns the exit status. */
export async function runLearn(
  io: Io,
  paths: readonly string[],
  flags: LearnFlags,
): Promise<number> {
  if (flags.store === undefined) {
    throw new UserError("trace learn needs a store", "add --store FILE", 2);
  }
  const { env, done } = progressEnv(io, flags.quiet === true);
  const runs = await readHealthyRuns(paths, env).finally(done);
  const learnt: { key: ReturnType<typeof keyOf>; source: string; ranks: number; runs: number }[] =
    [];
  for (const run of runs) {
    const key = keyOf(run, flags.family ?? "");
    await keepRun(flags.store, key, run);
    const kept = await healthyRuns(flags.store, key);
    learnt.push({ key, source: run.source, ranks: run.ranks.length, runs: kept.length });
  }
  if (flags.json) {
    printJson(io, { schema: "faultline.trace-learn/1", store: flags.store, learnt });
    return 0;
  }
  for (const { key, source, ranks, runs: kept } of learnt)
    io.out.write(
      `learnt ${harmless(source)} (${count(ranks, "rank")}) as ${harmless(keyWords(key))}: ${count(kept, "healthy run")} kept\n`,
    );
  return 0;
}
