/**
 * The history in ClickHouse, for several services at once. The floor is a server of 2018 (18.16): no bound parameters,
 * no window functions. Rows are only ever added; the version decides which one counts.
 */
import { UserError } from "../base/errors.ts";
import { patternsExpression } from "../base/patterns.ts";
import type { Incident } from "../model/incident.ts";
import {
  type ClickHouseConnection,
  ClickHouseRefusal,
  connectClickHouse,
  parseClickHouseUrl,
} from "./clickhouse-connect.ts";
import { CREATE_TABLES, type Table, TABLES } from "./clickhouse-schema.ts";
import { sqlCount, sqlNumber, sqlText } from "./clickhouse-text.ts";
import { groupWrites } from "./group-writes.ts";
import type { AuditRow, History, JobRow, Offender, RowAt } from "./history.ts";
import { RowWriter } from "./row-binary.ts";
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
import { FIRST, firstWins, makeVersions } from "./versions.ts";

interface ClickHouseOptions {
  readonly nowMs?: () => number;
  /** After which a request is given up. */
  readonly timeoutMs?: number;
  /** Every insert makes a file in each table that it touches: at most one in so many milliseconds. */
  readonly pauseMs?: number;
  /** Open although the server is not there: tables are made when it is. */
  readonly mayBeDown?: boolean;
}

/** Codes of the server that a person has to mend. */
const HINTS: Readonly<Record<string, string>> = {
  "81": "make the database: CREATE DATABASE name",
  "192": "check user and password in the address",
  "193": "check user and password in the address",
  "194": "check user and password in the address",
  "516": "check user and password in the address",
  "497": "the user needs CREATE TABLE, INSERT and SELECT in the database",
};

