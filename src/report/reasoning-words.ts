/** What terminal, Markdown and HTML say of how a verdict came about: the same words, worked out once. */
import { count } from "../base/text.ts";
import type { IncidentValidation } from "../model/incident.ts";
import type { Verdict } from "../model/verdict.ts";

type Findings = Pick<Verdict, "findings" | "reasoning" | "suspects">;
type Finding = Verdict["findings"][number];

/** What a person takes in; a verdict that was read from a file may hold any number. */
export const MOST_DECIDING = 3;
export const MOST_CONFLICTS = 6;
export const MOST_CHANGES = 6;

export interface Decided {
  readonly finding: Finding;
  readonly times: number;
}

/** The findings that decided and are there, the strongest first; none where the verdict does not say. */
export function decidingFindings({
  findings,
  reasoning,
}: Pick<Verdict, "findings" | "reasoning">): readonly Decided[] {
  const byId = new Map(findings.map((finding) => [finding.id, finding]));
  return (reasoning?.decidedBy ?? [])
    .flatMap(({ finding: id, times }) => {
      const finding = byId.get(id);
      return finding ? [{ finding, times }] : [];
    })
    .slice(0, MOST_DECIDING);
}

/** Which findings come first wherever they are listed: those that decided, else what the first suspect rests on. */
export function leadingIds(verdict: Findings): readonly string[] {
  const decided = decidingFindings(verdict).map(({ finding }) => finding.id);
  return decided.length > 0 ? decided : (verdict.suspects[0]?.evidence ?? []);
}

/** Those that decided in their order, then the others by weight. */
export function inOrderOfWeight(verdict: Findings): readonly Finding[] {
  const place = new Map(decidingFindings(verdict).map(({ finding }, i) => [finding.id, i]));
  const placeOf = ({ id }: Finding): number => place.get(id) ?? MOST_DECIDING;
  return verdict.findings.toSorted((a, b) => placeOf(a) - placeOf(b) || b.weight - a.weight);
}

/** A sentence that another one follows. */
export function sentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

/** "8 ranks after iteration 47 held the job for 0.3 s: transfers between …" */
export function validationWords({
  ranks,
  atIteration,
  tookMs,
  outcome,
}: IncidentValidation): string {
  const held = tookMs === null ? "" : ` held the job for ${(tookMs / 1000).toFixed(2)} s`;
  return `${count(ranks.length, "rank")} after iteration ${atIteration}${held}: ${outcome}`;
}
