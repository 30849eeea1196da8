/** `faultline logs`: what do the logs say, and what is remembered about them. */
import { readFile, writeFile } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import pico from "picocolors";
import { UserError } from "../base/errors.ts";
import { count, harmless } from "../base/text.ts";
import {
  changeLogStore,
  learnt,
  merged,
  parseLogStore,
  readLogStore,
  storeText,
  voted,
} from "../history/log-store-file.ts";
import { parseRecords } from "../library/load.ts";
import { FaultMatchers } from "../library/matcher.ts";
import { shippedRecords } from "../library/shipped.ts";
import { logsFromFiles, normalEvents, recordsOf } from "../pipeline/logs.ts";
import type { FaultRecord } from "../model/fault-record.ts";
import { EMPTY_STORE, type LogStore } from "../model/log-store.ts";
import { logsDocument } from "../report/logs-document.ts";
import { renderLogsTerminal } from "../report/logs-terminal.ts";
import { type PatternFlags, recordOfReport } from "./logs-pattern.ts";
import { FOUND_SOMETHING, screenWidth, wantsColour, writeReport } from "./output.ts";
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
  if (flags.json) io.out.write(`${document}\n`);
  else {
    const colours = pico.createColors(wantsColour(io));
    io.out.write(`${renderLogsTerminal(report, colours, screenWidth(io))}\n`);
    if (flags.out !== undefined)
      io.out.write(`report: ${harmless(join(flags.out, "report.html"))}\n`);
  }
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
  throw new UserError(`logs ${what} has no store to work on`, "add --store FILE", 2);
}

/** Every path is a healthy job. */
export async function runLogsLearn(
  io: Io,
  paths: readonly string[],
  flags: StoreFlags,
): Promise<number> {
  const file = storeOf(flags, "learn");
  const before = await readLogStore(file);
  const { env, done } = progressEnv(io, flags.quiet === true);
  const read: { path: string; events: string[] }[] = [];
  try {
    for (const path of paths) read.push({ path, events: await normalEvents(path, before, env) });
  } finally {
    done();
  }
  const jobs: { job: string; events: number; fresh: number }[] = [];
  const store = await changeLogStore(file, (known) =>
    read.reduce((sum, { path, events }) => {
      const fresh = events.filter((text) => !Object.hasOwn(sum.normal, text)).length;
      jobs.push({ job: path, events: events.length, fresh });
      return learnt(sum, resolve(path), events);
    }, known),
  );
  if (flags.json) say(io, { schema: "faultline.logs-learn/1", store: file, jobs });
  else {
    for (const { job, events, fresh } of jobs)
      io.out.write(`learnt ${harmless(job)}: ${count(events, "event")}, ${fresh} of them new\n`);
    io.out.write(
      `${harmless(file)}: ${count(store.jobs.length, "healthy job")}, ${count(Object.keys(store.normal).length, "normal event")}\n`,
    );
  }
  return 0;
}

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
    refuseShipped([pattern]);
  }
  const store = await changeLogStore(file, (known) => {
    const extended = pattern
      ? { ...known, records: [...known.records.filter((one) => one.id !== id), pattern] }
      : known;
    if (pattern) refuseNormal(pattern, known);
    if (!recordsOf(extended).some((record) => record.id === id)) throw unknownRecord(id, extended);
    return voted(extended, id, kind, flags.note ?? "");
  });
  const record = recordsOf(store).find((one) => one.id === id)!;
  const { confirmed, disputed } = store.votes[id]!;
  if (flags.json) say(io, { schema: "faultline.logs-vote/1", id, confirmed, disputed, record });
  else
    io.out.write(
      `${harmless(id)}: confirmed ${confirmed}, disputed ${disputed}; it now counts for ${record.certainty.toFixed(2)}\n`,
    );
  return 0;
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

/** The site's own knowledge, or with `all` the whole library, as a file for others. */
export async function runLogsExport(
  io: Io,
  target: string | undefined,
  flags: StoreFlags & { readonly all?: boolean },
): Promise<number> {
  const store = flags.store === undefined ? EMPTY_STORE : await readLogStore(flags.store, true);
  if (flags.store === undefined && !flags.all)
    throw new UserError(
      "nothing to export",
      "add --store FILE, or --all for the shipped records",
      2,
    );
  const text = flags.all ? JSON.stringify(recordsOf(store), null, 1) : storeText(store);
  if (target === undefined) io.out.write(`${text}\n`);
  else {
    try {
      await writeFile(target, `${text}\n`);
    } catch (error) {
      throw new UserError(
        `${target}: cannot be written: ${(error as Error).message}`,
        "give it a path that can be written",
      );
    }
  }
  return 0;
}

/** A list of records, or a store that somebody exported. */
export async function runLogsImport(io: Io, source: string, flags: StoreFlags): Promise<number> {
  const file = storeOf(flags, "import");
  const text = await textOf(source);
  const given: LogStore = text.trimStart().startsWith("[")
    ? { ...EMPTY_STORE, records: parseRecords(text, basename(source)) }
    : parseLogStore(text, source);
  refuseShipped(given.records);
  await changeLogStore(file, (known) => merged(known, given));
  const said = `${count(given.records.length, "record")}, ${count(Object.keys(given.normal).length, "normal event")} and ${count(Object.keys(given.votes).length, "vote")} imported`;
  if (flags.json)
    say(io, { schema: "faultline.logs-import/1", store: file, records: given.records.length });
  else io.out.write(`${said} into ${harmless(file)}\n`);
  return 0;
}

/** A site's own record must not take the place of one that comes with Faultline unnoticed. */
function refuseShipped(records: readonly FaultRecord[]): void {
  const shipped = new Set(shippedRecords().map(({ id }) => id));
  const taken = records.filter(({ id }) => shipped.has(id)).map(({ id }) => id);
  if (taken.length > 0)
    throw new UserError(
      `${taken.slice(0, 3).join(", ")}: Faultline has a record of that id`,
      "give yours another id (site.…), and say faultline logs dispute where ours is wrong",
      2,
    );
}

/** A pattern that healthy jobs match would accuse them. */
function refuseNormal(pattern: FaultRecord, { normal }: LogStore): void {
  const matchers = new FaultMatchers([pattern]);
  const event = Object.keys(normal).find((text) => matchers.match(text).length > 0);
  if (event !== undefined)
    throw new UserError(
      `healthy jobs write that, too: ${event.slice(0, 100)}`,
      "choose another line with --line",
      2,
    );
}

async function textOf(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new UserError(
      `${file}: cannot be read: ${(error as Error).message}`,
      "check the path",
      3,
    );
  }
}

function say(io: Io, document: unknown): void {
  io.out.write(`${JSON.stringify(document, null, 2)}\n`);
}
