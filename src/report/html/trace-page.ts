/** A page of kernel timelines, for `faultline trace`: what is slower in words, then the pictures that show it. */
import { count, cutText, ranges } from "../../base/text.ts";
import type { Regression } from "../../model/regression.ts";
import type { TimelinePicture } from "../../model/trace-picture.ts";
import type { RunProfile } from "../../model/trace-profile.ts";
import type { TraceReport } from "../trace-document.ts";
import { html, type Markup } from "./escape.ts";
import { renderPage } from "./page.ts";
import { renderSection, sectionLinks } from "./parts-of-pages.ts";
import { traceSections } from "./trace-section.ts";
import { shareWords } from "./trace-words.ts";
import { ownerWords } from "../owner-words.ts";

const MOST_CARDS = 24;
const MOST_PLACES = 4;
const MOST_NOTES = 60;
const MOST_TEXT = 2_000;

interface TracePage {
  readonly report: TraceReport;
  readonly healthy: readonly RunProfile[];
  readonly timeline: TimelinePicture | null;
  /** What the terminal shows, to copy. */
  readonly text: string;
}

export function renderTracePage({ report, healthy, timeline, text }: TracePage): string {
  const { run, regressions, baseline, distanceMs, notes, missing } = report;
  const title = titleOf(report);
  const pictures = traceSections({ run, healthy, distanceMs, timeline });
  const tone = regressions.length > 0 ? "warn" : baseline.length > 0 ? "good" : "open";
  const said = [...notes, ...missing.map((one) => `Missing or odd: ${one}`)];
  const body = html`<header class="fl-head fl-${tone}">
      <h1>${title}</h1>
      <p>
        ${cutText(run.source, MOST_TEXT)}: ${count(run.ranks.length, "rank")}, ${subtitle(report)}
      </p>
    </header>
    ${sectionLinks(pictures)}
    <main>
      ${
        regressions.length > 0 &&
        html`<section id="suspects">
          <h2>What is slower</h2>
          <div class="fl-cards">
            ${regressions.slice(0, MOST_CARDS).map((one) => card(one, run.ranks.length))}
          </div>
          ${regressions.length > MOST_CARDS && html`<p class="note">${count(regressions.length - MOST_CARDS, "more regression")} in verdict.json.</p>`}
        </section>`
      }
      ${pictures.map(renderSection)}
      ${
        said.length > 0 &&
        html`<section id="notes">
          <h2>Remarks</h2>
          <ul>
            ${said.slice(0, MOST_NOTES).map((one) => html`<li>${cutText(one, MOST_TEXT)}</li> `)}
          </ul>
          ${said.length > MOST_NOTES && html`<p class="note">${count(said.length - MOST_NOTES, "more remark")} in verdict.json.</p>`}
        </section>`
      }
      <section id="figures">
        <h2>All figures</h2>
        <details>
          <summary>As the terminal shows them</summary>
          <pre>${text}</pre>
        </details>
      </section>
    </main>
    <footer>Written by Faultline. The same as data: verdict.json (faultline.trace/1).</footer>`;
  return renderPage(title, body);
}

function titleOf({ regressions, baseline, run }: TraceReport): string {
  const [worst] = regressions.toSorted((a, b) => b.share - a.share);
  if (!worst)
    return baseline.length > 0 ? "No regression against the baseline" : "Kernel timelines";
  const more = regressions.length - 1;
  const rest = more > 0 ? `, and ${count(more, "more regression")}` : "";
  return `${worst.cause}: ${shareWords(worst.share)} of the step on ${who(worst, run.ranks.length)}${rest}`;
}

function subtitle({ baseline }: TraceReport): string {
  if (baseline.length > 0) return `compared with ${cutText(baseline.join(", "), 300)}.`;
  return "no baseline given: ranks could only be compared with each other.";
}

function who({ ranks }: Regression, all: number): string {
  if (ranks.length === all && all > 1) return `all ${all} ranks`;
  return `${ranks.length === 1 ? "rank" : "ranks"} ${ranges(ranks, 8)}`;
}

function card(one: Regression, all: number): Markup {
  return html`<article class="fl-card">
    <h3>${who(one, all)}</h3>
    <p class="fl-line">
      <span class="fl-cause">${one.cause}</span> <b>${shareWords(one.share)} of the step</b>
      <span class="fl-target">for the ${ownerWords(one.owner)}</span>
    </p>
    <p>${cutText(one.why, MOST_TEXT)}</p>
    <p class="note">Threshold: ${cutText(one.threshold, MOST_TEXT)}</p>
    <p class="note fl-places">
      ${one.at.slice(0, MOST_PLACES).map(({ file }) => html`<code>${cutText(file, 300)}</code> `)}
    </p>
  </article> `;
}
