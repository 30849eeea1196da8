/** `faultline logs`: what do the logs say, and what is remembered about them. */
import { readFile, writeFile } from "node:fs/promises";
import { basename, resolve } from "node:path";
import { jsonOf } from "../base/json.ts";
import { UserError } from "../base/errors.ts";
import { count, harmless } from "../base/text.ts";
import {
  changeLogStore,
  learnt,
  parseLogStore,
  readLogStore,
  storeText,
  voted,
  whole,
  withImport,
  withoutJob,
} from "../history/log-store-file.ts";
import { withoutSecrets } from "../history/masked-store.ts";
import { parseRecords } from "../library/load.ts";
import { siteRecord } from "../library/site-record.ts";
import { healthyJob, logsFromFiles, recordsOf, refuseUnfit } from "../pipeline/logs.ts";
import type { FaultRecord } from "../model/fault-record.ts";
import { EMPTY_STORE, type LogStore } from "../model/log-store.ts";
import { logsDocument } from "../report/logs-document.ts";
import { renderLogsTerminal } from "../report/logs-terminal.ts";
import { FOUND_SOMETHING, printAnswer, printJson, writeReport } from "./output.ts";
import { progressEnv } from "./progress.ts";
import type { Io } from "./io.ts";

export interface LogsFlags {
  readonly baseline?: readonly string[];
  readonly store?: string;
  readonly workers?: number;
  readonly json?: boolean;
  readonly out?: string;
  readonly quiet?: boolean;
  readonly exitCode?: boolean;
}

/** Returns the exit status. */
export async function runLogs(io: Io, paths: readonly string[], flags: LogsFlags): Promise<number> {
  const store = flags.store === undefined ? EMPTY_STORE : await readLogStore(flags.store, true);
  const { env, done } = progressEnv(io, flags.quiet === true);
  const report = await logsFromFiles(
    paths,
    {
      store,
      baseline: flags.baseline ?? [],
      ...(flags.workers === undefined ? {} : { workers: flags.workers }),
    },
    env,
  ).finally(done);
  const document = JSON.stringify(logsDocument(report), null, 2);
  if (flags.out !== undefined) {
    const { renderLogsPage } = await import("../report/html/logs-page.ts");
    await writeReport(flags.out, document, renderLogsPage(report));
  }
  printAnswer(io, flags, document, (colours, width) => renderLogsTerminal(report, colours, width));
  const isWrong = report.cause !== null || report.indicating.length > 0;
  return flags.exitCode && isWrong ? FOUND_SOMETHING : 0;
}

export interface StoreFlags {
  readonly store?: string;
  readonly json?: boolean;
  readonly quiet?: boolean;
  readonly note?: string;
}

function storeOf(flags: StoreFlags, what: string): string {
  if (flags.store !== undefined) return flags.store;
  throw new UserError(`logs ${what} needs a store`, "add --store FILE", 2);
}

/** Every path is a healthy job; one whose own logs tell of a failure is not learnt from. */
export async function runLogsLearn(
  io: Io,
  paths: readonly string[],
  flags: StoreFlags,
): Promise<number> {
  const file = storeOf(flags, "learn");
  const before = await readLogStore(file);
  const { env, done } = progressEnv(io, flags.quiet === true);
  const read: { path: string; events: readonly string[] }[] = [];
  const refused: { job: string; why: string }[] = [];
  try {
    for (const path of paths) {
      const { events, failed } = await healthyJob(path, before, env);
      if (failed === null) read.push({ path, events });
      else refused.push({ job: path, why: failed });
    }
  } finally {
    done();
  }
  const words = refused.map(({ job, why }) => `${job} is no healthy job: ${why}`);
  if (read.length === 0)
    throw new UserError(`nothing was learnt: ${words.join("; ")}`, DISPUTE_HINT, 3);
  for (const one of words) io.err.write(`warning: not learnt: ${harmless(one)}\n`);
  const jobs: { job: string; events: number; fresh: number }[] = [];
  const store = await changeLogStore(file, (known) =>
    read.reduce((sum, { path, events }) => {
      const fresh = events.filter((text) => !Object.hasOwn(sum.normal, text)).length;
      jobs.push({ job: path, events: events.length, fresh });
      return learnt(sum, resolve(path), events);
    }, known),
  );
  if (flags.json) printJson(io, { schema: "faultline.logs-learn/1", store: file, jobs, refused });
  else {
    for (const { job, events, fresh } of jobs)
      io.out.write(`learnt ${harmless(job)}: ${count(events, "event")}, ${fresh} of them new\n`);
    io.out.write(
      `${harmless(file)}: ${count(store.jobs.length, "healthy job")}, ${count(Object.keys(store.normal).length, "normal event")}\n`,
    );
  }
  return 0;
}

