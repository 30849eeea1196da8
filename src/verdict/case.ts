/** What a verdict is about, handed to all that weigh or word it; and what its findings say first. */
import { factOf, slowTimesOf } from "../model/facts.ts";
import type { Finding, VerdictKind } from "../model/finding.ts";
import type { Job } from "../model/job.ts";
import type { Suspect } from "../model/verdict.ts";

export interface Case {
  readonly job: Job;
  readonly kind: VerdictKind;
  readonly findings: readonly Finding[];
}

/** Of what stopped the job. */
export function isStop({ kind }: { readonly kind: VerdictKind }): boolean {
  return kind === "hang" || kind === "crash";
}

/** Of what makes it slow: slower than before, or than a healthy run. */
export function isSlow({ kind }: { readonly kind: VerdictKind }): boolean {
  return kind === "fail-slow" || kind === "regression";
}

/** The findings that accuse somebody, in the order of all. */
export function evidenceOf(
  { findings }: Pick<Case, "findings">,
  suspect: Pick<Suspect, "evidence"> | undefined,
): readonly Finding[] {
  return findings.filter(({ id }) => suspect?.evidence.includes(id));
}

/** Of the first finding that has it. */
export function firstOf<T>(
  findings: readonly Finding[],
  pick: (finding: Finding) => T | null | undefined,
): T | null {
  for (const finding of findings) {
    const found = pick(finding);
    if (found !== null && found !== undefined) return found;
  }
  return null;
}

/** Nothing is surer than this. */
export const SUREST = 0.99;

/** How sure the judge of slowness (methods/slow) is of whom a finding names, or that nobody is slow; null: it is not the judge's. */
export function judgedConfidence(finding: Pick<Finding, "data">): number | null {
  const slow = factOf(finding, "slow-rank", "slow-device")?.judged;
  const said = slow ?? factOf(finding, "even-ranks");
  return said ? Math.min(SUREST, said.probability) : null;
}

/** Below this the tracker is not sure enough of a change to base a verdict on it. */
const LEAST_OF_SLOWDOWN = 0.6;

/** The slow-down that the verdict is about: the first that the tracker hands over wastes most. */
export function slowDownOf(findings: readonly Finding[]): Finding | null {
  return (
    findings.find((finding) => finding.weight >= LEAST_OF_SLOWDOWN && slowTimesOf(finding)) ?? null
  );
}
