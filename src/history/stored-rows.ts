/** What every store keeps of a row: the columns that queries need, and the row itself as JSON text. */
import { errorText } from "../base/errors.ts";
import type { Incident } from "../model/incident.ts";
import type { AuditRow, IterationRows, JobRow } from "./history.ts";

/** A row that no store can keep: trying again would not help. */
export class Unstorable extends Error {
  constructor(what: string) {
    super(what);
    this.name = "Unstorable";
  }
}

/** Beyond is nonsense: a verdict of 10,000 ranks takes a few megabytes. */
const MOST_TEXT = 32 << 20;
/** Rows that one answer may hold, whatever was asked for. */
const MOST_ROWS = 1_000_000;

export interface StoredJob {
  readonly job: string;
  readonly run: string;
  readonly startedMs: number;
  readonly seenMs: number;
  readonly text: string;
}

export interface StoredIncident {
  readonly id: string;
  readonly revision: number;
  readonly job: string;
  readonly state: string;
  readonly openedMs: number;
  readonly machines: readonly string[];
  /** Pairs of machine and cause, as two columns: what offenders are counted from. */
  readonly accused: readonly string[];
  readonly causes: readonly string[];
  readonly text: string;
}

export interface StoredAudit {
  readonly id: string;
  readonly atMs: number;
  readonly incident: string;
  readonly text: string;
}

export function storedJob(row: JobRow): StoredJob {
  numbers("a job", [row.startedMs, row.seenMs, row.worldSize, row.machines, row.lastIteration]);
  return {
    job: keyText(row.job),
    run: keyText(row.run),
    startedMs: row.startedMs,
    seenMs: row.seenMs,
    text: jsonText(row),
  };
}

export function storedIncident(incident: Incident): StoredIncident {
  if (!Number.isSafeInteger(incident.revision) || incident.revision < 1) {
    throw new Unstorable(`incident ${incident.id}: ${incident.revision} is no revision`);
  }
  numbers(`incident ${incident.id}`, [
    incident.onsetMs,
    incident.openedMs,
    incident.changedMs,
    incident.relapses,
    incident.wastedGpuMs,
  ]);
  const machines = [...new Set(incident.machines.map(keyText))];
  const accused: string[] = [];
  const causes: string[] = [];
  for (const machine of machines) {
    for (const cause of causesOn(incident, machine)) {
      accused.push(machine);
      causes.push(cause);
    }
  }
  return {
    id: keyText(incident.id),
    revision: incident.revision,
    job: keyText(incident.job),
    state: incident.state,
    openedMs: incident.openedMs,
    machines,
    accused,
    causes,
    text: jsonText(incident),
  };
}

export function storedAudit(row: AuditRow): StoredAudit {
  numbers(`audit ${row.id}`, [row.atMs]);
  return {
    id: keyText(row.id),
    atMs: row.atMs,
    incident: keyText(row.incident),
    text: jsonText(row),
  };
}

/** Copies: the caller may use its arrays again. Durations may be unknown, numbers and times may not. */
export function storedIterations({ iteration, endMs, durationMs }: IterationRows): IterationRows {
  if (iteration.length !== endMs.length || iteration.length !== durationMs.length) {
    throw new Unstorable("iterations: columns of unequal length");
  }
  for (let i = 0; i < iteration.length; i++) {
    if (!Number.isFinite(iteration[i]) || !Number.isFinite(endMs[i])) {
      throw new Unstorable(`iterations: row ${i} has no number or no time`);
    }
  }
  return { iteration: iteration.slice(), endMs: endMs.slice(), durationMs: durationMs.slice() };
}

/** null: nothing is to be kept under the key any more. */
export function documentText(document: unknown): string | null {
  return document === null || document === undefined ? null : jsonText(document);
}

/** Half a surrogate pair has no UTF-8: it becomes the replacement character, on the way in and when asked for. */
export function keyText(text: string): string {
  return Buffer.from(text).toString();
}

export function rowLimit(most: number | undefined, usual: number): number {
  const wanted = most ?? usual;
  if (Number.isNaN(wanted)) throw new RangeError("most: not a number");
  return Math.max(0, Math.min(Math.floor(wanted), MOST_ROWS));
}

/** For SQL: nothing but a finite number gets through; what lies beyond all numbers is cut. */
export function bound(value: number): number {
  if (Number.isNaN(value)) throw new RangeError("a time is not a number");
  return Math.max(-Number.MAX_VALUE, Math.min(value, Number.MAX_VALUE));
}

function jsonText(value: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    throw new Unstorable(`not JSON: ${errorText(error)}`);
  }
  if (text === undefined) throw new Unstorable("not JSON");
  if (text.length > MOST_TEXT) {
    throw new Unstorable(`${text.length} characters are more than one row may hold`);
  }
  return text;
}

function numbers(what: string, values: readonly number[]): void {
  if (!values.every(Number.isFinite)) throw new Unstorable(`${what}: a number is missing`);
}

/** Of the suspects on this machine; of all where none is said to be on it. "" where there is no verdict. */
function causesOn(incident: Incident, machine: string): readonly string[] {
  const suspects = incident.verdict?.suspects ?? [];
  const on = suspects.filter((suspect) => suspect.machine === machine);
  const causes = new Set((on.length > 0 ? on : suspects).map(({ cause }): string => cause));
  return causes.size > 0 ? [...causes] : [""];
}
