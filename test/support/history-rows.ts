/** Rows of a history for tests. */
import type { AuditRow, IterationRows, JobRow } from "../../src/history/history.ts";
import type { Incident, IncidentState } from "../../src/model/incident.ts";
import type { Suspect, Verdict } from "../../src/model/verdict.ts";

export const HOSTILE: readonly string[] = [
  "it's",
  '"quoted"',
  "back\\slash\\",
  "\\'; DROP TABLE jobs; --",
  "nul\0inside",
  "line\nfeed\ttab\rreturn\b\u001b[31m",
  "emoji 🦆 and 漢字",
  "half a pair \ud83e",
  "$1 {x:String} %s ?",
  "",
];

export const jobRow = (job: string, run: string, more: Partial<JobRow> = {}): JobRow => ({
  job,
  run,
  startedMs: 1000,
  seenMs: 2000,
  endedMs: null,
  worldSize: 8,
  machines: 2,
  baselineMs: 512.25,
  lastIteration: 7,
  ...more,
});

export const suspect = (machine: string | null, cause: Suspect["cause"]): Suspect => ({
  type: "gpu",
  ranks: [3],
  machine,
  link: null,
  name: null,
  cause,
  score: 0.9,
  why: "it waits for nobody",
  evidence: [],
});

export const verdictOf = (...suspects: readonly Suspect[]): Verdict => ({
  schema: "faultline.verdict/1",
  kind: "fail-slow",
  summary: "slow",
  confidence: 0.9,
  when: { iteration: 12, from: null, to: null },
  suspects,
  victims: [1, 2],
  owner: null,
  actions: [],
  findings: [],
  inputs: [],
  missing: [],
  wouldHelp: [],
});

export const incidentOf = (
  id: string,
  revision: number,
  state: IncidentState,
  more: Partial<Incident> = {},
): Incident => ({
  id,
  job: "pretrain",
  run: "r1",
  revision,
  state,
  kind: "fail-slow",
  summary: "rank 3 is slow",
  onsetMs: 900,
  openedMs: 1000,
  changedMs: 1000 + revision,
  resolvedMs: null,
  fromIteration: 12,
  relapses: 0,
  verdict: null,
  machines: [],
  ranks: [3],
  wastedGpuMs: 0,
  actions: [],
  ...more,
});

export const auditRow = (id: string, atMs: number, more: Partial<AuditRow> = {}): AuditRow => ({
  id,
  atMs,
  who: "service",
  what: "approve",
  incident: "i1",
  action: "a1",
  detail: "",
  ...more,
});

export function iterationRows(rows: readonly (readonly [number, number, number])[]): IterationRows {
  return {
    iteration: Float64Array.from(rows, ([iteration]) => iteration),
    endMs: Float64Array.from(rows, ([, endMs]) => endMs),
    durationMs: Float64Array.from(rows, ([, , durationMs]) => durationMs),
  };
}
