/**
 * The history as a plain file, a JSON line a write: for the single executable and for installations without DuckDB. All of it
 * is in memory, so that it suits a team's jobs, not a fleet's years. A write has resolved when its line is on the disk; a
 * line that was cut off by a crash is left out at the next start. The file is rewritten at the start and when it has grown
 * to a multiple of what it holds, without what was replaced since; it is one process's alone (an exclusive lock file that
 * names it).
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { open, rename, stat, writeFile, type FileHandle } from "node:fs/promises";
import { getOrInsert } from "../base/group-by.ts";
import { errorText, UserError } from "../base/errors.ts";
import { fitsAny } from "../base/patterns.ts";
import type { Incident } from "../model/incident.ts";
import { groupWrites } from "./group-writes.ts";
import type { AuditRow, IterationRows, JobRow, LocalStore, Offender, RowAt } from "./history.ts";
import { StoreInUse } from "./in-use.ts";
import {
  bound,
  documentText,
  keyText,
  rowLimit,
  storedAudit,
  storedIncident,
  storedIterations,
  storedJob,
  type StoredAudit,
  type StoredIncident,
  type StoredJob,
} from "./stored-rows.ts";

/** Of the file, in its first line. Files without one are of version 1. */
const VERSION = 1;

type Line =
  | { readonly to: "version"; readonly version: number }
  | { readonly to: "job"; readonly row: StoredJob }
  | { readonly to: "incident"; readonly row: StoredIncident }
  | { readonly to: "audit"; readonly row: StoredAudit }
  | { readonly to: "document"; readonly key: string; readonly text: string | null }
  /** [iteration, end, duration] of each. */
  | { readonly to: "iterations"; readonly run: string; readonly rows: readonly number[][] }
  | { readonly to: "prune" | "pruneIncidents"; readonly beforeMs: number };

/** Iterations of a run that are kept in memory; older ones are forgotten first. */
const MOST_ITERATIONS = 200_000;

/** Of the iterations that are left, the share that goes at once where the file is too large. */
const SHRINK_SHARE = 0.2;
/** A file is not rewritten for less. */
const LEAST_REWRITE_BYTES = 64 << 20;

class Tables {
  readonly jobs = new Map<string, StoredJob>();
  readonly incidents = new Map<string, Map<number, StoredIncident>>();
  readonly audit = new Map<string, StoredAudit>();
  readonly documents = new Map<string, string>();
  readonly iterations = new Map<string, Map<number, readonly number[]>>();

  apply(line: Line): void {
    if (line.to === "job") {
      const key = runKey(line.row.job, line.row.run);
      if (!((this.jobs.get(key)?.seenMs ?? -Infinity) > line.row.seenMs))
        this.jobs.set(key, line.row);
    } else if (line.to === "incident") {
      const { id, revision } = line.row;
      const revisions = getOrInsert(this.incidents, id, () => new Map<number, StoredIncident>());
      getOrInsert(revisions, revision, () => line.row);
    } else if (line.to === "audit") {
      if (!this.audit.has(line.row.id)) this.audit.set(line.row.id, line.row);
    } else if (line.to === "document") {
      if (line.text === null) this.documents.delete(line.key);
      else this.documents.set(line.key, line.text);
    } else if (line.to === "iterations") this.#addIterations(line.run, line.rows);
    else if (line.to === "prune") {
      for (const rows of this.iterations.values())
        for (const [iteration, [, endMs]] of rows)
          if (endMs! < line.beforeMs) rows.delete(iteration);
    } else if (line.to === "pruneIncidents") this.#pruneIncidents(line.beforeMs);
  }

  #pruneIncidents(beforeMs: number): void {
    for (const [id, revisions] of this.incidents) {
      const { state, openedMs } = latestOf(revisions);
      if (state === "resolved" && openedMs < beforeMs) this.incidents.delete(id);
    }
    for (const [key, { seenMs }] of this.jobs) if (seenMs < beforeMs) this.jobs.delete(key);
  }

  #addIterations(run: string, added: readonly number[][]): void {
    const rows = getOrInsert(this.iterations, run, () => new Map<number, readonly number[]>());
    for (const row of added) {
      rows.delete(row[0]!);
      rows.set(row[0]!, row);
    }
    for (const iteration of rows.keys()) {
      if (rows.size <= MOST_ITERATIONS) break;
      rows.delete(iteration);
    }
  }

  *lines(): Generator<Line> {
    yield { to: "version", version: VERSION };
    for (const row of this.jobs.values()) yield { to: "job", row };
    for (const revisions of this.incidents.values())
      for (const row of revisions.values()) yield { to: "incident", row };
    for (const row of this.audit.values()) yield { to: "audit", row };
    for (const [key, text] of this.documents) yield { to: "document", key, text };
    for (const [run, rows] of this.iterations)
      yield { to: "iterations", run, rows: [...rows.values()].map((row) => [...row]) };
  }
}