const DISPUTE_HINT =
  "give it jobs that ended well; if the line is harmless here, run faultline logs dispute";

/** What people say of a record counts like evidence. `what` is a record's id, or a report to make a record of. */
export async function runLogsVote(
  io: Io,
  kind: "confirmed" | "disputed",
  what: string,
  flags: StoreFlags & PatternFlags,
): Promise<number> {
  const file = storeOf(flags, kind === "confirmed" ? "confirm" : "dispute");
  let id = what;
  let pattern: FaultRecord | null = null;
  if (kind === "confirmed" && what.endsWith(".json")) {
    pattern = recordOfReport(await textOf(what), what, flags);
    ({ id } = pattern);
  }
  const store = await changeLogStore(file, (known) => {
    const extended = pattern
      ? { ...known, records: [...known.records.filter((one) => one.id !== id), pattern] }
      : known;
    const all = whole(extended);
    if (pattern) refuseUnfit([pattern], all);
    if (!recordsOf(all).some((record) => record.id === id)) throw unknownRecord(id, all);
    return voted(extended, id, kind, flags.note ?? "");
  });
  const all = whole(store);
  const record = recordsOf(all).find((one) => one.id === id)!;
  const { confirmed, disputed } = all.votes[id]!;
  if (flags.json)
    printJson(io, { schema: "faultline.logs-vote/1", id, confirmed, disputed, record });
  else
    io.out.write(
      `${harmless(id)}: confirmed ${confirmed}, disputed ${disputed}; its certainty is now ${record.certainty.toFixed(2)}\n`,
    );
  return 0;
}

export interface PatternFlags {
  readonly id?: string;
  readonly category?: string;
  readonly title?: string;
  readonly action?: string;
  readonly owner?: string;
  /** Which of the report's indicating lines, from 1. */
  readonly line?: number;
}

function recordOfReport(text: string, file: string, flags: PatternFlags): FaultRecord {
  const report = jsonOf(text) as
    | { schema?: string; indicating?: { text?: string; template?: string }[] }
    | undefined;
  if (report === undefined)
    throw new UserError(`${file} is not JSON`, "give the verdict.json of faultline logs --out", 3);
  if (report.schema !== "faultline.logs/1")
    throw new UserError(`${file} is not a report of faultline logs`, "give its verdict.json", 3);
  const place = (flags.line ?? 1) - 1;
  const line = report.indicating?.[place];
  if (!line?.text || !line.template)
    throw new UserError(`${file} has no indicating line ${place + 1}`, "choose one with --line", 2);
  const { category, title, action } = flags;
  if (category === undefined || title === undefined || action === undefined)
    throw new UserError(
      "a new signature needs --category, --title and --action",
      "for example --category hardware.network --title 'leaf 3 flaps' --action 'drain it'",
      2,
    );
  return siteRecord(line.text, line.template, { ...flags, category, title, action });
}

function unknownRecord(id: string, store: LogStore): UserError {
  const given = id.toLowerCase();
  const last = given.split(".").at(-1)!;
  const ids = recordsOf(store).map((record) => record.id);
  const near = [
    ...ids.filter((one) => one.includes(given)).sort((a, b) => a.length - b.length),
    ...ids.filter((one) => one.split(".").includes(last)),
  ].slice(0, 3);
  const hint =
    near.length > 0
      ? `did you mean ${near.join(" or ")}?`
      : '"signature" in the output of faultline logs --json names a record';
  return new UserError(`the library has no record "${id}"`, hint, 2);
}

