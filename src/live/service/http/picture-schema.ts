/** What an incident is drawn from, as a schema. */
import { z } from "zod";
import type { MachinePicture } from "../../../model/machine-picture.ts";
import type { IncidentPicture, LogExcerpt, StackExcerpt, Story } from "../../../model/picture.ts";
import type { TimelinePicture } from "../../../model/trace-picture.ts";

const rank = z.number();
const numbersOrNull = z.array(z.number().nullable());

const story: z.ZodType<Story> = z.object({
  hops: z.array(
    z.object({
      kind: z.enum(["collective", "transfer", "inside", "own", "wires"]),
      title: z.string(),
      says: z.string(),
      from: rank,
      to: rank,
      bars: z.array(
        z.object({
          rank,
          machine: z.string().nullable(),
          label: z.string().exactOptional().describe("of a wire its name"),
          ms: z.number().nullable().describe("null where it never came"),
          beforeMs: z.number().nullable(),
          role: z.enum(["late", "absent", "waits"]),
        }),
      ),
      leftOut: z.number(),
    }),
  ),
  ends: z.string(),
});

const machinePicture: z.ZodType<MachinePicture> = z.object({
  machine: z.string(),
  metric: z.string(),
  title: z.string(),
  unit: z.string(),
  device: z.string().nullable(),
  timeS: z.array(z.number()),
  value: numbersOrNull,
  low: numbersOrNull.describe("of its peers, the tenth of a hundred"),
  middle: numbersOrNull,
  high: numbersOrNull,
  fromS: z.number(),
  toS: z.number(),
});

const excerpt: z.ZodType<LogExcerpt> = z.object({
  file: z.string(),
  rank: rank.nullable(),
  node: z.string().nullable(),
  lines: z.array(
    z.object({
      line: z.number().nullable(),
      text: z.string(),
      isKey: z.boolean(),
      timeMs: z.number().nullable(),
      count: z.number(),
    }),
  ),
});

const stack: z.ZodType<StackExcerpt> = z.object({
  file: z.string(),
  rank,
  status: z.string(),
  frames: z.array(z.string()).describe("innermost first"),
  leftOut: z.number(),
});

/** Columns of shares by activity, which are many and for the page only: described by their frame. */
const timeline: z.ZodType<TimelinePicture> = z
  .record(z.string(), z.unknown())
  .describe("kernels around the worst step") as unknown as z.ZodType<TimelinePicture>;

export const picture: z.ZodType<IncidentPicture> = z.object({
  schema: z.literal("faultline.picture/1"),
  story: story.nullable(),
  metrics: z.array(machinePicture),
  logs: z.array(excerpt),
  stacks: z.array(stack).exactOptional(),
  timeline: timeline.nullable(),
  lacks: z.array(z.string()).describe("what could not be drawn and why"),
});
