/** What all ways of telling share: the service's means, counters, and an end. */
import { createHash } from "node:crypto";
import type { Incident } from "../../../model/incident.ts";
import type { Ledger, LedgerEntry } from "./ledger.ts";
import type { AlertsConfig, AlertsEnv, AlertTimings } from "./types.ts";

export interface ChannelMeans {
  readonly config: AlertsConfig;
  readonly env: AlertsEnv;
  readonly timings: AlertTimings;
  readonly ledger: Ledger;
  readonly counters: { sent: number; failures: number };
  /** Aborted when requests on their way are to end. */
  readonly closing: AbortSignal;
}

export interface Channel {
  readonly key: string;
  readonly pending: number;
  /** The entry's state is to be told here, unless it was; the incident is the record that led to it. */
  tell(entry: LedgerEntry, incident: Incident): void;
  /** It is muted: who was told of it already is not to take it for over. Absent where nothing is ever repeated. */
  keep?(entry: LedgerEntry, incident: Incident): void;
  /** Whether it is to be silenced may have changed; absent where nothing is ever repeated. */
  hushed?(incident: Incident): void;
  /** No more is begun; resolves when nothing is on its way. */
  close(): Promise<void>;
}

/** Of a receiver, for the ledger: addresses are secrets often enough. */
export function channelKey(kind: string, url: string): string {
  return `${kind}-${createHash("sha256").update(url).digest("hex").slice(0, 12)}`;
}

export function backoffMs({ firstRetryMs, mostRetryMs }: AlertTimings, failures: number): number {
  return Math.min(mostRetryMs, firstRetryMs * 2 ** Math.min(30, Math.max(0, failures - 1)));
}
