/** Opens the file of the embedded history: made where it is missing, brought up to date, errors in words. */
import { existsSync, linkSync, realpathSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";
import { errorText, UserError } from "../base/errors.ts";
import { harmless } from "../base/text.ts";
import { StoreInUse } from "./in-use.ts";

/**
 * Tables of the file, as steps by number: a file of an older version takes the steps it lacks. A step that was released
 * is never changed. No primary keys: DuckDB's index refuses long keys and costs memory; whoever writes sees to it that a
 * row is there once, which is safe because one process at a time has the file.
 */
const MIGRATIONS: readonly string[] = [
  `CREATE TABLE jobs (
     job VARCHAR NOT NULL, run VARCHAR NOT NULL,
     started_ms DOUBLE NOT NULL, seen_ms DOUBLE NOT NULL, document VARCHAR NOT NULL);
   CREATE TABLE incidents (
     id VARCHAR NOT NULL, revision DOUBLE NOT NULL, job VARCHAR NOT NULL, state VARCHAR NOT NULL,
     opened_ms DOUBLE NOT NULL, machines VARCHAR[] NOT NULL,
     accused VARCHAR[] NOT NULL, causes VARCHAR[] NOT NULL, document VARCHAR NOT NULL);
   CREATE TABLE audit (
     id VARCHAR NOT NULL, at_ms DOUBLE NOT NULL, incident VARCHAR NOT NULL, document VARCHAR NOT NULL);
   CREATE TABLE iterations (
     job VARCHAR NOT NULL, run VARCHAR NOT NULL,
     iteration DOUBLE NOT NULL, end_ms DOUBLE NOT NULL, duration_ms DOUBLE NOT NULL);
   CREATE TABLE documents (key VARCHAR NOT NULL, document VARCHAR NOT NULL);`,
];

export interface DuckDbOptions {
  /** DuckDB's own threads and memory: the history is a guest of the service. */
  readonly threads?: number;
  readonly memory?: string;
  /** Size of the write-ahead log at which it is worked into the file. */
  readonly checkpointAt?: string;
}

interface OpenFile {
  readonly instance: DuckDBInstance;
  close(this: void): void;
}

/** A second open in one process would silently undo the lock of the first (it is a POSIX lock). */
const openHere = new Set<string>();
const RECORDS = ["jobs", "incidents", "audit", "documents"];
const IN_MEMORY = ":memory:";

export async function openFile(path: string, options: DuckDbOptions): Promise<OpenFile> {
  if (path === IN_MEMORY) {
    const instance = await start(path, options);
    return { instance, close: () => instance.closeSync() };
  }
  if (!existsSync(dirname(path))) {
    throw new UserError(
      `history ${path}: there is no folder ${dirname(path)}`,
      "make the folder, or name another file",
    );
  }
  const place = join(realpathSync(dirname(path)), basename(path));
  if (openHere.has(place)) {
    throw new StoreInUse(`history ${path} is open already in this process`, "open it once");
  }
  openHere.add(place);
  try {
    if (!existsSync(path) && !existsSync(`${path}.wal`)) await makeFile(path, options);
    const instance = await start(path, options);
    const close = (): void => {
      instance.closeSync();
      openHere.delete(place);
    };
    return { instance, close };
  } catch (error) {
    openHere.delete(place);
    throw inWords(path, error);
  }
}

/** Made under another name: a service that is killed meanwhile leaves no half file where the next one looks. */
async function makeFile(path: string, options: DuckDbOptions): Promise<void> {
  const draft = `${path}.new-${process.pid}`;
  try {
    (await start(draft, options)).closeSync();
    linkSync(draft, path);
  } catch (error) {
    // Somebody else has made it; or the file system knows no links: then it is made in place.
    if (!(error instanceof Error && "code" in error)) throw error;
  } finally {
    rmSync(draft, { force: true });
    rmSync(`${draft}.wal`, { force: true });
  }
}

/** Whether a service could open it: read, and left as it is. Throws UserError, StoreInUse where somebody has it open. */
export async function checkFile(path: string): Promise<void> {
  try {
    (await start(path, {}, true)).closeSync();
  } catch (error) {
    throw inWords(path, error);
  }
}

async function start(
  path: string,
  options: DuckDbOptions,
  isReadOnly = false,
): Promise<DuckDBInstance> {
  const { DuckDBInstance } = await import("@duckdb/node-api");
  const settings: Record<string, string> = {
    threads: String(options.threads ?? 1),
    // Nothing is ever fetched from the network.
    autoinstall_known_extensions: "false",
    autoload_known_extensions: "false",
    checkpoint_threshold: options.checkpointAt ?? "16MB",
    ...(isReadOnly ? { access_mode: "READ_ONLY" } : {}),
  };
  if (path !== IN_MEMORY) settings["memory_limit"] = options.memory ?? "512MB";
  const instance = await DuckDBInstance.create(path, settings);
  try {
    const connection = await instance.connect();
    const version = await versionOf(path, connection);
    if (!isReadOnly) await migrate(version, connection);
    // Checksums are compared when a block is read: damage of a record is to show now, not when it is asked for.
    for (const table of isReadOnly && version < 1 ? [] : RECORDS) {
      await connection.run(`SELECT sum(length(document)) AS length FROM ${table}`);
    }
    connection.closeSync();
  } catch (error) {
    instance.closeSync();
    throw error;
  }
  return instance;
}

/** Of its tables; -1 where there are none. */
async function versionOf(path: string, connection: DuckDBConnection): Promise<number> {
  const tables = await connection.runAndReadAll(
    "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main'",
  );
  const names = tables.getRowsJS().map(([name]) => name as string);
  if (!names.includes("faultline_schema")) {
    if (names.length > 0) {
      throw new UserError(
        `history ${path} is a DuckDB file of something else (${harmless(names.slice(0, 3).join(", "))})`,
        "name another file",
      );
    }
    return -1;
  }
  const read = await connection.runAndReadAll("SELECT max(version) FROM faultline_schema");
  const version = Number(read.getRowsJS()[0]?.[0] ?? 0);
  if (version > MIGRATIONS.length) {
    throw new UserError(
      `history ${path} was written by a newer Faultline (its tables are version ${version}, known are ${MIGRATIONS.length})`,
      "use that version, or name another file",
    );
  }
  return version;
}

async function migrate(version: number, connection: DuckDBConnection): Promise<void> {
  if (version < 0) await connection.run("CREATE TABLE faultline_schema (version DOUBLE NOT NULL)");
  for (let step = Math.max(0, version); step < MIGRATIONS.length; step++) {
    await connection.run("BEGIN");
    await connection.run(MIGRATIONS[step]!);
    await connection.run(`INSERT INTO faultline_schema VALUES (${step + 1})`);
    await connection.run("COMMIT");
  }
}

/** DuckDB tells its errors apart in their text only. */
function inWords(path: string, error: unknown): unknown {
  if (error instanceof UserError) return error;
  const text = errorText(error);
  const said = harmless(text.split("\n", 1)[0] ?? "");
  if (/could not set lock|conflicting lock/i.test(text)) {
    const holder = /held in .*?\(PID (\d+)\)/.exec(text)?.[1];
    return new StoreInUse(
      `history ${path} is in use by ${holder === undefined ? "another process" : `process ${holder}`}`,
      "stop it, or name another file: one service has the file at a time",
    );
  }
  if (/permission denied|read-only|cannot open file|is a directory/i.test(text)) {
    return new UserError(`history ${path} cannot be opened: ${said}`, "check its owner and rights");
  }
  if (/no space left/i.test(text)) {
    return new UserError(`history ${path} cannot be opened: ${said}`, "make room on the disk");
  }
  return new UserError(
    `history ${path} cannot be read: ${said}`,
    `if nothing else reads it either, move it away (mv '${path}' '${path}.damaged'; the same with '${path}.wal' where there is one); a new one is made at the next start`,
  );
}
