/**
 * Where a report shows which finding, and in which order: what decided this verdict comes first and is open, what other
 * methods saw comes after it and is folded.
 */
import type { MethodId } from "../../model/method.ts";
import type { Verdict } from "../../model/verdict.ts";
import { leadingIds } from "../reasoning-words.ts";
import type { Markup } from "./escape.ts";

type Finding = Verdict["findings"][number];

export interface EvidenceSection {
  readonly id: string;
  readonly name: string;
  /** Methods whose findings it shows: "hang/wait-graph", or all of one question: "iterations/". */
  readonly shows: readonly (MethodId | `${string}/`)[];
  /** What is folded away where nothing of it decided: "Plots and tables". */
  readonly folds: string;
  readonly body: Markup;
}

export interface PlacedSection extends EvidenceSection {
  readonly isOpen: boolean;
  /** Each finding stands in one section only: the first of those given that shows it. */
  readonly findings: readonly Finding[];
}

interface PlacedEvidence {
  /** In the order in which they matter. */
  readonly sections: readonly PlacedSection[];
  /** Of the story's own sections: what stands there. */
  readonly story: ReadonlyMap<string, readonly Finding[]>;
  /** Finding → the section where it stands. */
  readonly placeOf: ReadonlyMap<string, EvidenceSection>;
}

/**
 * `story`: sections that have their place in the story, whatever decided. `other`: where findings stand that no section
 * shows; it is left out where there are none.
 */
export function placeEvidence(
  verdict: Pick<Verdict, "findings" | "reasoning" | "suspects">,
  findings: readonly Finding[],
  story: readonly EvidenceSection[],
  sections: readonly EvidenceSection[],
  other: EvidenceSection,
): PlacedEvidence {
  const all = [...story, ...sections];
  const placeOf = new Map<string, EvidenceSection>();
  const inside = new Map<string, Finding[]>();
  for (const finding of findings) {
    const section = all.find((one) => isShownIn(finding, one)) ?? other;
    placeOf.set(finding.id, section);
    inside.set(section.id, [...(inside.get(section.id) ?? []), finding]);
  }
  const leading = leadingIds(verdict);
  const accusing = verdict.reasoning?.conflicts.flatMap((conflict) => conflict.findings) ?? [];
  const ranked = [...sections, ...(inside.has(other.id) ? [other] : [])].map((section) => {
    const seen =
      section === other
        ? (inside.get(other.id) ?? [])
        : findings.filter((finding) => isShownIn(finding, section));
    return {
      section,
      led: firstOf(seen, leading),
      accuses: firstOf(seen, accusing),
      weight: seen.reduce((most, { weight }) => Math.max(most, weight), 0),
    };
  });
  ranked.sort((a, b) => a.led - b.led || a.accuses - b.accuses || b.weight - a.weight);
  // Nothing decided where a job is healthy: then what weighs most is shown.
  const decides = leading.some((id) => placeOf.has(id));
  return {
    sections: ranked.map(({ section, led }, i) => ({
      ...section,
      isOpen: decides ? led < NEVER : i === 0,
      findings: inside.get(section.id) ?? [],
    })),
    story: new Map(story.map(({ id }) => [id, inside.get(id) ?? []])),
    placeOf,
  };
}

/** Finite, so that two of them differ by nothing. */
const NEVER = Number.MAX_SAFE_INTEGER;

function firstOf(findings: readonly Finding[], ids: readonly string[]): number {
  const mine = new Set(findings.map(({ id }) => id));
  const at = ids.findIndex((id) => mine.has(id));
  return at === -1 ? NEVER : at;
}

function isShownIn({ method }: Finding, { shows }: EvidenceSection): boolean {
  return shows.some((one) => (one.endsWith("/") ? method.startsWith(one) : method === one));
}
