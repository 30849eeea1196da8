/** The whole system on one screen: bytes → readings → job → findings → verdict. */
import { setImmediate } from "node:timers/promises";
import { errorText } from "../base/errors.ts";
import { buildJob } from "../ingest/build-job.ts";
import { ingest } from "../ingest/ingest.ts";
import type { ReadOptions } from "../ingest/iteration-pattern.ts";
import { type JobFile, readJobFile } from "../ingest/job-file.ts";
import { METHODS, withIterations } from "../methods/methods.ts";
import { type LogKnowledge, withLogReport } from "../methods/logs/log-method.ts";
import type { Finding } from "../model/finding.ts";
import type { Env, Job } from "../model/job.ts";
import type { Method } from "../model/method.ts";
import type { Verdict } from "../model/verdict.ts";
import { isPlan, planForVerdict } from "../mitigate/from-verdict.ts";
import { actionsOf } from "../mitigate/mitigation.ts";
import { readHealthyRuns } from "./traces.ts";
import { fuse } from "../verdict/fuse.ts";

export interface Diagnosis {
  readonly job: Job;
  readonly verdict: Verdict;
  readonly findings: readonly Finding[];
  /** Files that no reader recognised. */
  readonly unrecognised: readonly string[];
}

export interface DiagnoseOptions extends ReadOptions {
  readonly paths: readonly string[];
  /** Healthy runs of the same job; their traces are what the job's are compared with. */
  readonly baseline?: readonly string[];
  readonly jobFile?: string;
  /** What the site knows of logs beside the shipped records. */
  readonly logKnowledge?: LogKnowledge;
}

export async function diagnose(options: DiagnoseOptions, env: Env): Promise<Diagnosis> {
  const { job: read, unrecognised } = await readJob(options, env);
  const compared = await withBaseline(read, options.baseline ?? [], env);
  const job = withLogReport(compared, options.logKnowledge);
  const { findings, didNotRun } = await ask(job, env);
  const verdict = withMitigation(job, fuse(job, findings, didNotRun));
  return { job, verdict, findings, unrecognised };
}

/** How to live with a slowdown until it is fixed (Greyhound §5); nothing where nothing can be planned. */
export function withMitigation(job: Job, verdict: Verdict): Verdict {
  const plan = planForVerdict(job, verdict);
  if (!isPlan(plan)) return verdict;
  return { ...verdict, actions: [...verdict.actions, ...actionsOf(plan)], mitigation: plan };
}

/** A baseline that cannot be used is said, not fatal: the other methods need none. */
async function withBaseline(job: Job, paths: readonly string[], env: Env): Promise<Job> {
  if (paths.length === 0) return job;
  if (!job.kernels?.some(({ gpu }) => gpu.count > 0)) {
    const why = "the baseline is not used: the job left no profiler traces to compare with it";
    return { ...job, missing: [...job.missing, why] };
  }
  return { ...job, traceBaseline: await readHealthyRuns(paths, env) };
}

/** Everything before the questions: the job, with its iterations followed. */
export async function readJob(
  options: DiagnoseOptions,
  env: Env,
): Promise<{ job: Job; unrecognised: readonly string[] }> {
  const given = options.jobFile === undefined ? null : await readJobFile(options.jobFile);
  const { readings, unrecognised, logDigest } = await ingest(options.paths, env, options);
  const found = given ? null : await findJobFile(unrecognised);
  const job = withIterations(buildJob(readings, given ?? found?.jobFile ?? null));
  return {
    job: logDigest ? { ...job, logDigest } : job,
    unrecognised: unrecognised.filter((path) => path !== found?.path && !isTruth(path)),
  };
}

/** What the simulator writes to check the answer with; it is not read, and not worth a remark. */
function isTruth(path: string): boolean {
  return /(^|\/)truth\.json$/.test(path);
}

/** A job.json that lies among the inputs is used without being asked for, if it is one. */
async function findJobFile(
  files: readonly string[],
): Promise<{ path: string; jobFile: JobFile } | null> {
  const path = files.find((file) => /(^|\/)job\.json$/.test(file));
  const jobFile = path === undefined ? null : await readJobFile(path).catch(() => null);
  return path !== undefined && jobFile ? { path, jobFile } : null;
}

/** Runs every method that the inputs allow. One that fails is reported; the others go on. */
export async function ask(
  job: Job,
  env: Env,
  methods: readonly Method[] = METHODS,
): Promise<{ findings: Finding[]; didNotRun: string[] }> {
  const findings: Finding[] = [];
  const didNotRun: string[] = [];
  for (const [index, method] of methods.entries()) {
    env.progress("methods", index, methods.length);
    if (!method.applies(job)) continue;
    // The live service has agents and people to answer meanwhile.
    await setImmediate();
    try {
      for await (const finding of method.run(job, env)) {
        findings.push({ ...finding, id: `f${findings.length + 1}`, method: method.id });
      }
    } catch (error) {
      didNotRun.push(`${method.id} did not run: ${errorText(error)}`);
    }
  }
  env.progress("methods", methods.length, methods.length);
  return { findings, didNotRun };
}
