/** One recording, diagnosed and held against its truth. */
import type { RankDump } from "../../src/model/job.ts";
import type { Verdict } from "../../src/model/verdict.ts";
import { judgedConfidence } from "../../src/verdict/case.ts";
import { diagnose } from "../../src/pipeline/diagnose.ts";
import { type Judged, type PartJudged, judge, judgePart } from "./judge.ts";
import { tenLines } from "./ten-lines.ts";
import { type Truth, truthWords } from "./truth.ts";

export const TABLE_HEAD = [
  "| recording | truth | verdict | suspect | cause | confidence | right |",
  "|---|---|---|---|---|---|---|",
];

const ENV = { signal: new AbortController().signal, progress: () => undefined };

export interface Examined {
  readonly name: string;
  readonly truth: Truth;
  readonly verdict: Verdict;
  readonly judged: Judged;
  /** Null where the ten lines are not asked, or do not answer: whether they name exactly the guilty ranks. */
  readonly tenLines: boolean | null;
}

export interface ExaminedPart {
  readonly name: string;
  readonly part: Part;
  readonly truth: Truth;
  readonly verdict: Verdict;
  readonly judged: PartJudged;
}

export type Part = "dumps" | "logs";

const FORMATS = {
  dumps: ["flight-recorder"],
  logs: ["rank-log", "nccl-log"],
} as const satisfies Record<Part, readonly string[]>;

export async function examine(
  name: string,
  folder: string,
  truth: Truth,
  baseline: readonly string[] = [],
): Promise<Examined> {
  const { job, verdict } = await diagnose({ paths: [folder], baseline }, ENV);
  const judged = judge(verdict, truth);
  return { name, truth, verdict, judged, tenLines: askTenLines(job.dumps.values(), truth) };
}

/** They know slow ranks and healthy jobs, nothing else. */
function askTenLines(dumps: Iterable<RankDump>, { kind, ranks }: Truth): boolean | null {
  if (kind !== "healthy" && (kind !== "fail-slow" || ranks.length === 0)) return null;
  const named = tenLines(dumps);
  return named && named.join() === ranks.join();
}

/** Once more with the dumps alone and with the logs alone, where the recording has both. */
export async function examineParts({ name, truth, verdict }: Examined): Promise<ExaminedPart[]> {
  const filesOf = (part: Part): string[] => {
    const formats: readonly string[] = FORMATS[part];
    return verdict.inputs.filter(({ format }) => formats.includes(format)).map(({ path }) => path);
  };
  const parts: ExaminedPart[] = [];
  for (const part of ["dumps", "logs"] as const) {
    const paths = filesOf(part);
    if (paths.length === 0 || paths.length === verdict.inputs.length) continue;
    const { verdict: partial } = await diagnose({ paths }, ENV);
    const judged = judgePart(partial, truth, part);
    parts.push({ name: `${name}, ${part} only`, part, truth, verdict: partial, judged });
  }
  return parts;
}

export function rowOf({ name, truth, verdict, judged }: Examined | ExaminedPart): string {
  const word =
    typeof judged === "string"
      ? judged
      : judged.right
        ? "yes"
        : judged.open
          ? "open"
          : judged.suspects
            ? "cause"
            : "no";
  const cells = [
    name,
    truthWords(truth),
    ...verdictCells(verdict),
    verdict.confidence.toFixed(2),
    WRONG[word] ?? word,
  ];
  return `| ${cells.join(" | ")} |`;
}

const WRONG: Readonly<Record<string, string>> = {
  no: "**no**",
  cause: "**not the cause**",
  wrong: "**no**",
};

/** Kind, suspects, causes. */
export function verdictCells({ kind, suspects }: Verdict): [string, string, string] {
  const blamed = [...new Set(suspects.flatMap(({ ranks }) => ranks))].sort((a, b) => a - b);
  const who =
    suspects.length === 0
      ? "nobody"
      : `${suspects[0]!.type}${blamed.length > 0 ? ` ${blamed.join(", ")}` : ""}`;
  return [kind, who, [...new Set(suspects.map(({ cause }) => cause))].join(", ")];
}

/** Whose word weighed most; "nobody" where nobody is accused and the judge of slowness does not say that it is nobody. */
export function decidedBy({ kind, suspects: [first], findings }: Verdict): string {
  const decided = first
    ? findings.find(({ id }) => id === first.evidence[0])
    : findings.find((finding) => kind === "healthy" && judgedConfidence(finding) !== null);
  return decided?.method ?? "nobody";
}
