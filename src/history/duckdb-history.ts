/** The history in a file of DuckDB's: the default, for one service. */
import type { DuckDBConnection } from "@duckdb/node-api";
import { patternsExpression } from "../base/patterns.ts";
import type { Incident } from "../model/incident.ts";
import { openFile, type DuckDbOptions } from "./duckdb-file.ts";
import type { HighestByRun, Write } from "./duckdb-write.ts";
import { groupWrites } from "./group-writes.ts";
import type { AuditRow, IterationRows, JobRow, LocalStore, Offender, RowAt } from "./history.ts";
import {
  bound,
  documentText,
  keyText,
  rowLimit,
  storedAudit,
  storedIncident,
  storedIterations,
  storedJob,
} from "./stored-rows.ts";

/** At most so many at once; the others wait for their turn, in order. */
interface Turns {
  take<T>(work: () => Promise<T>): Promise<T>;
  /** When nothing runs or waits. */
  idle(): Promise<void>;
}

type Value = string | number | readonly string[];

/** A read holds a thread of Node's pool of four; the writer must always find one. */
const READS_AT_ONCE = 2;

/** Of the iterations that are left, the share that goes at once where the file is too large, and how often. */
const SHRINK_SHARE = 0.2;
const SHRINK_ROUNDS = 20;

/** The latest revision of each incident. Documents are long: they are fetched by row, after all is filtered. */
const LATEST = "SELECT id, max(revision) AS revision FROM incidents";

