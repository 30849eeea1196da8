/**
 * A group of writes as one transaction: a statement or two a table, however many rows. Every parameter in a SELECT has
 * a name (AS): DuckDB would make one of its content, in quadratic time where that has quotes (4 s for a megabyte).
 */
import {
  DOUBLE,
  type DuckDBConnection,
  DuckDBDataChunk,
  LIST,
  listValue,
  VARCHAR,
} from "@duckdb/node-api";
import { getOrInsert } from "../base/group-by.ts";
import type { IterationRows } from "./history.ts";
import type { StoredAudit, StoredIncident, StoredJob } from "./stored-rows.ts";

export type Write =
  | { readonly to: "jobs"; readonly row: StoredJob }
  | { readonly to: "incidents"; readonly row: StoredIncident }
  | { readonly to: "audit"; readonly row: StoredAudit }
  | { readonly to: "documents"; readonly key: string; readonly text: string | null }
  | {
      readonly to: "iterations";
      readonly job: string;
      readonly run: string;
      readonly rows: IterationRows;
    }
  | { readonly to: "prune" | "pruneIncidents"; readonly beforeMs: number };

interface IterationPut {
  readonly job: string;
  readonly run: string;
  readonly rows: IterationRows;
}

const TEXTS = LIST(VARCHAR);
const NUMBERS = LIST(DOUBLE);
const CHUNK = 2048;

const PRUNE = {
  prune: ["DELETE FROM iterations WHERE end_ms < $1"],
  // What its latest revision says counts for all revisions of an incident.
  pruneIncidents: [
    `DELETE FROM incidents WHERE id IN (
       SELECT id FROM incidents SEMI JOIN
         (SELECT id, max(revision) AS revision FROM incidents GROUP BY id) USING (id, revision)
       WHERE state = 'resolved' AND opened_ms < $1)`,
    "DELETE FROM jobs WHERE seen_ms < $1",
  ],
};

/** Highest iteration in the file by run: above it nothing can be there twice. */
export type HighestByRun = Map<string, number>;

export async function writeGroup(
  connection: DuckDBConnection,
  highest: HighestByRun,
  writes: readonly Write[],
): Promise<void> {
  await connection.run("BEGIN");
  try {
    await writeJobs(connection, writes);
    await writeIncidents(connection, writes);
    await writeAudit(connection, writes);
    await writeDocuments(connection, writes);
    await writeIterations(connection, highest, writes);
    for (const write of writes) {
      if (write.to !== "prune" && write.to !== "pruneIncidents") continue;
      for (const sql of PRUNE[write.to]) await connection.run(sql, [write.beforeMs], [DOUBLE]);
    }
    await connection.run("COMMIT");
  } catch (error) {
    highest.clear();
    // The first error counts; after a failed commit there is nothing to roll back.
    await connection.run("ROLLBACK").catch(() => {});
    throw error;
  }
}

/** A row that was seen later is not replaced by an older one, whatever the order in which they come. */
async function writeJobs(connection: DuckDBConnection, writes: readonly Write[]): Promise<void> {
  const rows = new Map<string, StoredJob>();
  for (const write of writes) {
    if (write.to !== "jobs") continue;
    const key = runKey(write.row.job, write.row.run);
    if (!((rows.get(key)?.seenMs ?? -Infinity) > write.row.seenMs)) rows.set(key, write.row);
  }
  if (rows.size === 0) return;
  const all = [...rows.values()];
  const job = listValue(all.map((row) => row.job));
  const run = listValue(all.map((row) => row.run));
  const seen = listValue(all.map((row) => row.seenMs));
  await connection.run(
    `DELETE FROM jobs USING (SELECT unnest($1) AS job, unnest($2) AS run, unnest($3) AS seen) AS put
     WHERE jobs.job = put.job AND jobs.run = put.run AND jobs.seen_ms <= put.seen`,
    [job, run, seen],
    [TEXTS, TEXTS, NUMBERS],
  );
  await connection.run(
    `INSERT INTO jobs SELECT * FROM (
       SELECT unnest($1) AS job, unnest($2) AS run, unnest($3) AS started_ms,
         unnest($4) AS seen_ms, unnest($5) AS document
     ) AS put ANTI JOIN jobs USING (job, run)`,
    [
      job,
      run,
      listValue(all.map((row) => row.startedMs)),
      seen,
      listValue(all.map((row) => row.text)),
    ],
    [TEXTS, TEXTS, NUMBERS, NUMBERS, TEXTS],
  );
}

