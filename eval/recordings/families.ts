/**
 * A family is a way to write a training job: the framework and how it splits the work. Jobs of one family are right or wrong
 * together, so that whole families teach (weights, thresholds and confidence may be chosen by them) or only test.
 */

/** truth.json's `job`. */
export interface RecordedJob {
  readonly family?: string;
  readonly framework?: string;
  readonly layout?: string;
  readonly tp?: number;
  readonly dp?: number;
  readonly pp?: number;
}

const HAND_WRITTEN = "hand-written tp/dp/pp";

/** A family that is not here only tests. */
const TEACHING: ReadonlySet<string> = new Set([
  HAND_WRITTEN,
  "FSDP2",
  "DDP",
  "pipelining 1F1B",
  "Transformers",
  "HSDP",
  "Lightning",
  "accum",
  "cp",
  "ep",
  "fsdptp",
  "hf",
  "hff",
  "int1f1b",
  "join",
  "mege",
  "pld",
  "plf",
  "zbv",
  "zero1",
]);

export function teaches(family: string): boolean {
  return TEACHING.has(family);
}

/** PyTorch's own parallelism by its layout, a framework on top of it by its name. */
const LAYOUTS: readonly (readonly [RegExp, string])[] = [
  [/pipelining.*interleaved/i, "pipelining interleaved"],
  [/pipelining/i, "pipelining 1F1B"],
  [/FSDP.*(tensor parallel|\bTP\b)/i, "FSDP2 x TP"],
  [/hybrid|HSDP/i, "HSDP"],
  [/FSDP/i, "FSDP2"],
  [/DistributedDataParallel|\bDDP\b/i, "DDP"],
];

export function familyOf({ family, framework, layout = "" }: RecordedJob): string {
  if (family !== undefined) return family;
  if (framework === undefined) return HAND_WRITTEN;
  if (framework === "PyTorch")
    return LAYOUTS.find(([pattern]) => pattern.test(layout))?.[1] ?? `PyTorch ${layout}`.trim();
  const [name = framework] = framework.split(",");
  return `${name.replace(/ Trainer$/, "")}${/\bMoE\b/.test(framework) ? " MoE" : ""}`;
}