export async function openClickHouseHistory(
  url: string,
  {
    nowMs = Date.now,
    timeoutMs = 15_000,
    pauseMs = 100,
    mayBeDown = false,
  }: ClickHouseOptions = {},
): Promise<History & { prune(beforeMs: number): Promise<void> }> {
  const server = await connectClickHouse(parseClickHouseUrl(url), timeoutMs);
  const versions = makeVersions(nowMs);
  let ready: Promise<void> | null = null;
  let isClosed = false;

  /** Once; again after it failed. */
  function prepared(): Promise<void> {
    if (isClosed) return Promise.reject(new Error("the history is closed"));
    ready ??= prepare(server, versions.startAbove).catch((error: unknown) => {
      ready = null;
      throw error;
    });
    return ready;
  }

  try {
    await prepared();
  } catch (error) {
    const refusal = error instanceof ClickHouseRefusal ? error : null;
    if (refusal === null && mayBeDown) return history();
    await server.close();
    const hint = HINTS[refusal?.code ?? ""] ?? "check the address, and that the server runs";
    throw new UserError(`history: ${(error as Error).message}`, hint);
  }
  return history();

  function history(): History & { prune(beforeMs: number): Promise<void> } {
    const grouped = (table: Table) =>
      groupWrites<Buffer>(
        async (rows) => {
          await prepared0();
          await server.insert(TABLES[table], Buffer.concat(rows));
        },
        { mostItems: 10_000, pauseMs, splitFailed: false },
      );
    /** What was put before closing is still stored. */
    const prepared0 = (): Promise<void> => ready ?? prepared();
    const jobs = grouped("jobs");
    const incidents = grouped("incidents");
    const audit = grouped("audit");
    const iterations = grouped("iterations");
    const documents = grouped("documents");
    const all = [jobs, incidents, audit, iterations, documents];

    async function read<T>(sql: string): Promise<T[]> {
      await prepared();
      return await server.select(sql, (row) => JSON.parse(row.text()) as T);
    }

    return {
      async putJob(job) {
        const row = storedJob(job);
        const bytes = new RowWriter().text(row.job).text(row.run).float64(row.startedMs);
        bytes.float64(row.seenMs).text(row.text).uint64(versions.seenLast(row.seenMs));
        await jobs.put(bytes.written());
      },
      jobs: async (most) =>
        await read<JobRow>(
          `SELECT argMax(document, version) FROM ${TABLES.jobs} GROUP BY job, run
           ORDER BY argMax(started_ms, version) DESC, argMax(seen_ms, version) DESC, job, run
           LIMIT ${sqlCount(rowLimit(most, 1000))}`,
        ),
      async putIncident(incident) {
        const row = storedIncident(incident);
        const bytes = new RowWriter().text(row.id).float64(row.revision).text(row.job);
        bytes.text(row.state).float64(row.openedMs).texts(row.machines).texts(row.accused);
        bytes.texts(row.causes).text(row.text).uint64(firstWins(versions.next()));
        await incidents.put(bytes.written());
      },
      async incidents({ ids, job, jobs, open, sinceMs, lastedMs, machine, before, most }) {
        if (ids?.length === 0) return [];
        const where = ["1"];
        if (open === true) where.push("s != 'resolved'");
        if (sinceMs !== undefined) where.push(`o >= ${sqlNumber(bound(sinceMs))}`);
        if (lastedMs !== undefined) {
          const at = sqlNumber(bound(lastedMs));
          const late = `SELECT id, revision FROM ${TABLES.incidents}
            WHERE state = 'resolved' AND visitParamExtractFloat(document, 'resolvedMs') >= ${at}`;
          where.push(`(o >= ${at} OR s != 'resolved' OR (id, r) IN (${late}))`);
        }
        if (machine !== undefined) where.push(`has(m, ${sqlText(keyText(machine))})`);
        if (before) where.push(behind("o", before));
        const ofJob = job === undefined ? "1" : `job = ${sqlText(keyText(job))}`;
        const which = ids ? `id IN (${ids.map((id) => sqlText(keyText(id))).join()})` : "1";
        const whose = `${which} AND ${ofJob} AND ${jobFits(jobs)}`;
        // Documents are long: the narrow columns say which are wanted, and only those are read.
        return await read<Incident>(
          `SELECT argMax(document, version) FROM ${TABLES.incidents}
           WHERE (id, revision) IN (
             SELECT id, r FROM (${latestOf(whose, "1")}) WHERE ${where.join(" AND ")}
             ORDER BY o DESC, id DESC LIMIT ${sqlCount(rowLimit(most, 1000))})
           GROUP BY id, revision ORDER BY argMax(opened_ms, version) DESC, id DESC`,
        );
      },
      incidentHistory: async (id) =>
        await read<Incident>(
          `SELECT argMax(document, version) FROM ${TABLES.incidents} WHERE id = ${sqlText(keyText(id))}
           GROUP BY revision ORDER BY revision`,
        ),
      async putAudit(entry) {
        const row = storedAudit(entry);
        const bytes = new RowWriter().text(row.id).float64(row.atMs).text(row.incident);
        await audit.put(bytes.text(row.text).uint64(firstWins(versions.next())).written());
      },
      async audit({ incident, jobs, sinceMs, before, most }) {
        const where = ["1"];
        if (incident !== undefined) where.push(`i = ${sqlText(keyText(incident))}`);
        if (jobs) where.push(`i IN (SELECT id FROM ${TABLES.incidents} WHERE ${jobFits(jobs)})`);
        if (sinceMs !== undefined) where.push(`t >= ${sqlNumber(bound(sinceMs))}`);
        if (before) where.push(behind("t", before));
        return await read<AuditRow>(
          `SELECT d FROM (
             SELECT id, argMax(document, version) AS d, argMax(at_ms, version) AS t, argMax(incident, version) AS i
             FROM ${TABLES.audit} GROUP BY id)
           WHERE ${where.join(" AND ")}
           ORDER BY t DESC, id DESC LIMIT ${sqlCount(rowLimit(most, 1000))}`,
        );
      },
      async putIterations(job, run, rows) {
        const { iteration, endMs, durationMs } = storedIterations(rows);
        if (iteration.length === 0) return;
        const [ofJob, ofRun] = [keyText(job), keyText(run)];
        const bytes = new RowWriter(iteration.length * (40 + ofJob.length + ofRun.length));
        for (let i = 0; i < iteration.length; i++) {
          bytes.text(ofJob).text(ofRun).float64(iteration[i]!).float64(endMs[i]!);
          bytes.float64(durationMs[i]!).uint64(versions.next());
        }
        await iterations.put(bytes.written());
      },
      async iterations(job, run, { fromMs, toMs, most }) {
        const limit = sqlCount(rowLimit(most, 1000));
        await prepared();
        // The last of each of `limit` even parts, so that the newest is always there.
        const rows = await server.select(
          `SELECT t.1, t.2, t.3 FROM (
             SELECT arraySort(groupArray((i, e, d))) AS every, toUInt64(length(every)) AS n,
               arrayJoin(arrayFilter((row, nth) -> n <= ${limit} OR
                   intDiv(toUInt64(nth) * ${limit}, n) > intDiv(toUInt64(nth - 1) * ${limit}, n),
                 every, arrayEnumerate(every))) AS t
             FROM (
               SELECT iteration AS i, argMax(end_ms, version) AS e, argMax(duration_ms, version) AS d
               FROM ${TABLES.iterations} WHERE job = ${sqlText(keyText(job))} AND run = ${sqlText(keyText(run))}
               GROUP BY iteration)
             WHERE e >= ${sqlNumber(bound(fromMs ?? -Infinity))} AND e <= ${sqlNumber(bound(toMs ?? Infinity))})`,
          (row) => [row.float64(), row.float64(), row.float64()] as const,
        );
        return {
          iteration: Float64Array.from(rows, (row) => row[0]),
          endMs: Float64Array.from(rows, (row) => row[1]),
          durationMs: Float64Array.from(rows, (row) => row[2]),
        };
      },
      async offenders(sinceMs, most, jobs, without = []) {
        await prepared();
        const others =
          without.length === 0
            ? ""
            : ` AND id NOT IN (${without.map((id) => sqlText(keyText(id))).join()})`;
        return await server.select(
          `SELECT machine, toFloat64(uniqExact(id)) AS count, toFloat64(uniqExact(job)), max(o) AS last,
             arraySort(groupUniqArray(cause))
           FROM (
             SELECT id, j AS job, o, machine, cause FROM (${latestOf(jobFits(jobs) + others, "s1 IN ('confirmed', 'relapsed')")})
             ARRAY JOIN a AS machine, c AS cause WHERE o >= ${sqlNumber(bound(sinceMs))})
           GROUP BY machine ORDER BY count DESC, last DESC, machine LIMIT ${sqlCount(rowLimit(most, 1000))}`,
          (row): Offender => ({
            machine: row.text(),
            incidents: row.float64(),
            jobs: row.float64(),
            lastMs: row.float64(),
            causes: row.texts().filter((cause) => cause !== ""),
          }),
        );
      },
      async putDocument(key, document) {
        const text = documentText(document) ?? "null";
        const bytes = new RowWriter().text(keyText(key)).text(text).uint64(versions.next());
        await documents.put(bytes.written());
      },
      async document(key) {
        const found = await read<unknown>(
          `SELECT argMax(document, version) FROM ${TABLES.documents} WHERE key = ${sqlText(keyText(key))}
           GROUP BY key`,
        );
        return found[0] ?? null;
      },
      async documentKeys(prefix) {
        await prepared();
        const start = keyText(prefix);
        const where = start === "" ? "1" : `position(key, ${sqlText(start)}) = 1`;
        return await server.select(
          `SELECT key FROM ${TABLES.documents} WHERE ${where} GROUP BY key
           HAVING argMax(document, version) != 'null' ORDER BY key`,
          (row) => row.text(),
        );
      },
      async prune(beforeMs) {
        await prepared();
        await server.command(
          `ALTER TABLE ${TABLES.iterations} DELETE WHERE end_ms < ${sqlNumber(bound(beforeMs))}`,
        );
      },
      async ping() {
        await prepared();
        await server.select("SELECT 'pong'", (row) => row.text());
      },
      async close() {
        isClosed = true;
        await Promise.all(all.map((writes) => writes.close()));
        await server.close();
      },
    };
  }
}