async function writeIncidents(
  connection: DuckDBConnection,
  writes: readonly Write[],
): Promise<void> {
  const rows = new Map<string, StoredIncident>();
  for (const write of writes) {
    if (write.to !== "incidents") continue;
    const key = `${write.row.revision} ${write.row.id}`;
    if (!rows.has(key)) rows.set(key, write.row);
  }
  if (rows.size === 0) return;
  const all = [...rows.values()];
  const lists = LIST(TEXTS);
  await connection.run(
    `INSERT INTO incidents SELECT * FROM (
       SELECT unnest($1) AS id, unnest($2) AS revision, unnest($3) AS job, unnest($4) AS state,
         unnest($5) AS opened_ms, unnest($6) AS machines, unnest($7) AS accused, unnest($8) AS causes,
         unnest($9) AS document
     ) AS put ANTI JOIN incidents USING (id, revision)`,
    [
      listValue(all.map((row) => row.id)),
      listValue(all.map((row) => row.revision)),
      listValue(all.map((row) => row.job)),
      listValue(all.map((row) => row.state)),
      listValue(all.map((row) => row.openedMs)),
      listValue(all.map((row) => listValue(row.machines))),
      listValue(all.map((row) => listValue(row.accused))),
      listValue(all.map((row) => listValue(row.causes))),
      listValue(all.map((row) => row.text)),
    ],
    [TEXTS, NUMBERS, TEXTS, TEXTS, NUMBERS, lists, lists, lists, TEXTS],
  );
}

async function writeAudit(connection: DuckDBConnection, writes: readonly Write[]): Promise<void> {
  const rows = new Map<string, StoredAudit>();
  for (const write of writes) {
    if (write.to === "audit" && !rows.has(write.row.id)) rows.set(write.row.id, write.row);
  }
  if (rows.size === 0) return;
  const all = [...rows.values()];
  await connection.run(
    `INSERT INTO audit SELECT * FROM (
       SELECT unnest($1) AS id, unnest($2) AS at_ms, unnest($3) AS incident, unnest($4) AS document
     ) AS put ANTI JOIN audit USING (id)`,
    [
      listValue(all.map((row) => row.id)),
      listValue(all.map((row) => row.atMs)),
      listValue(all.map((row) => row.incident)),
      listValue(all.map((row) => row.text)),
    ],
    [TEXTS, NUMBERS, TEXTS, TEXTS],
  );
}

async function writeDocuments(
  connection: DuckDBConnection,
  writes: readonly Write[],
): Promise<void> {
  const texts = new Map<string, string | null>();
  for (const write of writes) if (write.to === "documents") texts.set(write.key, write.text);
  if (texts.size === 0) return;
  await connection.run(
    "DELETE FROM documents USING (SELECT unnest($1) AS key) AS put WHERE documents.key = put.key",
    [listValue([...texts.keys()])],
    [TEXTS],
  );
  const kept = [...texts].filter((entry): entry is [string, string] => entry[1] !== null);
  if (kept.length === 0) return;
  await connection.run(
    "INSERT INTO documents SELECT unnest($1) AS key, unnest($2) AS document",
    [listValue(kept.map(([key]) => key)), listValue(kept.map(([, text]) => text))],
    [TEXTS, TEXTS],
  );
}

