/**
 * What is remembered of a fleet: jobs, incidents with all their changes, iteration times, who did what, and the
 * documents of the embedded coordinator. One interface, a DuckDB file by default, ClickHouse where a fleet outgrows it;
 * both pass one contract suite. A write that has resolved is safe from kill -9 of the service. Writing the same row
 * twice leaves one.
 */
import type { Incident } from "../model/incident.ts";

export interface JobRow {
  readonly job: string;
  readonly run: string;
  readonly startedMs: number;
  readonly seenMs: number;
  readonly endedMs: number | null;
  readonly worldSize: number;
  readonly machines: number;
  /** Milliseconds an iteration when healthy; null before it is known. */
  readonly baselineMs: number | null;
  readonly lastIteration: number;
}

/** Who did what to what: actions, approvals, refusals, sign-ins, links, reloads. Never changed, never removed. */
export interface AuditRow {
  /** Unique; rows are ordered by time, then id. */
  readonly id: string;
  readonly atMs: number;
  /** The token's name, "oidc:" and the name of a person who signed in, "service" for what it does by itself. */
  readonly who: string;
  readonly what: string;
  readonly incident: string;
  readonly action: string;
  readonly detail: string;
}

/** Where a page ends: the next holds what is older, or of the same moment with a smaller id. */
export interface RowAt {
  readonly atMs: number;
  readonly id: string;
}

export interface AuditQuery {
  readonly incident?: string;
  /** Only rows of incidents of jobs whose names fit. */
  readonly jobs?: readonly string[];
  /** At or after. */
  readonly sinceMs?: number;
  readonly before?: RowAt;
  readonly most?: number;
}

/** Iterations of one run, one value an iteration for the whole job. */
export interface IterationRows {
  readonly iteration: Float64Array;
  readonly endMs: Float64Array;
  readonly durationMs: Float64Array;
}

export interface IncidentQuery {
  /** Only these; some hundred at once. */
  readonly ids?: readonly string[];
  readonly job?: string;
  /** Of jobs whose names fit one of these (base/patterns.ts); those of all jobs where it is absent. */
  readonly jobs?: readonly string[];
  /** Only those not resolved. */
  readonly open?: boolean;
  /** Opened at or after. */
  readonly sinceMs?: number;
  /** Opened before, or not, and open still at this moment or later. */
  readonly lastedMs?: number;
  readonly machine?: string;
  /** By when they were opened. */
  readonly before?: RowAt;
  /** The newest first; at most so many (default 1000). */
  readonly most?: number;
}

/** A machine that was a suspect of incidents, over all jobs. */
export interface Offender {
  readonly machine: string;
  readonly incidents: number;
  readonly jobs: number;
  readonly lastMs: number;
  readonly causes: readonly string[];
}

export interface History {
  /** One row a run: the one that was seen last, of equals the last put. */
  putJob(row: JobRow): Promise<void>;
  /** Those that started last first. */
  jobs(most: number): Promise<readonly JobRow[]>;
  /** A revision that is there already is left as it is. */
  putIncident(incident: Incident): Promise<void>;
  /** Their latest revisions. */
  incidents(query: IncidentQuery): Promise<readonly Incident[]>;
  /** All revisions, ascending; empty where unknown. */
  incidentHistory(id: string): Promise<readonly Incident[]>;
  putAudit(row: AuditRow): Promise<void>;
  /** The newest first. */
  audit(query: AuditQuery): Promise<readonly AuditRow[]>;
  putIterations(job: string, run: string, rows: IterationRows): Promise<void>;
  /** Ascending, thinned out to at most so many; an iteration that was put twice counts once, the last put. */
  iterations(
    job: string,
    run: string,
    query: { readonly fromMs?: number; readonly toMs?: number; readonly most: number },
  ): Promise<IterationRows>;
  /**
   * Machines among the suspects of incidents that were confirmed and opened since a moment, the most frequent first.
   * Suspects are those of an incident's latest confirmation; `lastMs` is when the latest incident was opened. `jobs`:
   * only incidents of jobs whose names fit; `without`: not these, some hundred at once.
   */
  offenders(
    sinceMs: number,
    most: number,
    jobs?: readonly string[],
    without?: readonly string[],
  ): Promise<readonly Offender[]>;
  /** Documents by key: the embedded coordinator's. null forgets the key. */
  putDocument(key: string, document: unknown): Promise<void>;
  /** null where there is none. */
  document(key: string): Promise<unknown>;
  documentKeys(prefix: string): Promise<readonly string[]>;
  /** Forgets iterations that ended before a moment; where a store has no such thing, nothing is forgotten. */
  prune?(beforeMs: number): Promise<void>;
  /** Forgets resolved incidents that were opened before a moment, and runs that were last seen before it. */
  pruneIncidents?(beforeMs: number): Promise<void>;
  /** Forgets the oldest iterations until the store takes no more bytes than these; the bytes it takes afterwards. */
  shrink?(mostBytes: number): Promise<number>;
  /** Writes all that was acknowledged so far, as of one moment, into a new store at this path, but not these documents. */
  copyTo?(path: string, without: readonly string[]): Promise<void>;
  /** Rejects where the store cannot be reached. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

/** A store in a file of its own can do all of it. */
export type LocalStore = History &
  Required<Pick<History, "prune" | "pruneIncidents" | "shrink" | "copyTo">>;
