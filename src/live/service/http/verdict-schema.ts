/** The document of `diagnose --json`, as a schema. */
import { z } from "zod";
import type { Answer } from "../../../model/answer.ts";
import type { Fact } from "../../../model/facts.ts";
import type { MethodId } from "../../../model/method.ts";
import { CAUSES } from "../../../model/cause.ts";
import type { Place } from "../../../model/ids.ts";
import type { Mitigation, MitigationStep } from "../../../model/mitigation.ts";
import type { Suspect, Verdict } from "../../../model/verdict.ts";

const texts = z.array(z.string());
const ranks = z.array(z.number());
const kind = z.enum([
  "hang",
  "crash",
  "fail-slow",
  "regression",
  "faulty-machine",
  "healthy",
  "undetermined",
]);

const suspect: z.ZodType<Suspect> = z.object({
  type: z.enum([
    "rank",
    "gpu",
    "machine",
    "nic",
    "link",
    "switch",
    "stage",
    "code",
    "data",
    "config",
    "storage",
  ]),
  ranks,
  machine: z.string().nullable(),
  machines: texts.exactOptional().describe("of a network device between several machines"),
  link: z.tuple([z.string(), z.string()]).nullable(),
  name: z.string().nullable(),
  cause: z.enum(CAUSES),
  score: z.number().describe("scores of all suspects add up to at most 1"),
  why: z.string(),
  evidence: texts.describe("ids of findings"),
});

const place: z.ZodType<Place> = z.object({
  file: z.string(),
  line: z.number().exactOptional(),
});

const step: z.ZodType<MitigationStep> = z.object({
  strategy: z.enum(["S1", "S2", "S3", "S4"]),
  do: z.string(),
  iterationMs: z.number().nullable(),
  overheadMs: z.number(),
  afterIterations: z.number().nullable(),
  why: z.string(),
  microBatches: z.array(z.number()).exactOptional(),
  gradientWeights: z.array(z.number()).exactOptional(),
  swaps: z.array(z.tuple([z.string(), z.string()])).exactOptional(),
  exclude: texts.exactOptional(),
  placement: z.object({ gpuOf: ranks, hosts: texts }).exactOptional(),
});

const mitigation: z.ZodType<Mitigation> = z.object({
  nowMs: z.number(),
  healthyMs: z.number(),
  beside: z.object({ ranks: z.array(z.number()), healthyMs: z.number() }).exactOptional(),
  bound: z.number(),
  steps: z.array(step),
  assumes: texts,
});

const answer: z.ZodType<Answer> = z.object({
  who: z.string().describe("the suspect with its place; empty where there is none"),
  what: z.string().describe("what is wrong with it, and what shows it"),
  isSeen: z.boolean().describe("whether metrics, a stack or an error line shows it"),
  effect: z.string(),
  slower: z.string().nullable(),
  waiting: z.string().nullable(),
  where: texts,
  device: z.string().nullable(),
});

export const verdict: z.ZodType<Verdict> = z.object({
  schema: z.literal("faultline.verdict/1"),
  job: z.string().exactOptional(),
  kind,
  summary: z.string(),
  answer: answer.exactOptional(),
  confidence: z.number().describe("0 to 1"),
  when: z.object({
    iteration: z.number().nullable(),
    from: z.string().nullable(),
    to: z.string().nullable(),
  }),
  suspects: z.array(suspect),
  victims: ranks.describe("ranks that show symptoms but are not to blame"),
  owner: z.enum(["operations", "infrastructure", "algorithm", "user"]).nullable(),
  actions: z.array(
    z.object({
      do: z.string(),
      target: z.string(),
      why: z.string(),
      title: z.string().describe("what people read in place of `do`").exactOptional(),
      command: z.string().describe("to paste into a shell").exactOptional(),
    }),
  ),
  mitigation: mitigation.nullable().exactOptional(),
  findings: z.array(
    z.object({
      id: z.string(),
      method: z.string() as z.ZodType<MethodId>,
      says: z.string(),
      weight: z.number(),
      at: z.array(place),
      data: z.looseObject({ fact: z.string() }) as unknown as z.ZodType<Fact>,
      lacks: texts.exactOptional(),
    }),
  ),
  inputs: z.array(
    z.object({
      path: z.string(),
      format: z.string(),
      rank: z.number().nullable(),
      records: z.number(),
    }),
  ),
  missing: texts,
  wouldHelp: texts,
});
