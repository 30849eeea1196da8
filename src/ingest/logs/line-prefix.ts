/** What stands before a line's message: when, who and how bad. Positions, so that lines of the same shape need no second look. */
import type { LogLevel } from "../../model/log-digest.ts";

/** Places in the line: [from, to), or -1, -1. */
export interface LinePrefix {
  /** Where the message begins. */
  contentStart: number;
  /** The host's name. */
  hostFrom: number;
  hostTo: number;
  /** Digits of the global rank. */
  rankFrom: number;
  rankTo: number;
  /** A writer that is known without its rank: a local rank, task, process. */
  writerFrom: number;
  writerTo: number;
  /** What kind of time stands where; "" for none. */
  stampKind: StampKind;
  stampFrom: number;
  level: LogLevel | null;
}

/** See ingest/log-time.ts for the formats. "uptime" is dmesg's seconds since boot. */
export type StampKind =
  | ""
  | "iso"
  | "us"
  | "glog"
  | "syslog"
  | "kernel"
  | "uptime"
  | "epoch"
  | "clock";
