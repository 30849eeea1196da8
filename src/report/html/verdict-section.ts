/** The report's first screen, of the parts that the page draws, too: the answer, who is suspected, why; and what to do. */
import { count, cutText } from "../../base/text.ts";
import type { Job } from "../../model/job.ts";
import type { Verdict } from "../../model/verdict.ts";
import { Actions, unplannedActions } from "../parts/actions.tsx";
import { markupOf } from "../parts/markup-of.ts";
import { Reasoning, type ReasoningProps } from "../parts/reasoning.tsx";
import { Suspects } from "../parts/suspects.tsx";
import { FirstStep, VerdictHead } from "../parts/verdict-head.tsx";
import { html, type Markup } from "./escape.ts";

const MOST_STEP = 120;

/** `step`: the section that says what to do, where there is one. It comes late; whoever is in a hurry goes there at once. */
export function renderHead(
  { name, worldSize }: Job,
  verdict: Verdict,
  step: string | null,
): Markup {
  const size = worldSize > 0 ? count(worldSize, "rank") : "";
  const about = [name, size].filter((part) => part !== "").join(" · ");
  const [first] =
    step === "actions" ? unplannedActions(verdict) : (verdict.mitigation?.steps ?? []);
  if (step === null || !first) return markupOf(VerdictHead, { verdict, about });
  const target = "target" in first ? ` ${first.target}` : "";
  const says = cutText(`${first.do}${target}`, MOST_STEP);
  const facts = FirstStep({ section: step, says });
  return markupOf(VerdictHead, { verdict, about, facts });
}

export function renderSuspects(job: Job, verdict: Verdict): Markup {
  return markupOf(Suspects, { verdict, placeOf: (rank) => job.ranks.get(rank) });
}

/** Nothing for a verdict that does not say how it came about. */
export function renderReasoning(
  verdict: Verdict,
  shownIn: NonNullable<ReasoningProps["shownIn"]>,
): Markup {
  return markupOf(Reasoning, { verdict, shownIn });
}

/** Nothing where the plan says it all. */
export function renderActions(job: Job, verdict: Verdict): Markup {
  const actions = unplannedActions(verdict);
  if (actions.length === 0) return html``;
  const ranks = new Set(verdict.suspects.flatMap((suspect) => suspect.ranks));
  const pid = ranks.size === 1 ? (job.ranks.get([...ranks][0]!)?.pid ?? null) : null;
  const { mitigation } = verdict;
  return markupOf(Actions, { actions, mitigation: mitigation ?? null, pid });
}
