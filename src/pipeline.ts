/** The whole system on one screen: bytes → readings → job → findings → verdict. */
import { buildJob } from "./ingest/build-job.ts";
import { ingest } from "./ingest/ingest.ts";
import { readJobFile, type JobFile } from "./ingest/job-file.ts";
import { METHODS, withIterations } from "./methods/methods.ts";
import type { Finding } from "./model/finding.ts";
import type { Env, Job } from "./model/job.ts";
import type { Verdict } from "./model/verdict.ts";
import { fuse } from "./verdict/fuse.ts";

export interface Diagnosis {
  readonly job: Job;
  readonly verdict: Verdict;
  readonly findings: readonly Finding[];
  /** Files that no reader recognised. */
  readonly unrecognised: readonly string[];
}

export interface DiagnoseOptions {
  readonly paths: readonly string[];
  readonly jobFile?: string;
  /** A regular expression for iteration lines, with a group named "iteration" (ingest/iteration-pattern.ts). */
  readonly pattern?: string;
}

export async function diagnose(options: DiagnoseOptions, env: Env): Promise<Diagnosis> {
  const { job, unrecognised } = await readJob(options, env);
  const { findings, didNotRun } = await ask(job, env);
  return { job, verdict: fuse(job, findings, didNotRun), findings, unrecognised };
}

/** Everything before the questions: the job, with its iterations followed. */
export async function readJob(
  options: DiagnoseOptions,
  env: Env,
): Promise<{ job: Job; unrecognised: readonly string[] }> {
  const given = options.jobFile === undefined ? null : await readJobFile(options.jobFile);
  const { readings, unrecognised } = await ingest(options.paths, env, options);
  const jobFile = given ?? (await findJobFile(unrecognised));
  return { job: withIterations(buildJob(readings, jobFile)), unrecognised };
}

/** A job.json that lies among the inputs is used without being asked for, if it is one. */
async function findJobFile(files: readonly string[]): Promise<JobFile | null> {
  const path = files.find((file) => /(^|\/)job\.json$/.test(file));
  return path === undefined ? null : await readJobFile(path).catch(() => null);
}

/** Runs every method that the inputs allow. One that fails is reported; the others go on. */
export async function ask(
  job: Job,
  env: Env,
): Promise<{ findings: Finding[]; didNotRun: string[] }> {
  const findings: Finding[] = [];
  const didNotRun: string[] = [];
  for (const [index, method] of METHODS.entries()) {
    env.progress("asking", index, METHODS.length);
    if (!method.applies(job)) continue;
    try {
      for await (const finding of method.run(job, env)) {
        findings.push({ ...finding, id: `f${findings.length + 1}`, method: method.id });
      }
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      didNotRun.push(`${method.id} did not run: ${why}`);
    }
  }
  env.progress("asking", METHODS.length, METHODS.length);
  return { findings, didNotRun };
}
