/**
 * Tables of the file, as steps by number: a file of an older version takes the steps it lacks. A step that was released
 * is never changed. No primary keys: DuckDB's index refuses long keys and costs memory; whoever writes sees to it that a
 * row is there once, which is safe because one process at a time has the file.
 */
export const MIGRATIONS: readonly string[] = [
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