/** Resolves when the file is there, is ours alone and is up to date. */
export async function openDuckDbHistory(
  path: string,
  options: DuckDbOptions = {},
): Promise<LocalStore> {
  const { instance, close } = await openFile(path, options);
  const { DOUBLE, LIST, listValue, VARCHAR } = await import("@duckdb/node-api");
  const { writeGroup } = await import("./duckdb-write.ts");
  const writer = await instance.connect();
  const highest: HighestByRun = new Map();
  const writes = groupWrites<Write>((group) => writeGroup(writer, highest, group), {
    mostItems: 4096,
    pauseMs: 0,
    splitFailed: true,
  });
  const reading = turns(READS_AT_ONCE);
  /** Not behind the readers: many of them are no reason to start the service anew. */
  const pinging = turns(1);
  let closing: Promise<void> | null = null;

  /** A connection of its own, so that a read never sees half a transaction of the writer. */
  const read = (sql: string, values: Value[] = [], turn: Turns = reading): Promise<unknown[][]> => {
    if (closing !== null) return Promise.reject(new Error("the history is closed"));
    return turn.take(async () => {
      let connection: DuckDBConnection | null = null;
      try {
        connection = await instance.connect();
        // A whole number would be taken for an integer, and a large one refused.
        const types = values.map((value) => {
          if (typeof value === "object") return LIST(VARCHAR);
          return typeof value === "number" ? DOUBLE : VARCHAR;
        });
        const bound = values.map((value) => (typeof value === "object" ? listValue(value) : value));
        return (await connection.runAndReadAll(sql, bound, types)).getRowsJS();
      } finally {
        connection?.closeSync();
      }
    });
  };
  const usedBytes = async (): Promise<number> => {
    const [[blocks, bytes] = []] = await read(
      "SELECT used_blocks::DOUBLE, block_size::DOUBLE FROM pragma_database_size()",
    );
    return Number(blocks) * Number(bytes);
  };
  const documents = async <T>(sql: string, values: Value[] = []): Promise<T[]> =>
    (await read(sql, values)).map(([text]) => JSON.parse(String(text)) as T);

  return {
    putJob: async (row) => await writes.put({ to: "jobs", row: storedJob(row) }),
    jobs: async (most) =>
      await documents<JobRow>(
        `SELECT document FROM jobs ORDER BY started_ms DESC, seen_ms DESC, job, run LIMIT ${rowLimit(most, 1000)}`,
      ),
    putIncident: async (incident) =>
      await writes.put({ to: "incidents", row: storedIncident(incident) }),
    async incidents({ ids, job, jobs, open, sinceMs, lastedMs, machine, before, most }) {
      const values: Value[] = [];
      const value = (v: Value): string => `$${values.push(v)}`;
      const where: string[] = [];
      if (open === true) where.push("state <> 'resolved'");
      if (sinceMs !== undefined) where.push(`opened_ms >= ${value(bound(sinceMs))}`);
      if (lastedMs !== undefined) {
        const at = value(bound(lastedMs));
        where.push(
          `(opened_ms >= ${at} OR state <> 'resolved' OR
            try_cast(regexp_extract(document, '"resolvedMs":([0-9.e+]+)', 1) AS DOUBLE) >= ${at})`,
        );
      }
      if (machine !== undefined) {
        where.push(`list_contains(machines, ${value(keyText(machine))})`);
      }
      if (before) where.push(behind("opened_ms", before, value));
      const whose = ["true"];
      if (ids) whose.push(`id IN (SELECT unnest(${value(ids.map(keyText))}))`);
      if (job !== undefined) whose.push(`job = ${value(keyText(job))}`);
      if (jobs) whose.push(`regexp_matches(job, ${value(patternsExpression(jobs))})`);
      return await documents<Incident>(
        `SELECT document FROM incidents SEMI JOIN (
           SELECT rowid AS wanted FROM incidents
           SEMI JOIN (${LATEST} WHERE ${whose.join(" AND ")} GROUP BY id) USING (id, revision)
           ${where.length > 0 ? `WHERE ${where.join(" AND ")}` : ""}
           ORDER BY opened_ms DESC, id DESC LIMIT ${rowLimit(most, 1000)}
         ) ON incidents.rowid = wanted ORDER BY opened_ms DESC, id DESC`,
        values,
      );
    },
    incidentHistory: async (id) =>
      await documents<Incident>("SELECT document FROM incidents WHERE id = $1 ORDER BY revision", [
        keyText(id),
      ]),
    putAudit: async (row) => await writes.put({ to: "audit", row: storedAudit(row) }),
    async audit({ incident, jobs, sinceMs, before, most }) {
      const values: Value[] = [];
      const value = (v: Value): string => `$${values.push(v)}`;
      const where = ["true"];
      if (incident !== undefined) where.push(`incident = ${value(keyText(incident))}`);
      if (jobs)
        where.push(
          `incident IN (SELECT id FROM incidents WHERE regexp_matches(job, ${value(patternsExpression(jobs))}))`,
        );
      if (sinceMs !== undefined) where.push(`at_ms >= ${value(bound(sinceMs))}`);
      if (before) where.push(behind("at_ms", before, value));
      return await documents<AuditRow>(
        `SELECT document FROM audit WHERE ${where.join(" AND ")}
         ORDER BY at_ms DESC, id DESC LIMIT ${rowLimit(most, 1000)}`,
        values,
      );
    },
    async putIterations(job, run, rows) {
      const copy = storedIterations(rows);
      if (copy.iteration.length === 0) return;
      await writes.put({ to: "iterations", job: keyText(job), run: keyText(run), rows: copy });
    },
    async iterations(job, run, { fromMs, toMs, most }) {
      const limit = rowLimit(most, 1000);
      // The last of each of `limit` even parts, so that the newest is always there.
      const rows = await read(
        `SELECT iteration, end_ms, duration_ms FROM (
           SELECT *, row_number() OVER (ORDER BY iteration) AS nth, count(*) OVER () AS n FROM iterations
           WHERE job = $1 AND run = $2 AND end_ms >= $3 AND end_ms <= $4)
         WHERE n <= ${limit} OR nth * ${limit} // n > (nth - 1) * ${limit} // n ORDER BY iteration`,
        [keyText(job), keyText(run), bound(fromMs ?? -Infinity), bound(toMs ?? Infinity)],
      );
      return columns(rows);
    },
    async offenders(sinceMs, most, jobs, without = []) {
      const values: Value[] = [bound(sinceMs), without.map(keyText)];
      const ofJobs = jobs
        ? ` AND regexp_matches(job, $${values.push(patternsExpression(jobs))})`
        : "";
      const rows = await read(
        `SELECT machine, count(DISTINCT id)::DOUBLE AS incidents, count(DISTINCT job)::DOUBLE, max(opened_ms) AS last,
           list_sort(list(DISTINCT cause) FILTER (cause <> ''))
         FROM (SELECT id, job, opened_ms, unnest(accused) AS machine, unnest(causes) AS cause
           FROM incidents SEMI JOIN (${LATEST} WHERE state IN ('confirmed', 'relapsed') GROUP BY id) USING (id, revision)
           WHERE opened_ms >= $1 AND NOT list_contains($2, id)${ofJobs})
         GROUP BY machine ORDER BY incidents DESC, last DESC, machine LIMIT ${rowLimit(most, 1000)}`,
        values,
      );
      return rows.map(([machine, incidents, jobs, lastMs, causes]): Offender => ({
        machine: String(machine),
        incidents: Number(incidents),
        jobs: Number(jobs),
        lastMs: Number(lastMs),
        causes: (causes as string[] | null) ?? [],
      }));
    },
    putDocument: async (key, document) =>
      await writes.put({ to: "documents", key: keyText(key), text: documentText(document) }),
    document: async (key) =>
      (
        await documents<unknown>("SELECT document FROM documents WHERE key = $1", [keyText(key)])
      )[0] ?? null,
    async documentKeys(prefix) {
      const rows = await read("SELECT key FROM documents WHERE starts_with(key, $1) ORDER BY key", [
        keyText(prefix),
      ]);
      return rows.map(([key]) => String(key));
    },
    prune: async (beforeMs) => await writes.put({ to: "prune", beforeMs: bound(beforeMs) }),
    pruneIncidents: async (beforeMs) =>
      await writes.put({ to: "pruneIncidents", beforeMs: bound(beforeMs) }),
    async shrink(mostBytes) {
      for (let round = 0; ; round++) {
        // Room of rows that are gone is free only after a checkpoint.
        await read("CHECKPOINT");
        const bytes = await usedBytes();
        if (bytes <= mostBytes || round === SHRINK_ROUNDS) return bytes;
        const [[oldest] = []] = await read(
          `SELECT quantile_cont(end_ms, ${SHRINK_SHARE}) FROM iterations`,
        );
        if (oldest === null || oldest === undefined) return bytes;
        await writes.put({ to: "prune", beforeMs: Number(oldest) + 1 });
      }
    },
    async copyTo(target, without) {
      const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;
      const left = without.length === 0 ? "" : ` WHERE key NOT IN (${without.map(quoted).join()})`;
      const [[own] = []] = await read("SELECT current_database()");
      const tables = await read(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database()",
      );
      const connection = await instance.connect();
      try {
        await connection.run(`ATTACH ${quoted(target)} AS faultline_copy`);
        try {
          // Of one moment. What is left out is never written: removed rows could still be read in the file.
          await connection.run("BEGIN");
          await connection.run(`COPY FROM DATABASE "${String(own)}" TO faultline_copy (SCHEMA)`);
          for (const [table] of tables) {
            const rows = `SELECT * FROM "${String(own)}"."${String(table)}"`;
            await connection.run(
              `INSERT INTO faultline_copy."${String(table)}" ${rows}${table === "documents" ? left : ""}`,
            );
          }
          await connection.run("COMMIT");
        } finally {
          // Works the copy's log into its file.
          await connection.run("DETACH faultline_copy");
        }
      } finally {
        connection.closeSync();
      }
    },
    async ping() {
      await read("SELECT 1", [], pinging);
    },
    async close() {
      closing ??= (async () => {
        await writes.close();
        await Promise.all([reading.idle(), pinging.idle()]);
        writer.closeSync();
        close();
      })();
      await closing;
    },
  };
}

/** What comes behind a row, the newest first. */
function behind(column: string, { atMs, id }: RowAt, value: (v: Value) => string): string {
  const at = value(bound(atMs));
  return `(${column} < ${at} OR (${column} = ${at} AND id < ${value(keyText(id))}))`;
}

function columns(rows: readonly unknown[][]): IterationRows {
  const column = (at: number): Float64Array => Float64Array.from(rows, (row) => Number(row[at]));
  return { iteration: column(0), endMs: column(1), durationMs: column(2) };
}

function turns(atOnce: number): Turns {
  const waiting: (() => void)[] = [];
  const running = new Set<Promise<unknown>>();
  let free = atOnce;

  async function run<T>(work: () => Promise<T>): Promise<T> {
    if (free > 0) free--;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      // The turn is handed on, not given back: nobody can slip in between.
      const next = waiting.shift();
      if (next === undefined) free++;
      else next();
    }
  }

  return {
    async take(work) {
      const turn = run(work);
      const settled = turn.catch(() => {});
      running.add(settled);
      void settled.then(() => running.delete(settled));
      return await turn;
    },
    async idle() {
      while (running.size > 0) await Promise.all(running);
    },
  };
}
