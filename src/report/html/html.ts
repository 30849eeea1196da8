/**
 * The report: one HTML file that asks nothing of the network, for a person on call. The answer and what to do first are
 * the first screen; the proof is folded below: the culprit's own stack, log lines and plots, then what each method saw.
 */
import { cutText, count } from "../../base/text.ts";
import type { Job } from "../../model/job.ts";
import type { IncidentPicture } from "../../model/picture.ts";
import type { Verdict } from "../../model/verdict.ts";
import { FindingCards, MoreFindings, shownFindings } from "../parts/evidence.tsx";
import { markupOf } from "../parts/markup-of.ts";
import { html, type Markup, type Part } from "./escape.ts";
import { placeEvidence, type PlacedSection } from "./evidence-order.ts";
import { evidenceSections, OTHER } from "./evidence-sections.ts";
import type { MachineAnswer } from "./machines-section.ts";
import { renderPage } from "./page.ts";
import { renderSection, sectionLinks, type Section } from "./parts-of-pages.ts";
import { storySections } from "./picture-section.ts";
import type { TracePictures } from "./trace-section.ts";
import type { Mitigation } from "../../model/mitigation.ts";
import { stepHead, stepHow, stepWhen } from "../mitigation-words.ts";
import { answerWords, stepsOf } from "../answer-words.ts";
import { Advice } from "../parts/advice.tsx";
import { Actions, FindOut, FirstStep } from "../parts/actions.tsx";
import { Stacks } from "../parts/stacks.tsx";
import { Reasoning, type ReasoningProps } from "../parts/reasoning.tsx";
import { Suspects } from "../parts/suspects.tsx";
import { VerdictHead } from "../parts/verdict-head.tsx";
import { Lacks } from "../parts/lacks.tsx";

const MAX_INPUTS = 1_000;
const MAX_LINES = 200;
const MAX_LINE_CHARS = 1_000;
const MAX_PATH_CHARS = 400;

/**
 * `traces`: where the job left profiler traces; `machines`: where there are monitoring metrics of them; `picture`: the
 * story and log lines, and whatever of the others is not given in full.
 */
export function renderHtml(
  job: Job,
  verdict: Verdict,
  traces: TracePictures | null = null,
  machines: MachineAnswer | null = null,
  picture: IncidentPicture | null = null,
): string {
  const shown = shownFindings(verdict);
  const story = storySections(picture);
  const evidence = evidenceSections(job, verdict, traces, machines, picture);
  const placed = placeEvidence(verdict, shown, story, evidence, OTHER);
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
    {
      id: "stacks",
      name: "Where the culprit stands",
      body: markupOf(Stacks, { stacks: picture?.stacks ?? [] }),
    },
    ...story.map(({ id, name, body }) => ({
      id,
      name,
      body: html`${body}
      ${markupOf(FindingCards, { findings: placed.story.get(id) ?? [], verdict })}`,
    })),
    ...placed.sections.map((section) => ({ ...section, body: renderEvidence(section, verdict) })),
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
  const steps = stepsOf(verdict);
  const todo: readonly Section[] = [
    {
      id: "actions",
      name: "Then",
      body: html`${markupOf(Actions, { actions: steps.next, mitigation: plan })}`,
    },
    {
      id: "mitigation",
      name: "Until it is fixed",
      body: plan && plan.steps.length > 0 ? renderMitigation(plan) : html``,
    },
  ].filter(({ body }) => body.text.trim() !== "");
  const { wouldHelp } = verdict;
  const isOpen = verdict.kind !== "healthy" && wouldHelp.length > 0;
  const body = html`${renderHead(job, verdict)}
    ${
      steps.first
        ? markupOf(FirstStep, { action: steps.first })
        : isOpen && markupOf(FindOut, { wouldHelp })
    }
    ${sectionLinks(sections)}
    <main>
      ${todo.map(renderSection)}
      <details class="fl-proof" id="proof">
        <summary>Show me the proof</summary>
        ${sections.map(renderSection)}
      </details>
    </main>
    <footer>Written by Faultline. The same as data: verdict.json (${verdict.schema}).</footer>`;
  const about = job.name === "" ? "" : `${cutText(job.name, 60)}: `;
  return renderPage(`${about}${verdict.kind}: ${cutText(verdict.summary, 120)}`, body);
}