/** Resolves when the file is there, is ours alone and is up to date. */
export async function openJournalHistory(path: string): Promise<LocalStore> {
  const unlock = lock(path);
  const tables = new Tables();
  let file: FileHandle | null = null;
  /** Of the file when it was rewritten last, and since then. */
  let sizeBytes = 0;
  let grownBytes = 0;
  /** Whoever is killed meanwhile leaves the file as it was. */
  const rewrite = async (): Promise<void> => {
    await writeTables(tables, `${path}.new`);
    await rename(`${path}.new`, path);
    const before = file;
    file = await open(path, "a", 0o600);
    await before?.close();
    [sizeBytes, grownBytes] = [(await stat(path)).size, 0];
  };
  try {
    readLines(path, tables);
    await rewrite();
  } catch (error) {
    unlock();
    throw error;
  }
  const writes = groupWrites<Line | "rewrite">(
    async (group) => {
      const lines = group.filter((one) => one !== "rewrite");
      const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
      await file!.appendFile(text);
      await file!.datasync();
      for (const line of lines) tables.apply(line);
      grownBytes += Buffer.byteLength(text);
      if (lines.length < group.length) await rewrite();
      else if (grownBytes > Math.max(LEAST_REWRITE_BYTES, 3 * sizeBytes))
        // A full disk: the lines are written all the same, and it is tried again when as many have come.
        await rewrite().catch(() => (grownBytes = 0));
    },
    { mostItems: 4096, pauseMs: 0, splitFailed: false },
  );
  let closing: Promise<void> | null = null;
  const open_ = (): Tables => {
    if (closing !== null) throw new Error("the history is closed");
    return tables;
  };
  const parse = <T>(rows: readonly { readonly text: string }[]): T[] =>
    rows.map(({ text }) => JSON.parse(text) as T);
  const isOf = (incident: string, jobs: readonly string[]): boolean => {
    const [row] = open_().incidents.get(incident)?.values() ?? [];
    return row !== undefined && fitsAny(row.job, jobs);
  };
  const latest = (): StoredIncident[] => [...open_().incidents.values()].map(latestOf);

  return {
    putJob: async (row) => await writes.put({ to: "job", row: storedJob(row) }),
    async jobs(most) {
      const rows = [...open_().jobs.values()].sort(
        (a, b) =>
          b.startedMs - a.startedMs ||
          b.seenMs - a.seenMs ||
          text(a.job, b.job) ||
          text(a.run, b.run),
      );
      return parse<JobRow>(rows.slice(0, rowLimit(most, 1000)));
    },
    putIncident: async (incident) =>
      await writes.put({ to: "incident", row: storedIncident(incident) }),
    async incidents({ ids, job, jobs, open: isOpen, sinceMs, lastedMs, machine, before, most }) {
      const since = sinceMs === undefined ? -Infinity : bound(sinceMs);
      const lasted = lastedMs === undefined ? -Infinity : bound(lastedMs);
      const [ofJob, ofMachine] = [job, machine].map((key) =>
        key === undefined ? undefined : keyText(key),
      );
      const named = ids && new Set(ids.map(keyText));
      const rows = latest()
        .filter((row) => !named || named.has(row.id))
        .filter((row) => ofJob === undefined || row.job === ofJob)
        .filter((row) => !jobs || fitsAny(row.job, jobs))
        .filter((row) => isOpen !== true || row.state !== "resolved")
        .filter((row) => row.openedMs >= since)
        .filter((row) => row.openedMs >= lasted || !(endOf(row) < lasted))
        .filter((row) => ofMachine === undefined || row.machines.includes(ofMachine))
        .filter(({ openedMs, id }) => !before || isBefore({ atMs: openedMs, id }, before))
        .sort((a, b) => b.openedMs - a.openedMs || text(b.id, a.id));
      return parse<Incident>(rows.slice(0, rowLimit(most, 1000)));
    },
    async incidentHistory(id) {
      const rows = [...(open_().incidents.get(keyText(id))?.values() ?? [])];
      return parse<Incident>(rows.sort((a, b) => a.revision - b.revision));
    },
    putAudit: async (row) => await writes.put({ to: "audit", row: storedAudit(row) }),
    async audit({ incident, jobs, sinceMs = -Infinity, before, most }) {
      const of = incident === undefined ? undefined : keyText(incident);
      const rows = [...open_().audit.values()]
        .filter((row) => of === undefined || row.incident === of)
        .filter((row) => !jobs || isOf(row.incident, jobs))
        .filter((row) => row.atMs >= sinceMs && (!before || isBefore(row, before)))
        .sort((a, b) => b.atMs - a.atMs || text(b.id, a.id));
      return parse<AuditRow>(rows.slice(0, rowLimit(most, 1000)));
    },
    async putIterations(job, run, given) {
      const { iteration, endMs, durationMs } = storedIterations(given);
      if (iteration.length === 0) return;
      const rows = Array.from(iteration, (number, i) => [number, endMs[i]!, durationMs[i]!]);
      await writes.put({ to: "iterations", run: runKey(keyText(job), keyText(run)), rows });
    },
    async iterations(job, run, { fromMs, toMs, most }) {
      const limit = rowLimit(most, 1000);
      const [from, to] = [bound(fromMs ?? -Infinity), bound(toMs ?? Infinity)];
      const all = [
        ...(open_()
          .iterations.get(runKey(keyText(job), keyText(run)))
          ?.values() ?? []),
      ]
        .filter(([, endMs]) => endMs! >= from && endMs! <= to)
        .sort((a, b) => a[0]! - b[0]!);
      const n = all.length;
      // The last of each of `limit` even parts, so that the newest is always there.
      const kept = all.filter(
        (_, i) => n <= limit || Math.floor(((i + 1) * limit) / n) > Math.floor((i * limit) / n),
      );
      return columns(kept);
    },
    async offenders(sinceMs, most, jobs, without = []) {
      const since = bound(sinceMs);
      const left = new Set(without.map(keyText));
      return offendersOf(open_(), since, jobs, left).slice(0, rowLimit(most, 1000));
    },
    putDocument: async (key, document) =>
      await writes.put({ to: "document", key: keyText(key), text: documentText(document) }),
    async document(key) {
      const found = open_().documents.get(keyText(key));
      return found === undefined ? null : (JSON.parse(found) as unknown);
    },
    async documentKeys(prefix) {
      const start = keyText(prefix);
      return [...open_().documents.keys()].filter((key) => key.startsWith(start)).sort(text);
    },
    prune: async (beforeMs) => await writes.put({ to: "prune", beforeMs: bound(beforeMs) }),
    pruneIncidents: async (beforeMs) =>
      await writes.put({ to: "pruneIncidents", beforeMs: bound(beforeMs) }),
    async shrink(mostBytes) {
      for (;;) {
        await writes.put("rewrite");
        if (sizeBytes <= mostBytes) return sizeBytes;
        const ends = [...open_().iterations.values()].flatMap((rows) =>
          Array.from(rows.values(), ([, endMs]) => endMs!),
        );
        if (ends.length === 0) return sizeBytes;
        ends.sort((a, b) => a - b);
        const oldest = ends[Math.floor(SHRINK_SHARE * (ends.length - 1))]!;
        await writes.put({ to: "prune", beforeMs: oldest + 1 });
      }
    },
    // Nothing is applied to the tables between two of their lines.
    copyTo: async (target, without) => await writeTables(open_(), target, without),
    async ping() {
      open_();
    },
    async close() {
      closing ??= (async () => {
        await writes.close();
        await file?.close();
        unlock();
      })();
      await closing;
    },
  };
}

