/** The report's first screen, of the parts that the page draws, too: the answer, who is suspected, what to do. */
import { count } from "../../base/text.ts";
import type { Job } from "../../model/job.ts";
import type { Verdict } from "../../model/verdict.ts";
import { Actions, unplannedActions } from "../parts/actions.tsx";
import { markupOf } from "../parts/markup-of.ts";
import { Suspects } from "../parts/suspects.tsx";
import { VerdictHead } from "../parts/verdict-head.tsx";
import { html, type Markup } from "./escape.ts";

export function renderHead({ name, worldSize }: Job, verdict: Verdict): Markup {
  const size = worldSize > 0 ? count(worldSize, "rank") : "";
  const about = [name, size].filter((part) => part !== "").join(" · ");
  return markupOf(VerdictHead, { verdict, about });
}

export function renderSuspects(job: Job, verdict: Verdict): Markup {
  return html`<section id="suspects">
    <h2>${verdict.suspects.length === 1 ? "Suspect" : "Suspects"}</h2>
    ${markupOf(Suspects, { verdict, placeOf: (rank) => job.ranks.get(rank) })}
  </section>`;
}

/** Nothing where the plan below says it all. */
export function renderActions(job: Job, verdict: Verdict): Markup {
  const actions = unplannedActions(verdict);
  if (actions.length === 0) return html``;
  const ranks = new Set(verdict.suspects.flatMap((suspect) => suspect.ranks));
  const pid = ranks.size === 1 ? (job.ranks.get([...ranks][0]!)?.pid ?? null) : null;
  const { mitigation } = verdict;
  return html`<section id="actions">
    <h2>What to do</h2>
    ${markupOf(Actions, { actions, mitigation: mitigation ?? null, pid })}
  </section>`;
}