/** One appender for all runs of the group: to open one costs as much as a thousand rows. */
async function writeIterations(
  connection: DuckDBConnection,
  highest: HighestByRun,
  writes: readonly Write[],
): Promise<void> {
  const byRun = new Map<string, IterationPut[]>();
  for (const write of writes) {
    if (write.to !== "iterations" || write.rows.iteration.length === 0) continue;
    getOrInsert(byRun, runKey(write.job, write.run), () => []).push(write);
  }
  if (byRun.size === 0) return;
  const fresh: IterationPut[] = [];
  for (const [key, puts] of byRun) {
    const { job, run } = puts[0]!;
    const before = highest.get(key) ?? (await highestOf(connection, job, run));
    const { rows, least, most } = withoutRepeats(joined(puts.map((put) => put.rows)));
    if (least <= before) {
      await connection.run(
        `DELETE FROM iterations WHERE job = $1 AND run = $2
           AND iteration IN (SELECT unnest($3) AS iteration)`,
        [job, run, listValue([...rows.iteration])],
        [VARCHAR, VARCHAR, NUMBERS],
      );
    }
    fresh.push({ job, run, rows });
    highest.set(key, Math.max(before, most));
  }
  await append(connection, fresh);
}

async function append(connection: DuckDBConnection, puts: readonly IterationPut[]): Promise<void> {
  const appender = await connection.createAppender("iterations");
  let jobs: string[] = [];
  let runs: string[] = [];
  let columns: [number[], number[], number[]] = [[], [], []];
  const flush = (): void => {
    if (jobs.length === 0) return;
    const chunk = DuckDBDataChunk.create([VARCHAR, VARCHAR, DOUBLE, DOUBLE, DOUBLE]);
    chunk.setColumns([jobs, runs, ...columns]);
    appender.appendDataChunk(chunk);
    [jobs, runs, columns] = [[], [], [[], [], []]];
  };
  for (const { job, run, rows } of puts) {
    for (let i = 0; i < rows.iteration.length; i++) {
      jobs.push(job);
      runs.push(run);
      columns[0].push(rows.iteration[i]!);
      columns[1].push(rows.endMs[i]!);
      columns[2].push(rows.durationMs[i]!);
      if (jobs.length === CHUNK) flush();
    }
  }
  flush();
  appender.closeSync();
}

function joined(parts: readonly IterationRows[]): IterationRows {
  if (parts.length === 1) return parts[0]!;
  const length = parts.reduce((sum, { iteration }) => sum + iteration.length, 0);
  const column = (of: (rows: IterationRows) => Float64Array): Float64Array => {
    const all = new Float64Array(length);
    let at = 0;
    for (const part of parts) {
      all.set(of(part), at);
      at += of(part).length;
    }
    return all;
  };
  return {
    iteration: column((rows) => rows.iteration),
    endMs: column((rows) => rows.endMs),
    durationMs: column((rows) => rows.durationMs),
  };
}

async function highestOf(connection: DuckDBConnection, job: string, run: string): Promise<number> {
  const read = await connection.runAndReadAll(
    "SELECT max(iteration) FROM iterations WHERE job = $1 AND run = $2",
    [job, run],
    [VARCHAR, VARCHAR],
  );
  return Number(read.getRowsJS()[0]?.[0] ?? -Infinity);
}

/** Of an iteration that is there twice in one put, the last. */
function withoutRepeats(rows: IterationRows): {
  readonly rows: IterationRows;
  readonly least: number;
  readonly most: number;
} {
  const { iteration } = rows;
  let least = Infinity;
  let most = -Infinity;
  let isAscending = true;
  for (const number of iteration) {
    if (number <= most) isAscending = false;
    least = Math.min(least, number);
    most = Math.max(most, number);
  }
  if (isAscending) return { rows, least, most };
  const lastAt = new Map<number, number>();
  for (let i = 0; i < iteration.length; i++) lastAt.set(iteration[i]!, i);
  const pick = (column: Float64Array): Float64Array =>
    Float64Array.from(lastAt.values(), (i) => column[i]!);
  return {
    rows: {
      iteration: pick(iteration),
      endMs: pick(rows.endMs),
      durationMs: pick(rows.durationMs),
    },
    least,
    most,
  };
}

/** Names cannot be trusted to lack the separator, so the length of one goes first. */
function runKey(job: string, run: string): string {
  return `${job.length} ${job}${run}`;
}