async function writeTables(
  tables: Tables,
  path: string,
  without: readonly string[] = [],
): Promise<void> {
  const text = [...tables.lines()]
    .filter((line) => line.to !== "document" || !without.includes(line.key))
    .map((line) => `${JSON.stringify(line)}\n`)
    .join("");
  await writeFile(path, text, { mode: 0o600, flush: true });
}

function endOf({ state, text }: StoredIncident): number {
  return state === "resolved" ? ((JSON.parse(text) as Incident).resolvedMs ?? -Infinity) : Infinity;
}

function latestOf(revisions: ReadonlyMap<number, StoredIncident>): StoredIncident {
  return revisions.get(Math.max(...revisions.keys()))!;
}

/** Suspects of the latest confirmation of each incident, by machine. */
function offendersOf(
  { incidents }: Tables,
  sinceMs: number,
  jobs: readonly string[] | undefined,
  without: ReadonlySet<string>,
): Offender[] {
  const found = new Map<
    string,
    { incidents: Set<string>; jobs: Set<string>; lastMs: number; causes: Set<string> }
  >();
  for (const revisions of incidents.values()) {
    const [row] = [...revisions.values()]
      .filter(({ state }) => state === "confirmed" || state === "relapsed")
      .sort((a, b) => b.revision - a.revision);
    if (!row || without.has(row.id) || row.openedMs < sinceMs || (jobs && !fitsAny(row.job, jobs)))
      continue;
    for (const [i, machine] of row.accused.entries()) {
      const one = found.get(machine) ?? {
        incidents: new Set<string>(),
        jobs: new Set<string>(),
        lastMs: -Infinity,
        causes: new Set<string>(),
      };
      found.set(machine, one);
      one.incidents.add(row.id);
      one.jobs.add(row.job);
      one.lastMs = Math.max(one.lastMs, row.openedMs);
      if (row.causes[i]) one.causes.add(row.causes[i]);
    }
  }
  return [...found]
    .map(([machine, one]) => ({
      machine,
      incidents: one.incidents.size,
      jobs: one.jobs.size,
      lastMs: one.lastMs,
      causes: [...one.causes].sort(text),
    }))
    .sort((a, b) => b.incidents - a.incidents || b.lastMs - a.lastMs || text(a.machine, b.machine));
}

