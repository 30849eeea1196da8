/**
 * What the API answers, as schemas: the OpenAPI description is made of them. Each is tied to the type it describes, so
 * that a field which is added there and not here does not compile.
 */
import { z } from "zod";
import type { AuditRow, Offender } from "../../../history/history.ts";
import type { Incident, IncidentAction } from "../../../model/incident.ts";
import type {
  AgentView,
  DemoFault,
  DemoState,
  GroupView,
  JobView,
  LiveEvent,
  SwitchState,
} from "../view.ts";
import type { JobState, Plan } from "../microbatches/jobs.ts";
import { picture } from "./picture-schema.ts";
import {
  addedRecord,
  forgetBody,
  recordBody,
  site,
  siteLabels,
  siteLogs,
  siteStore,
} from "./site-routes.ts";
import { verdict } from "./verdict-schema.ts";
import {
  commentedHandling,
  digest,
  handling,
  handlingBody,
  madeMute,
  mute,
  muteBody,
} from "./workflow-routes.ts";

const ms = z.number().describe("milliseconds since 1970");
const texts = z.array(z.string());
const numbersOrNull = z.array(z.number().nullable());

export const jobView: z.ZodType<JobView> = z.object({
  job: z.string(),
  run: z.string().describe("one start of the job"),
  startedMs: ms,
  seenMs: ms,
  worldSize: z.number().describe("0 where unknown"),
  ranks: z.number().describe("ranks that have reported"),
  machines: z.number(),
  health: z.enum(["learning", "healthy", "slow", "hung", "failed", "silent", "ended"]),
  lastIteration: z.number(),
  levelMs: z.number().nullable().describe("an iteration now"),
  baselineMs: z.number().nullable().describe("an iteration when healthy"),
  incident: z.string().nullable().describe("id of the open incident"),
  wastedGpuMs: z.number().describe("GPU-milliseconds lost so far, in all its runs"),
  lacks: texts.describe("what is missing or was dropped, a sentence each"),
});

const action: z.ZodType<IncidentAction> = z.object({
  id: z.string(),
  do: z.string(),
  target: z.string(),
  why: z.string(),
  state: z.enum([
    "proposed",
    "approved",
    "running",
    "done",
    "failed",
    "dismissed",
    "dry-run",
    "undoing",
    "undone",
  ]),
  canRun: z.boolean().describe("whether a hook or a driver is configured that can do it"),
  canUndo: z
    .boolean()
    .exactOptional()
    .describe("whether something of it was done that can be undone"),
  changedMs: ms,
  outcome: z.string(),
  would: z.string().exactOptional().describe("what the last dry run said that would be done"),
  data: z.record(z.string(), z.unknown()),
});

export const incident: z.ZodType<Incident> = z.object({
  id: z.string(),
  job: z.string(),
  run: z.string(),
  revision: z.number().describe("counts changes, from 1"),
  state: z.enum(["suspected", "confirmed", "resolved", "relapsed"]),
  kind: z.enum(["hang", "crash", "fail-slow", "regression", "faulty-machine", "undetermined"]),
  summary: z.string(),
  onsetMs: ms,
  openedMs: ms,
  changedMs: ms,
  resolvedMs: ms.nullable(),
  namedMs: ms
    .exactOptional()
    .describe("when somebody was first named, since it began or came back"),
  fromIteration: z.number().nullable(),
  intermittent: z
    .object({ slow: z.number(), of: z.number(), ratio: z.number() })
    .exactOptional()
    .describe("where iterations are slow now and then: how many of how many, by how many times"),
  ending: z
    .enum(["fixed", "passed", "restarted", "ended", "withdrawn"])
    .exactOptional()
    .describe("how a job's slowdown or standstill ended"),
  endingSays: z.string().exactOptional().describe("the same in words, with the job's pace since"),
  relapses: z.number(),
  validation: z
    .object({
      ranks: z.array(z.number()),
      atIteration: z.number(),
      outcome: z.string(),
      isNamed: z.boolean(),
      tookMs: z.number().nullable(),
      costGpuMs: z.number().nullable(),
    })
    .exactOptional()
    .describe("tests of GPUs and links that the service asked the ranks for, and what they cost"),
  verdict: verdict.nullable(),
  machines: texts,
  ranks: z.array(z.number()),
  wastedGpuMs: z.number(),
  actions: z.array(action),
});

/** What receivers of alerts get (alerts/alert-text.ts). */
const digestWebhook = z.object({
  event: z.literal("digest"),
  url: z.string().nullable().describe("the page Site; null without alerts.externalUrl"),
  digest,
  markdown: z.string().describe("the same, to be read"),
});

