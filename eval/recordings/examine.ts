/** One recording, diagnosed and held against its truth; a row of the table. */
import { diagnose } from "../../src/pipeline.ts";
import type { Truth } from "./truth.ts";

export const TABLE_HEAD = [
  "| recording | truth | verdict | suspect | cause | confidence | right |",
  "|---|---|---|---|---|---|---|",
];

const ENV = { signal: new AbortController().signal, progress: () => undefined };

export interface Examined {
  readonly isRight: boolean;
  readonly row: string;
}

/** Right: the kind, exactly the ranks, and no cause but the true ones. */
export async function examine(
  name: string,
  folder: string,
  truth: Truth,
  baseline: readonly string[] = [],
): Promise<Examined> {
  const { verdict } = await diagnose({ paths: [folder], baseline }, ENV);
  const blamed = [...new Set(verdict.suspects.flatMap(({ ranks }) => ranks))].sort((a, b) => a - b);
  const causes = [...new Set(verdict.suspects.map(({ cause }) => cause))];
  // Code, storage and links may be blamed without a rank: that is an accusation, too.
  const isNobodyElse = truth.causes.length > 0 || verdict.suspects.length === 0;
  const isRight =
    truth.kinds.includes(verdict.kind) &&
    isNobodyElse &&
    blamed.join() === truth.ranks.join() &&
    causes.every((cause) => truth.causes.includes(cause));
  const cells = [
    name,
    `${truth.kind}${rankWords(truth.ranks)}${truth.causes.length > 0 ? `, ${truth.causes.join(" or ")}` : ""}`,
    verdict.kind,
    verdict.suspects.length === 0 ? "nobody" : `${verdict.suspects[0]!.type}${rankWords(blamed)}`,
    causes.join(", "),
    verdict.confidence.toFixed(2),
    isRight ? "yes" : "**no**",
  ];
  return { isRight, row: `| ${cells.join(" | ")} |` };
}

function rankWords(ranks: readonly number[]): string {
  return ranks.length === 0 ? "" : ` ${ranks.join(", ")}`;
}
