/**
 * Tables in ClickHouse, made where they are missing. Who runs a cluster makes them beforehand with the same columns and
 * an engine of its own (Replicated…, Distributed): what is there is used as it is.
 *
 * `version` says which of several rows with one key counts, the highest; merges drop the others some day, reads do so
 * at once.
 */
export const TABLES = {
  jobs: "faultline_jobs",
  incidents: "faultline_incidents",
  audit: "faultline_audit",
  iterations: "faultline_iterations",
  documents: "faultline_documents",
} as const;

export type Table = keyof typeof TABLES;

export const CREATE_TABLES: readonly string[] = [
  table("jobs", "job String, run String, started_ms Float64, seen_ms Float64", "job, run"),
  table(
    "incidents",
    `id String, revision Float64, job String, state String, opened_ms Float64,
     machines Array(String), accused Array(String), causes Array(String)`,
    "id, revision",
  ),
  table("audit", "id String, at_ms Float64, incident String", "id"),
  `CREATE TABLE IF NOT EXISTS ${TABLES.iterations} (
     job String, run String, iteration Float64, end_ms Float64, duration_ms Float64, version UInt64)
   ENGINE = ReplacingMergeTree(version) ORDER BY (job, run, iteration)`,
  table("documents", "key String", "key"),
];

function table(name: Table, columns: string, key: string): string {
  return `CREATE TABLE IF NOT EXISTS ${TABLES[name]} (${columns}, document String, version UInt64)
    ENGINE = ReplacingMergeTree(version) ORDER BY (${key})`;
}
