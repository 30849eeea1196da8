/** Whether the ClickHouse of a configuration answers, with the user and the database that it names. */
import { errorText } from "../../base/errors.ts";
import { connectClickHouse, parseClickHouseUrl } from "../../history/clickhouse-connect.ts";

/** Why not; null where it does. */
export async function lookAtDatabase(url: string, timeoutMs: number): Promise<string | null> {
  try {
    const server = await connectClickHouse(parseClickHouseUrl(url), timeoutMs);
    try {
      await server.select("SELECT 1.0", (row) => row.float64());
      return null;
    } finally {
      await server.close();
    }
  } catch (error) {
    return errorText(error);
  }
}