/** What the methods say stays readable where what they saw is folded. */
function renderEvidence(
  { findings, isOpen, folds, body }: PlacedSection,
  verdict: Verdict,
): Markup {
  const cards = markupOf(FindingCards, { findings, verdict });
  if (isOpen || folds === "") return html`${cards} ${body}`;
  return html`${cards}
    <details class="fold">
      <summary>${folds}</summary>
      ${body}
    </details>`;
}

/** "Until it is fixed": what can be done about a slowdown before it is fixed, cheapest first. */
function renderMitigation(plan: Mitigation): Markup {
  return html`<p class="note">
      Each step is worth its cost once the fault has lasted as long as stated.
    </p>
    <ol class="fl-actions">
      ${plan.steps.map(
        (step) =>
          html`<li>
            <b>${stepHead(step, plan)}</b>
            <p>${stepWhen(step, plan)}</p>
            ${stepHow(step).map((how) => html`<p><code>${how}</code></p>`)}
          </li>`,
      )}
    </ol>
    ${plan.assumes.length > 0 && html`<p class="note">Taken for granted: ${plan.assumes.join("; ")}.</p>`}`;
}

/** The report's first screen, of the parts that the page draws, too. */
function renderHead({ name, worldSize }: Job, verdict: Verdict): Markup {
  const size = worldSize > 0 ? count(worldSize, "rank") : "";
  const about = [name === "" ? "" : `job ${name}`, size].filter((part) => part !== "").join(" · ");
  const { headline, effect, where } = answerWords(verdict);
  return markupOf(VerdictHead, {
    verdict: { ...verdict, summary: headline },
    effect,
    where,
    about,
  });
}

function renderSuspects(job: Job, verdict: Verdict): Markup {
  return markupOf(Suspects, { verdict, placeOf: (rank) => job.ranks.get(rank) });
}

/** Nothing for a verdict that does not say how it came about. */
function renderReasoning(
  verdict: Verdict,
  shownIn: NonNullable<ReasoningProps["shownIn"]>,
): Markup {
  return markupOf(Reasoning, { verdict, shownIn });
}

/**
 * What was read, what was missing or odd, and what would settle what is open.
 * `undrawn`: what could not be drawn, and why. Nothing where nothing is missing.
 */
function renderMissing({ missing, wouldHelp }: Verdict, undrawn: readonly string[]): Markup {
  return html`${
    wouldHelp.length > 0 &&
    html`<h3>What would help</h3>
      ${list(wouldHelp, (text) => markupOf(Advice, { text }))}`
  }
  ${
    missing.length > 0 &&
    html`<h3>Missing or odd</h3>
      ${list(missing, (text) => text)}`
  }
  ${markupOf(Lacks, { lacks: undrawn })}`;
}

function renderInputs({ inputs }: Verdict): Markup {
  const rows = inputs.slice(0, MAX_INPUTS);
  const rest = inputs.length - rows.length;
  return html`<details>
    <summary>${count(inputs.length, "file")} read</summary>
    <div class="scroll" tabindex="0" role="group" aria-label="Input files, scrolls sideways">
      <table class="inputs">
        <thead>
          <tr>
            <th scope="col">Path</th>
            <th scope="col">Format</th>
            <th scope="col">Rank</th>
            <th scope="col">Records</th>
          </tr>
        </thead>
        <tbody>
          ${rows.map(
            ({ path, format, rank, records }) =>
              html`<tr>
                <td><code>${cutText(path, MAX_PATH_CHARS)}</code></td>
                <td>${format}</td>
                <td class="number">${rank ?? "–"}</td>
                <td class="number">${records}</td>
              </tr> `,
          )}
        </tbody>
      </table>
    </div>
    ${rest > 0 && html`<p class="note">${count(rest, "more file")} in verdict.json.</p>`}
  </details>`;
}

function list(lines: readonly string[], show: (line: string) => Part): Markup {
  const rest = lines.length - MAX_LINES;
  return html`<ul>
      ${lines.slice(0, MAX_LINES).map((line) => html`<li>${show(cutText(line, MAX_LINE_CHARS))}</li>`)}
    </ul>
    ${rest > 0 && html`<p class="note">${rest} more in verdict.json.</p>`}`;
}
