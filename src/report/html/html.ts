/**
 * The report: one HTML file that asks nothing of the network, for a person on call. It is one story over all methods that
 * answered: the answer, why, who disagrees, what would change it, how it spread; then the evidence in the order in which
 * it matters for this verdict, down to file and line; then what to do, and what is missing.
 */
import { cutText } from "../../base/text.ts";
import type { Job } from "../../model/job.ts";
import type { IncidentPicture } from "../../model/picture.ts";
import type { Verdict } from "../../model/verdict.ts";
import { FindingCards, MoreFindings, shownFindings } from "../parts/evidence.tsx";
import { markupOf } from "../parts/markup-of.ts";
import { html, type Markup } from "./escape.ts";
import { type PlacedSection, placeEvidence } from "./evidence-order.ts";
import { evidenceSections, OTHER } from "./evidence-sections.ts";
import { renderInputs, renderMissing } from "./inputs.ts";
import type { MachineAnswer } from "./machines-section.ts";
import { renderMitigation } from "./mitigation-section.ts";
import { renderPage } from "./page.ts";
import { storySections } from "./picture-section.ts";
import type { TracePictures } from "./trace-section.ts";
import { renderActions, renderHead, renderReasoning, renderSuspects } from "./verdict-section.ts";

interface Section {
  readonly id: string;
  readonly name: string;
  readonly body: Markup;
}

/**
 * `traces`: where the job left profiler traces; `machines`: where there are monitoring metrics of them; `picture`: the
 * story, what-if and log lines, and whatever of the others is not given in full.
 */
export function renderHtml(
  job: Job,
  verdict: Verdict,
  traces: TracePictures | null = null,
  machines: MachineAnswer | null = null,
  picture: IncidentPicture | null = null,
): string {
  const shown = shownFindings(verdict);
  const told = storySections(picture);
  const evidence = evidenceSections(job, verdict, traces, machines, picture);
  const placed = placeEvidence(verdict, shown, told, evidence, OTHER);
  const shownIn = (id: string): Section | null => {
    const section = placed.placeOf.get(id);
    return section === undefined || section === OTHER ? null : section;
  };
  const unlisted = verdict.findings.length - shown.length;
  const plan = verdict.mitigation ?? null;
  const sections: readonly Section[] = [
    {
      id: "suspects",
      name: verdict.suspects.length === 1 ? "Suspect" : "Suspects",
      body: renderSuspects(job, verdict),
    },
    { id: "why", name: "Why", body: renderReasoning(verdict, shownIn) },
    ...told.map(({ id, name, body }) => ({
      id,
      name,
      body: html`${body} ${markupOf(FindingCards, { findings: placed.told.get(id) ?? [] })}`,
    })),
    ...placed.sections.map((section) => ({ ...section, body: renderEvidence(section) })),
    { id: "actions", name: "What to do", body: renderActions(job, verdict) },
    {
      id: "mitigation",
      name: "While it lasts",
      body: plan && plan.steps.length > 0 ? renderMitigation(plan) : html``,
    },
    {
      id: "missing",
      name: "What is missing",
      body: renderMissing(verdict, picture?.lacks ?? []),
    },
    {
      id: "inputs",
      name: "Inputs",
      body: html`${renderInputs(verdict)} ${markupOf(MoreFindings, { rest: unlisted })}`,
    },
  ].filter(({ body }) => body.text.trim() !== "");
  const ids = new Set(sections.map(({ id }) => id));
  const step = ["actions", "mitigation"].find((id) => ids.has(id)) ?? null;
  const body = html`${renderHead(job, verdict, step)}
    <nav aria-label="Sections">
      ${sections.map(({ id, name }) => html`<a href="#${id}">${name}</a> `)}
    </nav>
    <main>
      ${sections.map(
        (section) =>
          html`<section id="${section.id}">
            <h2>${section.name}</h2>
            ${section.body}
          </section> `,
      )}
    </main>
    <footer>Written by Faultline. The same as data: verdict.json (${verdict.schema}).</footer>`;
  return renderPage(`${verdict.kind}: ${cutText(verdict.summary, 120)}`, body);
}

/** What the methods say stays readable where what they saw is folded. */
function renderEvidence({ findings, isOpen, folds, body }: PlacedSection): Markup {
  const cards = markupOf(FindingCards, { findings });
  if (isOpen || folds === "") return html`${cards} ${body}`;
  return html`${cards}
    <details class="fold">
      <summary>${folds}</summary>
      ${body}
    </details>`;
}
