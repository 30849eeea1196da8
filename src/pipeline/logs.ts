/** From paths to the answer about logs, and what is learnt from healthy ones. */
import { UserError } from "../base/errors.ts";
import { unreadable } from "../ingest/logs/files.ts";
import { newPrefix, readPrefix } from "../ingest/logs/prefix.ts";
import { FaultMatchers } from "../library/matcher.ts";
import { shippedRecords } from "../library/shipped.ts";
import {
  categoryOf,
  refuseNormal,
  refuseShipped,
  siteRecord,
  type SiteRecordAbout,
} from "../library/site-record.ts";
import { healthyEvents } from "../methods/logs/analyse-logs.ts";
import { normalPool } from "../methods/logs/normal-pool.ts";
import { templatesOf } from "../methods/logs/templates/templates.ts";
import { type LogKnowledge, withLogReport } from "../methods/logs/log-method.ts";
import { ask, readJob } from "./diagnose.ts";
import { agreed } from "../verdict/log-cause.ts";
import { fuse } from "../verdict/fuse.ts";
import type { FaultRecord } from "../model/fault-record.ts";
import type { Env, Job } from "../model/job.ts";
import type { LogDigest } from "../model/log-digest.ts";
import type { LogReport } from "../model/log-report.ts";
import { EMPTY_STORE, type LogStore, withVotes } from "../model/log-store.ts";
import type { Verdict } from "../model/verdict.ts";

export interface LogsOptions {
  /** Logs of healthy jobs, to compare with. */
  readonly baseline?: readonly string[];
  readonly store?: LogStore;
  readonly workers?: number;
}

export async function logsFromFiles(
  paths: readonly string[],
  options: LogsOptions,
  env: Env,
): Promise<LogReport> {
  const store = options.store ?? EMPTY_STORE;
  const { job, digest } = await jobOfLogs(paths, store.records, options.workers, env);
  const known = await logKnowledge(options, env);
  const { report, verdict } = await verdictOf(job, digest, known, env);
  return agreed(report, verdict, digest);
}

/** What a site knows: its records with people's votes, and what healthy jobs say. */
export async function logKnowledge(options: LogsOptions, env: Env): Promise<LogKnowledge> {
  const { store = EMPTY_STORE, baseline = [], workers } = options;
  const matchers = new FaultMatchers(recordsOf(store));
  const healthy: string[][] = [];
  for (const path of baseline) {
    const sound = await jobOfLogs([path], store.records, workers, env);
    healthy.push(healthyEvents(sound.digest, matchers));
  }
  return { matchers, pool: normalPool(store, healthy) };
}

/** The logs under the paths, read once: what their lines say, and what single ranks tell in them. */
async function jobOfLogs(
  paths: readonly string[],
  records: readonly FaultRecord[],
  workers: number | undefined,
  env: Env,
): Promise<{ job: Job; digest: LogDigest }> {
  const { job, unrecognised } = await readJob(
    { paths, isOfLogs: true, records, ...(workers === undefined ? {} : { workers }) },
    env,
  ).catch((error: unknown) => {
    // What `diagnose` would read does not help a user who asks about logs.
    if (error instanceof UserError && error.exitCode === 3)
      throw noLogs(`no line could be read in ${paths.join(" ")} (${error.message})`);
    throw error;
  });
  const { logDigest } = job;
  if (!logDigest || logDigest.files.every(({ lines }) => lines === 0))
    throw noLogs(`no line could be read in ${paths.join(" ")}`);
  const unread = unrecognised.map((path) => `${path}: it is not text: skipped`);
  const missing = [...job.missing, ...unread, ...(await unreadable(paths)), ...logDigest.missing];
  return { job, digest: { ...logDigest, missing } };
}

function noLogs(what: string): UserError {
  const hint =
    "give it text logs (one file per rank, or merged), dmesg output, .gz of them, or folders";
  return new UserError(what, hint, 3);
}

/** The shipped records and the site's own, as sure as people found them to be. */
export function recordsOf(store: LogStore): FaultRecord[] {
  const own = new Set(store.records.map(({ id }) => id));
  const all = [...shippedRecords().filter(({ id }) => !own.has(id)), ...store.records];
  return all.map((record) => withVotes(record, store.votes[record.id]));
}

/** A record of a site made of one line; throws UserError where it could not tell failures from what healthy jobs say. */
export function recordOfLine(
  line: string,
  about: Omit<SiteRecordAbout, "category"> & { readonly category?: string },
  store: LogStore,
): FaultRecord {
  const prefix = newPrefix();
  readPrefix(line, prefix);
  const text = line.slice(prefix.contentStart);
  const [template] = templatesOf([{ text, count: 1 }]).texts;
  const { category = categoryOf(about.cause ?? "unknown") } = about;
  const record = siteRecord(text, template!, { ...about, category });
  refuseUnfit([record], store);
  return record;
}

/** Records from elsewhere must neither replace ours nor accuse healthy jobs of this site. Throws UserError. */
export function refuseUnfit(records: readonly FaultRecord[], store: LogStore): void {
  refuseShipped(records);
  refuseNormal(records, store);
}

/** What a job says that is taken for healthy, and how it failed if its own logs tell that it did. */
export async function healthyJob(
  path: string,
  store: LogStore,
  env: Env,
): Promise<{ readonly events: readonly string[]; readonly failed: string | null }> {
  const { job, digest } = await jobOfLogs([path], store.records, undefined, env);
  const known = await logKnowledge({ store }, env);
  const { verdict } = await verdictOf(job, digest, known, env);
  return { events: healthyEvents(digest, known.matchers), failed: failureOf(verdict) };
}

async function verdictOf(
  job: Job,
  digest: LogDigest,
  known: LogKnowledge,
  env: Env,
): Promise<{ report: LogReport; verdict: Verdict }> {
  const judged = withLogReport({ ...job, logDigest: digest }, known);
  // Who fell silent, who waits and who was behind: what single ranks tell is judged as `diagnose` does it.
  const { findings, didNotRun } = await ask(judged, env);
  return { report: judged.logReport!, verdict: fuse(judged, findings, didNotRun) };
}

/** In words, with the line that says so; null for a job that neither died nor stood still. */
function failureOf({ kind, suspects: [lead], findings, summary }: Verdict): string | null {
  if (kind !== "crash" && kind !== "hang") return null;
  const of = lead?.evidence ?? findings.map(({ id }) => id);
  const place = findings.find(({ id, at }) => of.includes(id) && at.length > 0)?.at[0];
  return place ? `${place.file}:${place.line}: ${lead?.why ?? summary}` : summary;
}
