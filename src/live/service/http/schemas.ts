/**
 * What the API answers, as schemas: the OpenAPI description is made of them. Each is tied to the type it describes, so
 * that a field which is added there and not here does not compile.
 */
import { z } from "zod";
import type { AuditRow, Offender } from "../../../history/history.ts";
import type { Incident, IncidentAction } from "../../../model/incident.ts";
import type { JobView, LiveEvent } from "../view.ts";
import { verdict } from "./verdict-schema.ts";

const ms = z.number().describe("milliseconds since 1970");
const texts = z.array(z.string());
const numbersOrNull = z.array(z.number().nullable());

export const jobView: z.ZodType<JobView> = z.object({
  job: z.string(),
  run: z.string().describe("one start of the job"),
  startedMs: ms,
  seenMs: ms,
  worldSize: z.number().describe("0 where nobody knows"),
  ranks: z.number().describe("ranks that have reported"),
  machines: z.number(),
  health: z.enum(["learning", "healthy", "slow", "hung", "failed", "silent", "ended"]),
  lastIteration: z.number(),
  levelMs: z.number().nullable().describe("an iteration now"),
  baselineMs: z.number().nullable().describe("an iteration when healthy"),
  incident: z.string().nullable().describe("id of the open incident"),
  wastedGpuMs: z.number().describe("GPU-milliseconds lost in this run so far"),
  lacks: texts.describe("what is missing or was dropped, a sentence each"),
});

const action: z.ZodType<IncidentAction> = z.object({
  id: z.string(),
  do: z.string(),
  target: z.string(),
  why: z.string(),
  state: z.enum(["proposed", "approved", "running", "done", "failed", "dismissed", "dry-run"]),
  canRun: z.boolean().describe("whether a hook is configured that can do it"),
  changedMs: ms,
  outcome: z.string(),
  data: z.record(z.string(), z.unknown()),
});

export const incident: z.ZodType<Incident> = z.object({
  id: z.string(),
  job: z.string(),
  run: z.string(),
  revision: z.number().describe("counts changes, from 1"),
  state: z.enum(["suspected", "confirmed", "resolved", "relapsed"]),
  kind: z.enum(["hang", "crash", "fail-slow", "faulty-machine", "undetermined"]),
  summary: z.string(),
  onsetMs: ms,
  openedMs: ms,
  changedMs: ms,
  resolvedMs: ms.nullable(),
  fromIteration: z.number().nullable(),
  relapses: z.number(),
  verdict: verdict.nullable(),
  machines: texts,
  ranks: z.array(z.number()),
  wastedGpuMs: z.number(),
  actions: z.array(action),
});

const offender: z.ZodType<Offender> = z.object({
  machine: z.string(),
  incidents: z.number(),
  jobs: z.number(),
  lastMs: ms,
  causes: texts,
});

const auditRow: z.ZodType<AuditRow> = z.object({
  id: z.string(),
  atMs: ms,
  who: z.string().describe("the token's name, or service"),
  what: z.string(),
  incident: z.string(),
  action: z.string(),
  detail: z.string(),
});

/** Columns: entry i of each belongs to the same rank. */
const rankColumns = z.object({
  rank: z.array(z.number()),
  machine: z.array(z.string().nullable()),
  gpu: numbersOrNull,
  stage: numbersOrNull,
  iteration: numbersOrNull,
  durationMs: numbersOrNull,
  ownMs: numbersOrNull.describe("time outside communication"),
  waitMs: numbersOrNull,
  state: z.array(z.string()).describe("running, stopped, gone or silent"),
});

const iterationColumns = z.object({
  iteration: numbersOrNull,
  endMs: numbersOrNull,
  durationMs: numbersOrNull,
});

const otherEvent: z.ZodType<Exclude<LiveEvent, { type: "iterations" }>> = z.union([
  z.object({ type: z.literal("job"), job: jobView }),
  z.object({ type: z.literal("incident"), incident }),
  z.object({ type: z.literal("agent"), agent: z.string(), connected: z.boolean() }),
  z.object({ type: z.literal("trouble"), line: z.string() }),
]);

/** Apart from the others, for what is not a number there is null in JSON. */
const iterationsEvent = z.object({
  type: z.literal("iterations"),
  job: z.string(),
  run: z.string(),
  rows: iterationColumns,
});

export const actionBody = z.strictObject({
  verb: z.enum(["approve", "dismiss"]),
  dryRun: z.boolean().default(false).describe("only say what would be run"),
});

/** Under their names in the description. */
export const SCHEMAS = {
  Job: jobView,
  Jobs: z.object({ jobs: z.array(jobView) }),
  Ranks: rankColumns,
  Iterations: iterationColumns,
  Verdict: verdict,
  Action: action,
  Incident: incident,
  Incidents: z.object({ incidents: z.array(incident) }),
  Revisions: z.object({ revisions: z.array(incident) }),
  Offenders: z.object({ offenders: z.array(offender) }),
  Audit: z.object({ audit: z.array(auditRow) }),
  ActionBody: actionBody,
  Snapshot: z.object({
    type: z.literal("snapshot"),
    jobs: z.array(jobView),
    incidents: z.array(incident).describe("those not resolved"),
  }),
  LiveEvent: z.union([otherEvent, iterationsEvent]),
  Health: z.object({ status: z.literal("ok") }),
  Error: z.object({ error: z.string().describe("one sentence") }),
} as const;

export type SchemaName = keyof typeof SCHEMAS;
