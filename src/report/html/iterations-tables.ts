/** What the picture shows, in numbers: change points and episodes. */
import { count } from "../../base/text.ts";
import type { ChangePoint, Episode } from "../../model/series.ts";
import { html, type Markup, type Part } from "./escape.ts";
import { durationWords, iterationWords, periodWords, ratioWords } from "./iterations-words.ts";

const MAX_CHANGES = 30;
const MAX_EPISODES = 20;

export function renderChangePoints(changes: readonly ChangePoint[]): Markup {
  if (changes.length === 0) return html``;
  const hasTimes = changes.some(({ atMs }) => atMs !== null);
  const hasLines = changes.some(({ line }) => line > 0);
  const head = ["Change at", "Known at", "Before", "After", "Ratio"];
  if (hasTimes) head.push("When (UTC)");
  if (hasLines) head.push("Line");
  const rows = changes
    .slice(0, MAX_CHANGES)
    .map((change) => [
      html`<b>${change.direction === "slower" ? "▲" : "▼"}</b> ${iterationWords(change.iteration)}
        ${change.ramp && "slowly "}${change.direction}${change.ramp && ` until ${iterationWords(change.ramp.until)}`}`,
      iterationWords(change.detectedAt),
      durationWords(change.beforeMs),
      durationWords(change.afterMs),
      ratioWords(change.ratio),
      ...(hasTimes ? [utc(change.atMs)] : []),
      ...(hasLines ? [change.line > 0 ? iterationWords(change.line) : "–"] : []),
    ]);
  const rest = changes.length - rows.length;
  return table(
    "Change points",
    head,
    rows,
    rest > 0 ? `${count(rest, "later change point")}.` : "",
  );
}

/** The most wasteful first. */
export function renderEpisodes(episodes: readonly Episode[]): Markup {
  if (episodes.length === 0) return html``;
  const head = ["Type", "From–to", "Ratio", "Iterations", "Time wasted", "Period"];
  const rows = episodes
    .toSorted((a, b) => (b.wastedMs || 0) - (a.wastedMs || 0))
    .slice(0, MAX_EPISODES)
    .map(({ type, from, to, isOpen, ratio, iterations, wastedMs, period }) => [
      type,
      `${from === to ? iterationWords(from) : `${iterationWords(from)}–${iterationWords(to)}`}${isOpen ? ", up to the end" : ""}`,
      ratioWords(ratio),
      iterationWords(iterations),
      durationWords(wastedMs),
      period === null ? "–" : periodWords(period),
    ]);
  const rest = episodes.length - rows.length;
  const words = `${count(rest, "more episode")} that wasted less.`;
  return table("Episodes", head, rows, rest > 0 ? words : "");
}

function table(
  caption: string,
  head: readonly string[],
  rows: readonly (readonly Part[])[],
  rest: string,
): Markup {
  return html`<div class="scroll" tabindex="0" role="group" aria-label="${caption}">
      <table class="iteration-table">
        <caption class="hidden">
          ${caption}
        </caption>
        <thead>
          <tr>
            ${head.map((name) => html`<th scope="col">${name}</th> `)}
          </tr>
        </thead>
        <tbody>
          ${rows.map(
            (cells) =>
              html`<tr>
                ${cells.map((cell) => html`<td>${cell}</td> `)}
              </tr> `,
          )}
        </tbody>
      </table>
    </div>
    ${rest !== "" && html`<p class="note">${rest}</p>`}`;
}

/** The last moment that a Date can hold. */
const LAST_MS = 8.64e15;

function utc(ms: number | null): Part {
  if (ms === null || !(Math.abs(ms) <= LAST_MS)) return "–";
  const iso = new Date(ms).toISOString();
  return html`<time datetime="${iso}">${iso.slice(0, -5).replace("T", " ")}</time>`;
}