const alertWebhook = z.object({
  event: z.enum(["confirmed", "resolved", "relapsed"]),
  severity: z.enum(["critical", "warning"]).describe("critical for hangs and crashes"),
  url: z.string().nullable().describe("the incident's page; null without alerts.externalUrl"),
  isCut: z
    .literal(true)
    .exactOptional()
    .describe(
      "findings, inputs and victims of the verdict are left out, because they were too long",
    ),
  incident,
});

/** What the webhook driver sends (actions/drivers/webhook.ts). */
const actionWebhook = z.object({
  verb: z.enum(["run", "undo"]),
  do: z.string().describe("replace-machine, restart-job, …"),
  target: z.string(),
  job: z.string(),
  run: z.string(),
  incident: z.string(),
  action: z.string().describe("its id"),
  reason: z.string(),
  machines: texts,
  exclude: texts.describe("machines to start without"),
  replacement: z.string().nullable().describe("the spare, where one is configured"),
  swaps: z.array(z.unknown()).describe("pairs of ranks that change places"),
  placement: z.unknown().describe("ranks on machines, for launchers; or null"),
  counts: z.unknown().describe("micro-batches of each replica, or null"),
  weights: z.unknown().describe("weights of their gradients, or null"),
  rank: z.unknown().describe("or null"),
  cause: z.unknown().describe("or null"),
});

