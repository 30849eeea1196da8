/** What people do about incidents: acknowledge, assign, comment, judge, merge, reopen, mute. */
import { z } from "zod";
import { CAUSES } from "../../../model/cause.ts";
import type { Digest } from "../../../model/digest.ts";
import type { CommentedHandling, Handling, Mute } from "../../../model/handling.ts";
import { Refusal } from "../view.ts";
import type { Asked } from "../workflow/deeds.ts";
import { readQuery, whole } from "./queries.ts";
import { type Ask, found, get, post, type Route } from "./route.ts";

const ms = z.number().describe("milliseconds since 1970");
const deed = { who: z.string(), atMs: ms };
const cause = z.enum(CAUSES);
export const kind = z.enum([
  "hang",
  "crash",
  "fail-slow",
  "regression",
  "faulty-machine",
  "undetermined",
]);

const handled = z.object({
  incident: z.string(),
  acknowledged: z
    .object({ ...deed, relapses: z.number() })
    .nullable()
    .describe("holds until the incident has more relapses than these"),
  assignee: z.string().nullable(),
  mergedInto: z
    .string()
    .nullable()
    .describe('the incident that it is the same as; "hidden" where you do not see its job'),
  reopened: z
    .object({ ...deed, why: z.string() })
    .nullable()
    .describe("resolved, and somebody says that it is not over"),
  commentCount: z.number(),
  judgement: z
    .object({
      ...deed,
      isRight: z.boolean(),
      machine: z.string().nullable(),
      cause: cause.nullable(),
      jobs: z.array(z.string()).nullable().describe("it counts for these jobs; null for all"),
      said: z.object({
        job: z.string(),
        openedMs: ms,
        kind,
        cause: cause.nullable(),
        confidence: z.number(),
        stated: z.number().describe("the confidence before the site's judgements corrected it"),
        machines: z.array(z.string()),
        records: z.array(z.string()),
      }),
    })
    .nullable(),
});
export const handling: z.ZodType<Handling> = handled;
export const commentedHandling: z.ZodType<CommentedHandling> = handled.extend({
  comments: z.array(z.object({ ...deed, text: z.string() })).describe("the last 500"),
});

const muted = z.object({
  id: z.string(),
  kind: z.enum(["mute", "maintenance"]),
  job: z.string().nullable(),
  machine: z.string().nullable(),
  cause: z.string().nullable(),
  fromMs: ms,
  untilMs: ms,
  who: z.string(),
  why: z.string(),
});
export const mute: z.ZodType<Mute> = muted;
export const madeMute = muted.extend({
  says: z.string().exactOptional().describe("where no job that is known is meant"),
});

const MOST_NAME = 200;
const MOST_TEXT = 4000;
/** One line: nothing that would break a log or turn the reading direction. */
export const line = (most: number) =>
  z
    .string()
    .trim()
    .min(1)
    .max(most)
    .regex(/^[^\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]*$/u);
