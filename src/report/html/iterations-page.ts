/** A page of iteration times alone, for `faultline iterations`. */
import { count, cutText } from "../../base/text.ts";
import type { Episode, TrackedSeries } from "../../model/series.ts";
import { html } from "./escape.ts";
import { renderSeries } from "./iterations-section.ts";
import { hoursWords } from "./iterations-words.ts";
import { renderPage } from "./page.ts";

const MAX_TITLE = 200;

export function renderIterationsPage(tracked: readonly TrackedSeries[], title: string): string {
  const slow = tracked.filter(({ episodes }) => episodes.some(isSlow)).length;
  const tone = tracked.length === 0 ? "open" : slow > 0 ? "warn" : "good";
  const name = cutText(title, MAX_TITLE);
  const body = html`<header class="fl-head fl-${tone}">
      <h1>${name}</h1>
      <p>${answer(tracked, slow)}</p>
    </header>
    <main>
      ${tracked.length > 0 && html`<section id="iterations">${renderSeries(tracked)}</section>`}
    </main>
    <footer>Written by Faultline.</footer>`;
  return renderPage(name, body);
}

function answer(tracked: readonly TrackedSeries[], slow: number): string {
  if (tracked.length === 0) return "No iteration times found.";
  if (slow === 0) return "No lasting slowdown.";
  if (tracked.length > 1) return `${slow} of ${tracked.length} series slowed down.`;
  const { episodes, wastedMs } = tracked[0]!;
  return `${count(episodes.filter(isSlow).length, "slowdown")}, time wasted: ${hoursWords(wastedMs)}.`;
}

function isSlow({ type }: Episode): boolean {
  return type === "degradation";
}
