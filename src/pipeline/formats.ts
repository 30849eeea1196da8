import { readersFor } from "../ingest/formats.ts";

/** What can be read, by the names that `inputs` of a verdict gives it. */
export function formatNames(): readonly string[] {
  return [...new Set(readersFor({}).map(({ format }) => format))];
}