export interface ExportFlags extends StoreFlags {
  readonly all?: boolean;
  readonly texts?: boolean;
  readonly unmasked?: boolean;
}

/** The site's own knowledge, or with `all` the whole library, as a file for others. */
export async function runLogsExport(
  io: Io,
  target: string | undefined,
  flags: ExportFlags,
): Promise<number> {
  const store = flags.store === undefined ? EMPTY_STORE : await readLogStore(flags.store, true);
  if (flags.store === undefined && !flags.all)
    throw new UserError(
      "nothing to export",
      "add --store FILE, or --all for the shipped records",
      2,
    );
  const text = flags.all
    ? JSON.stringify(recordsOf(store), null, 1)
    : storeText(flags.unmasked ? store : withoutSecrets(store, [], flags.texts === true));
  if (target === undefined) io.out.write(`${text}\n`);
  else {
    try {
      await writeFile(target, `${text}\n`);
    } catch (error) {
      throw new UserError(
        `cannot write ${target}: ${(error as Error).message}`,
        "give a writable path",
      );
    }
  }
  return 0;
}

/** A list of records, or an exported store. */
export async function runLogsImport(io: Io, source: string, flags: StoreFlags): Promise<number> {
  const file = storeOf(flags, "import");
  const text = await textOf(source);
  const given: LogStore = text.trimStart().startsWith("[")
    ? { ...EMPTY_STORE, records: parseRecords(text, basename(source)) }
    : whole(parseLogStore(text, source));
  const about = { from: resolve(source), who: "", atMs: Date.now() };
  await changeLogStore(file, (known) => {
    refuseUnfit(given.records, whole(known));
    return withImport(known, given, about);
  });
  const said = `${count(given.records.length, "record")}, ${count(Object.keys(given.normal).length, "normal event")} and ${count(Object.keys(given.votes).length, "vote")} imported`;
  if (flags.json)
    printJson(io, {
      schema: "faultline.logs-import/1",
      store: file,
      records: given.records.length,
    });
  else io.out.write(`${said} into ${harmless(file)}\n`);
  return 0;
}

/** Takes back a job that was learnt, or an import: by its name, its path or its id. */
export async function runLogsForget(io: Io, what: string, flags: StoreFlags): Promise<number> {
  const file = storeOf(flags, "forget");
  const names = new Set([what, resolve(what)]);
  let said: string[] = [];
  await changeLogStore(file, (store) => {
    const given = store.imports.filter(({ id, from }) => names.has(id) || names.has(from));
    const learntJobs = store.jobs.filter((job) => names.has(job));
    if (given.length + learntJobs.length === 0) throw nothingSuch(what, file, store);
    const imports = store.imports.filter((one) => !given.includes(one));
    const rest = learntJobs.reduce(withoutJob, { ...store, imports });
    const jobs = store.jobs.filter((job) => !rest.jobs.includes(job));
    said = [...jobs, ...given.map(({ id, from }) => `import ${id} from ${from}`)];
    return rest;
  });
  if (flags.json)
    printJson(io, { schema: "faultline.logs-forget/1", store: file, forgotten: said });
  else for (const one of said) io.out.write(`forgotten: ${harmless(one)}\n`);
  return 0;
}

const MOST_NAMED = 5;

function nothingSuch(what: string, file: string, { jobs, imports }: LogStore): UserError {
  const there = [...imports.map(({ id, from }) => `${id} (${from})`), ...jobs];
  const more = there.length > MOST_NAMED ? ", …" : "";
  const hint =
    there.length === 0
      ? "it has neither"
      : `it has ${there.slice(-MOST_NAMED).toReversed().join(", ")}${more}`;
  return new UserError(`${file} has learnt no job ${what}, and imported no such thing`, hint, 2);
}

async function textOf(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new UserError(`cannot read ${file}: ${(error as Error).message}`, "check the path", 3);
  }
}