function columns(rows: readonly (readonly number[])[]): IterationRows {
  const column = (at: number): Float64Array => Float64Array.from(rows, (row) => row[at]!);
  return { iteration: column(0), endMs: column(1), durationMs: column(2) };
}

/** Not guessable from two other names: the first name's length is part of it. */
function runKey(job: string, run: string): string {
  return `${job.length} ${job} ${run}`;
}

function isBefore(row: RowAt, { atMs, id }: RowAt): boolean {
  return row.atMs < atMs || (row.atMs === atMs && row.id < keyText(id));
}

function text(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function readLines(path: string, tables: Tables): void {
  if (!existsSync(path)) return;
  const lines = readFileSync(path, "utf8").split("\n");
  for (const [at, line] of lines.entries()) {
    if (line === "") continue;
    try {
      const parsed = JSON.parse(line) as Line;
      if (parsed.to === "version" && parsed.version > VERSION)
        throw new UserError(
          `history ${path} was written by a newer Faultline (its lines are version ${parsed.version}, known is ${VERSION})`,
          "use that version, or name another file",
        );
      tables.apply(parsed);
    } catch (error) {
      if (error instanceof UserError) throw error;
      // Whoever was killed while writing left half a line at the end.
      if (at >= lines.length - 2) continue;
      throw new UserError(
        `history ${path} cannot be read: line ${at + 1} is damaged`,
        `move it away (mv '${path}' '${path}.damaged'); a new one is made at the next start`,
      );
    }
  }
}

function lock(path: string): () => void {
  const file = `${path}.lock`;
  for (let tries = 0; ; tries++) {
    try {
      writeFileSync(file, String(process.pid), { flag: "wx", mode: 0o600 });
      return () => rmSync(file, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST" || tries > 0)
        throw cannot(path, error);
      const holder = Number(readFileSync(file, "utf8"));
      if (isAlive(holder))
        throw new StoreInUse(
          `history ${path} is in use by process ${holder}`,
          "stop it, or name another file: one service has the file at a time",
        );
      rmSync(file, { force: true });
    }
  }
}

function cannot(path: string, error: unknown): UserError {
  const why = errorText(error);
  return new UserError(`history ${path} cannot be opened: ${why}`, "check its owner and rights");
}

function isAlive(pid: number): boolean {
  // Our own number: of a process before a restart of the container.
  if (!Number.isSafeInteger(pid) || pid <= 0 || pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
