/** How much an event may say about a failure before anybody looks who wrote it, 0 to 1. */
import type { FaultMatch } from "../../library/matcher.ts";
import type { CausalRole, Layer } from "../../model/fault-record.ts";
import type { LogDigest, LogShape } from "../../model/log-digest.ts";
import { saysContinues, saysOver } from "./recovery-words.ts";
import type { LogTemplates } from "./spatial-matrix.ts";

/** What the library knows counts for more than words and levels. */
const BY_ROLE: Readonly<Record<CausalRole, number>> = {
  root: 1,
  confirmation: 0.45,
  cascade: 0.25,
  advice: 0.05,
  benign: 0.02,
};
/** A kernel speaks of its own node, even where it tells what something else led to. */
const OWN_NODE: ReadonlySet<Layer> = new Set<Layer>(["kernel", "driver", "fabric"]);
const OWN_CASCADE = 0.5;
const PART = 0.03;
/** Who says that the program goes on tells of no failure. */
const GOES_ON = 0.05;
const QUIET = 0.1;

/** By template, from the first line of every shape. `match` is the library's; without it levels and words have to do. */
export function eventWeights(
  { shapes }: LogDigest,
  templates: LogTemplates,
  match: ((text: string) => readonly FaultMatch[]) | null,
): Float64Array {
  const weights = new Float64Array(templates.texts.length);
  shapes.forEach((shape, s) => {
    const template = templates.of[s]!;
    const weight = weightOf(shape, match);
    if (weight > weights[template]!) weights[template] = weight;
  });
  return weights;
}

function weightOf(
  shape: LogShape,
  match: ((text: string) => readonly FaultMatch[]) | null,
): number {
  const record = match?.(shape.text)[0]?.record;
  if (record?.role === "cascade" && OWN_NODE.has(record.layer)) return OWN_CASCADE;
  if (record) return BY_ROLE[record.role];
  if (shape.isPart) return PART;
  if (saysContinues(shape.text) || saysOver(shape.text)) return GOES_ON;
  switch (shape.level) {
    case "fatal":
    case "error":
      return 0.6;
    case "warning":
      return shape.isTelling ? 0.35 : 0.2;
    case "info":
    case "debug":
      return shape.isTelling ? 0.2 : QUIET;
    case null:
      return shape.isTelling ? 0.4 : QUIET;
  }
}
