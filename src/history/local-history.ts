/** The history on this machine: a DuckDB file where its package is installed, a plain file where it is not. */
import { existsSync } from "node:fs";
import { BUILT } from "../base/built.ts";
import { UserError } from "../base/errors.ts";
import { checkFile } from "./duckdb-file.ts";
import { openDuckDbHistory } from "./duckdb-history.ts";
import type { History, LocalStore } from "./history.ts";
import { openJournalHistory } from "./journal-history.ts";

export interface LocalHistory<Store extends History = LocalStore> {
  readonly history: Store;
  readonly file: string;
  /** What a user should know at the start; null where nothing. */
  readonly says: string | null;
}

/** The executable cannot load it. */
const WITH_DUCKDB = BUILT.isSingle
  ? "use the npm package with @duckdb/node-api, or ClickHouse"
  : "npm install @duckdb/node-api beside faultline";

/** `path` is the DuckDB file; the plain file lies beside it. */
export async function openLocalHistory(path: string): Promise<LocalHistory> {
  if (await hasDuckDb()) return { history: await openDuckDbHistory(path), file: path, says: null };
  if (existsSync(path)) throw withoutDuckDb(path);
  const plain = `${path.replace(/\.duckdb$/, "")}.jsonl`;
  return {
    history: await openJournalHistory(plain),
    file: plain,
    says: `the history is a plain file, held in memory; for many jobs and months, ${WITH_DUCKDB}`,
  };
}

/** Whether it could be opened, without changing it. `path`: a DuckDB file that is there. Throws UserError. */
export async function checkLocalHistory(path: string): Promise<void> {
  if (!(await hasDuckDb())) throw withoutDuckDb(path);
  await checkFile(path);
}

function withoutDuckDb(path: string): UserError {
  return new UserError(
    `history ${path} is a DuckDB file, and DuckDB is not part of this installation`,
    `${WITH_DUCKDB}, or name another file`,
  );
}

async function hasDuckDb(): Promise<boolean> {
  if (BUILT.isSingle) return false;
  return await import("@duckdb/node-api").then(
    () => true,
    () => false,
  );
}