/** Markdown: lines and tabs are kept. */
const markdown = z
  .string()
  .trim()
  .min(1)
  .max(MOST_TEXT)
  .transform((text) =>
    text
      .replace(/\r\n?/g, "\n")
      .replace(/[^\P{Cc}\n\t]|[\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu, "\ufffd"),
  );

export const handlingBody: z.ZodType<Asked> = z.discriminatedUnion("do", [
  z.strictObject({ do: z.literal("acknowledge") }),
  z.strictObject({ do: z.literal("unacknowledge") }),
  z.strictObject({ do: z.literal("assign"), to: line(MOST_NAME).nullable() }),
  z.strictObject({ do: z.literal("comment"), text: markdown }),
  z.strictObject({
    do: z.literal("judge"),
    isRight: z.boolean(),
    machine: line(MOST_NAME).nullable().default(null).describe("which it really was"),
    cause: cause.nullable().default(null).describe("what it really was"),
  }),
  z.strictObject({ do: z.literal("merge"), into: line(MOST_NAME) }),
  z.strictObject({ do: z.literal("unmerge") }),
  z.strictObject({ do: z.literal("reopen"), why: line(MOST_TEXT) }),
  z.strictObject({ do: z.literal("close") }),
]);

export const muteBody = z.strictObject({
  kind: z.enum(["mute", "maintenance"]).default("mute"),
  job: line(MOST_NAME).nullable().default(null).describe("* is any text, ? any character"),
  machine: line(MOST_NAME).nullable().default(null),
  cause: line(MOST_NAME).nullable().default(null),
  fromMs: ms.exactOptional().describe("now where it is absent"),
  untilMs: ms,
  why: line(MOST_TEXT),
});

const share = z.object({ name: z.string(), incidents: z.number(), wastedGpuMs: z.number() });
export const digest: z.ZodType<Digest> = z.object({
  fromMs: ms,
  toMs: ms,
  incidents: z.number().describe("open in the time; those merged into another one count with it"),
  wastedGpuMs: z
    .number()
    .describe("GPU-milliseconds lost in the time; a longer incident's are shared evenly over it"),
  byCause: z.array(share),
  byMachine: z.array(share),
  repeated: z.array(share).describe("machines with more than one incident"),
  judged: z.object({ right: z.number(), wrong: z.number() }),
  isCut: z.boolean().describe("whether there were more incidents than were looked at"),
});
const DAY_MS = 86_400_000;
const DIGEST_QUERY = { days: whole("over so many days; 7 by default", 3650) };
const WITH_BODY = [404, 408, 409, 413, 415, 503];

export const WORKFLOW_ROUTES: readonly Route[] = [
  get(
    "/incidents/:id/handling",
    "CommentedHandling",
    "Who looks after an incident, comments, and whether the verdict was right",
    {},
    async ({ view, param }) => found(await view.handling(param("id")), "incident"),
  ),
  post(
    "/incidents/:id/handling",
    "Handling",
    "Acknowledge, assign, comment, judge, merge or reopen an incident",
    { body: "HandlingBody", errors: WITH_BODY },
    async (ask) => {
      const asked = await bodyOf(ask, handlingBody);
      return await ask.view.handle(ask.param("id"), asked, ask.caller.name);
    },
  ),
  get(
    "/handling",
    "Handlings",
    "The same of all incidents that somebody touched of late",
    {},
    ({ view }) => ({ handlings: [...view.handlings().values()].slice(-1000) }),
  ),
  get(
    "/digest",
    "Digest",
    "What was lost to what and where, who broke again, how right verdicts were",
    DIGEST_QUERY,
    ({ view, request, nowMs }) => {
      const { days } = readQuery(request.url ?? "", DIGEST_QUERY);
      return view.digest(nowMs - (days ?? 7) * DAY_MS);
    },
  ),
  get(
    "/mutes",
    "Mutes",
    "What nobody is alerted of: mutes and maintenance windows that are not over",
    {},
    ({ view }) => ({ mutes: view.mutes() }),
  ),
  post(
    "/mutes",
    "MadeMute",
    "Mute alerts by job, machine or cause for a while, or for planned maintenance",
    { body: "MuteBody", errors: WITH_BODY },
    async (ask) => {
      const { fromMs = ask.nowMs, ...rest } = await bodyOf(ask, muteBody);
      return await ask.view.mute({ ...rest, fromMs }, ask.caller.name);
    },
  ),
  post(
    "/mutes/:id/end",
    "Mutes",
    "End a mute",
    { errors: [404] },
    async ({ view, param, caller }) => ({ mutes: await view.unmute(param("id"), caller.name) }),
  ),
];

export async function bodyOf<T>({ body }: Ask, schema: z.ZodType<T>): Promise<T> {
  const parsed = schema.safeParse(await body());
  if (parsed.success) return parsed.data;
  const [first] = parsed.error.issues;
  const where = first?.path.join(".") ?? "";
  throw new Refusal(400, `the body${where === "" ? "" : `'s ${where}`}: ${first?.message ?? ""}`);
}