const agentView: z.ZodType<AgentView> = z.object({
  agent: z.string(),
  machine: z.string(),
  version: z.string(),
  clockOffsetMs: z.number().describe("its clock less the service's; 0 where it is right"),
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

const group: z.ZodType<GroupView> = z.object({
  name: z.string(),
  role: z.string().describe("the description without its numbers"),
  ranks: z.array(z.number()),
});

/** Columns: entry i of each belongs to the same rank. */
const rankValues = z.object({
  layout: z.string().describe("changes whenever rank, machine, gpu, a coordinate or a group does"),
  iteration: numbersOrNull,
  durationMs: numbersOrNull,
  ownMs: numbersOrNull.describe("time outside communication"),
  waitMs: numbersOrNull,
  lateMs: numbersOrNull.describe("own time beyond what ranks of the same stage typically need"),
  temperature: numbersOrNull.describe("of its GPU, degrees Celsius"),
  state: z.array(z.string()).describe("running, stopped, gone or silent"),
});
const rankColumns = rankValues.extend({
  groups: z.array(group),
  rank: z.array(z.number()),
  machine: z.array(z.string().nullable()),
  gpu: numbersOrNull,
  stage: numbersOrNull,
  pipeline: numbersOrNull.describe("place in the pipeline"),
  data: numbersOrNull.describe("place among replicas"),
  tensor: numbersOrNull.describe("place among tensor-parallel peers"),
});

const iterationColumns = z.object({
  iteration: numbersOrNull,
  endMs: numbersOrNull,
  durationMs: numbersOrNull,
});

const switchFields = {
  isOn: z.boolean().describe("whether actions are run at all"),
  says: z.string().describe("who switched them off, and when"),
  canRun: z.boolean().describe("whether hooks or drivers are configured"),
};
const switchState: z.ZodType<SwitchState> = z.object(switchFields);

const otherEvent: z.ZodType<Exclude<LiveEvent, { type: "iterations" }>> = z.union([
  z.object({ type: z.literal("job"), job: jobView }),
  z.object({ type: z.literal("incident"), incident }),
  z.object({ type: z.literal("actions"), ...switchFields }),
  z.object({ type: z.literal("handling"), job: z.string(), handling }),
  z.object({ type: z.literal("mutes"), mutes: z.array(mute) }),
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
  verb: z.enum(["approve", "dismiss", "undo"]),
  dryRun: z.boolean().default(false).describe("only say what would be run"),
});

export const linkBody = z.strictObject({
  days: z.number().positive().max(90).default(7).describe("after which it expires"),
});

const session = z.object({
  canSignIn: z.boolean().describe("whether people can sign in at /auth/login"),
  name: z.string().nullable().describe("as it stands in the audit trail"),
  scopes: z.array(z.enum(["read", "act"])),
  jobs: texts.nullable().describe("patterns of the jobs that this is for; null for all"),
  link: z
    .object({ incident: z.string(), expiresMs: ms })
    .nullable()
    .describe("where the token is a read-only link"),
});

export const demoFault: z.ZodType<DemoFault> = z.strictObject({
  kind: z.enum(["gpu", "link", "nic", "data-loader", "machine"]),
  rank: z.int().min(0).max(1_000_000).optional().describe("any where it is absent"),
});

const demoState: z.ZodType<DemoState> = z.object({
  job: z.string(),
  gpus: z.number(),
  iteration: z.number(),
  isHung: z.boolean(),
  isReady: z.boolean().describe("whether enough of the healthy job was seen to notice"),
  faults: z.array(
    z.object({
      id: z.number(),
      kind: z.enum(["gpu", "link", "nic", "data-loader", "machine"]),
      says: z.string(),
      ranks: z.array(z.number()),
      machine: z.string().nullable(),
      sinceMs: ms,
    }),
  ),
});

const counts = z.array(z.number()).describe("micro-batches, by replica");
const microBatchPlan: z.ZodType<Plan> = z.object({
  iteration: z.number(),
  counts,
  weights: z.array(z.number()).describe("factors on the replicas' mean gradients"),
});
const microBatchReport = z.object({
  iteration: z.int().min(0),
  counts,
  seconds: numbersOrNull.describe("that each replica computed, without waiting"),
  run: z.string().optional(),
  multipleOf: z.int().min(1).optional(),
  bubble: z.number().min(0).optional(),
});
const microBatches: z.ZodType<JobState> = z.object({
  job: z.string(),
  run: z.string(),
  groups: z.number().describe("replicas"),
  total: z.number(),
  multipleOf: z.number(),
  bubble: z.number(),
  counts: counts.describe("what suits the replicas' speeds"),
  weights: z.array(z.number()),
  given: counts.describe("what the replicas were told last"),
  lastIteration: z.number().nullable(),
  reportedCounts: counts.nullable(),
  secondsPerMicroBatch: z.array(z.number()).nullable(),
  candidate: z
    .object({ counts, watched: z.number(), savedS: z.number(), neededS: z.number() })
    .nullable(),
  remark: z.string().nullable(),
  changes: z.array(
    z.object({
      job: z.string(),
      timeMs: ms,
      iteration: z.number(),
      before: counts,
      counts,
      beforeS: z.number(),
      afterS: z.number(),
      why: z.string(),
    }),
  ),
});

/** Under their names in the description. */
export const SCHEMAS = {
  Job: jobView,
  Jobs: z.object({ jobs: z.array(jobView) }),
  Ranks: rankColumns,
  RankValues: rankValues,
  Iterations: iterationColumns,
  MicroBatchPlan: microBatchPlan,
  MicroBatchReport: microBatchReport,
  MicroBatchReported: z.object({ iteration: z.number() }),
  MicroBatches: microBatches,
  Verdict: verdict,
  Action: action,
  Incident: incident,
  Incidents: z.object({
    incidents: z.array(incident),
    next: z.string().nullable().describe("`before` of the next page; null at the end"),
  }),
  Revisions: z.object({ revisions: z.array(incident) }),
  Picture: picture,
  Offenders: z.object({ offenders: z.array(offender) }),
  Audit: z.object({
    audit: z.array(auditRow),
    next: z.string().nullable().describe("`before` of the next page; null for the last"),
  }),
  LinkBody: linkBody,
  Link: z.object({
    path: z.string().describe("behind the service's address: /#/link/…"),
    expiresMs: ms,
  }),
  LinksRevoked: z.object({ incident: z.string() }),
  Session: session,
  SignedOut: z.object({ signedOut: z.boolean() }),
  Agents: z.object({ agents: z.array(agentView) }),
  AlertWebhook: alertWebhook,
  DigestWebhook: digestWebhook,
  ActionWebhook: actionWebhook,
  Handling: handling,
  CommentedHandling: commentedHandling,
  Handlings: z.object({ handlings: z.array(handling) }),
  HandlingBody: handlingBody,
  Digest: digest,
  Mute: mute,
  MadeMute: madeMute,
  Mutes: z.object({ mutes: z.array(mute) }),
  MuteBody: muteBody,
  Site: site,
  SiteForgetBody: forgetBody,
  SiteLogs: siteLogs,
  SiteLabels: siteLabels,
  SiteRecordBody: recordBody,
  SiteRecord: addedRecord,
  SiteStore: siteStore,
  ActionBody: actionBody,
  ActionsSwitch: switchState,
  Snapshot: z.object({
    type: z.literal("snapshot"),
    jobs: z.array(jobView),
    incidents: z.array(incident).describe("those not resolved"),
    isDemo: z.boolean().describe("whether /api/v1/demo is there"),
    actions: switchState,
    handlings: z.array(handling).describe("of those incidents"),
    mutes: z.array(mute),
  }),
  LiveEvent: z.union([otherEvent, iterationsEvent]),
  DemoFault: demoFault,
  DemoState: demoState,
  Health: z.object({
    status: z.literal("ok"),
    degraded: z
      .string()
      .exactOptional()
      .describe("what the service does without, such as a full disk"),
    store: z.enum(["ok", "full", "away"]).describe("the history"),
    broker: z
      .enum(["ok", "away", "none"])
      .describe("NATS; none where agents connect to the service itself"),
    version: z.string(),
    nowMs: ms,
  }),
  Error: z.object({ error: z.string().describe("one sentence") }),
} as const;

export type SchemaName = keyof typeof SCHEMAS;
