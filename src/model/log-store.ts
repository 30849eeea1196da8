/** What is remembered between calls about logs: events of healthy jobs, a site's own records, and what people said. */
import type { FaultRecord } from "./fault-record.ts";

export interface Vote {
  readonly confirmed: number;
  readonly disputed: number;
  /** Newest last. */
  readonly notes: readonly string[];
}

/** What one store knows by itself. */
export interface LogKnown {
  /** Healthy jobs that were learnt, the oldest first. */
  readonly jobs: readonly string[];
  /** Template text → in how many of the jobs it was seen. */
  readonly normal: Readonly<Record<string, number>>;
  readonly records: readonly FaultRecord[];
  /** By record id. */
  readonly votes: Readonly<Record<string, Vote>>;
}

/** What came from elsewhere is kept apart, so that it can be taken back. */
export interface LogImport {
  /** Of its contents. */
  readonly id: string;
  /** A file, a site; "" where nobody said. */
  readonly from: string;
  readonly who: string;
  readonly atMs: number;
  readonly known: LogKnown;
}

export interface LogStore extends LogKnown {
  /** Which events each job had; nothing of jobs that were learnt before this was kept. */
  readonly eventsOf: Readonly<Record<string, readonly string[]>>;
  readonly imports: readonly LogImport[];
}

export const EMPTY_STORE: LogStore = {
  jobs: [],
  normal: {},
  records: [],
  votes: {},
  eventsOf: {},
  imports: [],
};

/** A record's certainty counts as so many votes. */
const PRIOR_VOTES = 4;

export function withVotes(record: FaultRecord, vote: Vote | undefined): FaultRecord {
  if (!vote) return record;
  const { confirmed, disputed } = vote;
  const certainty =
    (record.certainty * PRIOR_VOTES + confirmed) / (PRIOR_VOTES + confirmed + disputed);
  return { ...record, certainty: Math.min(0.99, certainty) };
}
