/** What methods found, in the order in which a reader needs it: what decided first, victims' echoes last, alike as one. */
import { groupBy } from "../base/group-by.ts";
import type { Verdict } from "../model/verdict.ts";
import { inOrderOfWeight } from "./reasoning-words.ts";

type Finding = Verdict["findings"][number];

export interface EvidenceGroup {
  /** Stands for the others. */
  readonly first: Finding;
  readonly alike: readonly Finding[];
}

/** What ranks that only wait say of it: a symptom, whoever is at fault. */
const ECHOES: ReadonlySet<string> = new Set(["watchdog-timeouts", "echoed-errors"]);

export function evidenceGroups(
  verdict: Pick<Verdict, "findings" | "reasoning" | "suspects">,
  findings: readonly Finding[] = inOrderOfWeight(verdict),
): readonly EvidenceGroup[] {
  return [...groupBy(findings, kindOf).values()]
    .map(([first, ...alike]) => ({ first: first!, alike }))
    .sort((a, b) => Number(isEcho(a.first)) - Number(isEcho(b.first)));
}

function isEcho({ data }: Finding): boolean {
  return ECHOES.has(data.fact);
}

/** The same method says the same of another rank or machine: only its numbers differ. */
function kindOf({ method, data, says }: Finding): string {
  return `${method}\n${data.fact}\n${says.replace(/\d[\d.,]*/g, "#")}`;
}