/**
 * The latest revision of each incident with its narrow columns: r(evision), j(ob), s(tate), o(pened), m(achines),
 * a(ccused), c(auses). The inner query leaves one row a revision, the outer one an incident.
 */
function jobFits(jobs: readonly string[] | undefined): string {
  return jobs ? `match(job, ${sqlText(patternsExpression(jobs))})` : "1";
}

/** What comes behind a row, the newest first. */
function behind(column: string, { atMs, id }: RowAt): string {
  const at = sqlNumber(bound(atMs));
  return `(${column} < ${at} OR (${column} = ${at} AND id < ${sqlText(keyText(id))}))`;
}

function latestOf(where: string, having: string): string {
  return `SELECT id, max(revision) AS r, argMax(job1, revision) AS j, argMax(s1, revision) AS s, argMax(o1, revision) AS o,
      argMax(m1, revision) AS m, argMax(a1, revision) AS a, argMax(c1, revision) AS c
    FROM (
      SELECT id, revision, argMax(job, version) AS job1, argMax(state, version) AS s1, argMax(opened_ms, version) AS o1,
        argMax(machines, version) AS m1, argMax(accused, version) AS a1, argMax(causes, version) AS c1
      FROM ${TABLES.incidents} WHERE ${where} GROUP BY id, revision)
    WHERE ${having} GROUP BY id`;
}

/** Several services may do so at once. */
async function prepare(
  server: ClickHouseConnection,
  startAbove: (version: number) => void,
): Promise<void> {
  for (const sql of CREATE_TABLES) await server.command(sql);
  // A clock that was set back must not make new documents older, or new incidents "first" before those that are there.
  const highest = [
    `SELECT toFloat64(max(version)) FROM ${TABLES.documents}`,
    ...[TABLES.incidents, TABLES.audit].map(
      (table) => `SELECT toFloat64(toUInt64(${FIRST}) - min(version)) FROM ${table}`,
    ),
  ];
  for (const sql of highest) {
    for (const version of await server.select(sql, (row) => row.float64())) startAbove(version);
  }
}
