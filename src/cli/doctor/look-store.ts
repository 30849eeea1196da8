/** Whether a service of this configuration could use its history: the files of its data folder, or its database. */
import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import { errorText, UserError } from "../../base/errors.ts";
import { connectClickHouse, parseClickHouseUrl } from "../../history/clickhouse-connect.ts";
import { StoreInUse } from "../../history/in-use.ts";
import { checkLocalHistory } from "../../history/local-history.ts";
import type { ServeConfig } from "../../live/service/config/config.ts";
import { STATE_FILE } from "../../live/service/store/backup-folder.ts";

/** With the user and the database that the configuration names; null where it answers. */
export async function lookAtDatabase(url: string, timeoutMs: number): Promise<UserError | null> {
  try {
    const server = await connectClickHouse(parseClickHouseUrl(url), timeoutMs);
    try {
      await server.select("SELECT 1.0", (row) => row.float64());
      return null;
    } finally {
      await server.close();
    }
  } catch (error) {
    return new UserError(
      `the history does not answer: ${errorText(error)}`,
      'check "history" in the configuration, and systemctl status clickhouse-server    # on its machine',
    );
  }
}

/**
 * Files that a service which does not answer would open. Without a configuration a service elsewhere than at the usual
 * address may have them open, which is no fault.
 */
export async function lookAtFiles(
  config: Pick<ServeConfig, "history"> | null,
  dataFolder: string,
): Promise<UserError | null> {
  const history = config?.history;
  const own =
    history?.kind === "clickhouse" ? [] : [history?.path ?? join(dataFolder, "history.duckdb")];
  for (const file of [...own, join(dataFolder, STATE_FILE)])
    try {
      if (isReadable(file)) await checkLocalHistory(file);
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      if (config !== null || !(error instanceof StoreInUse)) return error;
    }
  return null;
}

/** Not by another user than the service's, which is no fault of the set-up. */
function isReadable(file: string): boolean {
  try {
    accessSync(file, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}
