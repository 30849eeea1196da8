/** Iteration times: a picture of each series, what changes in it, and what that cost. */
import { count, cutText, rankWords, thousands } from "../../base/text.ts";
import type { SeriesBasis, TrackedSeries, ChangePoint, Episode } from "../../model/series.ts";
import { html, join, type Markup, type Part } from "./escape.ts";
import { renderIterationPlot } from "./iterations-plot.ts";
import { counts } from "./iterations-scale.ts";
import {
  durationWords,
  hoursWords,
  iterationCount,
  iterationWords,
  periodWords,
  ratioWords,
} from "./iterations-words.ts";
import { legend, scrollingTable } from "./parts-of-pages.ts";
import type { Rank } from "../../model/ids.ts";
import { grouped, sameChanges } from "../same-changes.ts";

const MAX_CHANGES = 30;
const MAX_EPISODES = 20;

/** The last moment that a Date can hold. */
const LAST_MS = 8.64e15;

interface SeriesGroup {
  /** The one that lost most time. */
  readonly shown: TrackedSeries;
  /** Ranks of the others, ascending. */
  readonly alike: readonly Rank[];
}

const MAX_PLOTS = 8;
const MAX_NAMES = 10;
const MAX_SOURCE = 200;

const BASES: Readonly<Record<SeriesBasis, string>> = {
  reported: "as the writer measured them",
  throughput: "from samples or tokens per second",
  timestamps: "from the times of the lines",
  operators: "from the period of the operators",
};

export function renderSeries(tracked: readonly TrackedSeries[]): Markup {
  const groups = groupSeries(tracked);
  const shown = mostWasteful(groups);
  const rest = groups.filter((group) => !shown.includes(group));
  return html`${shown.map(renderGroup)} ${rest.length > 0 && renderRest(rest)}
  ${legend("iteration-plot key-plot", [22, 14], KEYS)}`;
}

/** Which to draw where there are too many; in the order of the list. */
function mostWasteful(groups: readonly SeriesGroup[]): SeriesGroup[] {
  const weight = ({ shown }: SeriesGroup): number => shown.wastedMs || 0;
  const chosen = new Set(groups.toSorted((a, b) => weight(b) - weight(a)).slice(0, MAX_PLOTS));
  return groups.filter((group) => chosen.has(group));
}

function renderGroup({ shown, alike }: SeriesGroup): Markup {
  const { series, changePoints, episodes } = shown;
  return html`<article class="iteration-series">
    <h3>${nameOf(shown)} <span class="note">${BASES[series.basis]}</span></h3>
    <p>${summary(shown)}</p>
    ${alike.length > 0 && html`<p class="note">${sentence(rankWords(alike))} ${alike.length === 1 ? "says" : "say"} the same.</p>`}
    <div class="scroll" tabindex="0" role="group" aria-label="Plot, scrolls sideways">
      ${renderIterationPlot(shown)}
    </div>
    ${renderChangePoints(changePoints)} ${renderEpisodes(episodes)}
  </article>`;
}

function sentence(words: string): string {
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}

/** The source, and the rank where the source does not say it. */
function nameOf({ series }: TrackedSeries): string {
  const { source, rank } = series;
  const name = cutText(source, MAX_SOURCE);
  return rank === null || /\brank\b/.test(source) ? name : `${name}, rank ${rank}`;
}

function summary(tracked: TrackedSeries): Markup {
  const { medianMs, variation, wastedMs, iterations, restarts } = tracked;
  const share = wastedMs / (meanMs(tracked) * iterations);
  const parts = [
    iterationCount(iterations),
    html`median <b>${durationWords(medianMs)}</b>`,
    html`variation ${percent(variation)}`,
    html`time wasted
      <b>${hoursWords(wastedMs)}</b>${share > 0 && ` (${percent(share)} of the time)`}`,
    count(restarts.length, "restart"),
  ];
  return html`${join(parts, " · ")}`;
}

/** Of the iterations that count. */
function meanMs(tracked: TrackedSeries): number {
  const { durationMs } = tracked.series;
  let [sum, counted] = [0, 0];
  for (let i = 0; i < durationMs.length; i++) {
    if (!counts(tracked, i)) continue;
    sum += durationMs[i]!;
    counted++;
  }
  return sum / counted;
}

/** Finer than elsewhere in the report: one per cent of a month is seven hours. */
function percent(share: number): string {
  return Number.isFinite(100 * share) ? `${Number((100 * share).toFixed(1))} %` : "–";
}

function renderRest(rest: readonly SeriesGroup[]): Markup {
  const names = rest.slice(0, MAX_NAMES).map(({ shown }) => nameOf(shown));
  const more = rest.length - names.length;
  return html`<p class="note">
    Not drawn: ${join(names, "; ")}${more > 0 && `; and ${thousands(more)} more`}.
  </p>`;
}

const KEYS: readonly (readonly [string, Markup])[] = [
  ["iteration", html`<path class="dots few" d="M11 7h0" />`],
  ["level to compare with", html`<path class="level" d="M1 7H21" />`],
  ["slower", html`<g class="band slow"><rect width="22" height="14" /></g>`],
  [
    "fluctuates",
    html`<g class="band fluctuating">
      <rect width="22" height="14" />
      <path class="hatch" d="M0 9L9 0M4 14L18 0M13 14L22 5" />
    </g>`,
  ],
  ["becomes slower", html`<g class="change slower"><path class="arrow" d="M7 11h8l-4 -8z" /></g>`],
  ["becomes faster", html`<g class="change faster"><path class="arrow" d="M7 3h8l-4 8z" /></g>`],
  ["spike", html`<g class="spike"><path d="M11 2.5l4.5 4.5l-4.5 4.5l-4.5 -4.5z" /></g>`],
  [
    "pause: warm-up, checkpoint, evaluation, restart, standstill",
    html`<g class="pause"><path d="M8 7a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z" /></g>`,
  ],
  ["beyond the axis", html`<g class="clipped"><path d="M7.5 10h7l-3.5 -6z" /></g>`],
];

/**
 * Ranks that wait for each other slow down together: series that say the same are drawn once.
 * In the order in which the first of each group stands in the list.
 */
function groupSeries(tracked: readonly TrackedSeries[]): SeriesGroup[] {
  return grouped(tracked, areAlike).map((members) => {
    const shown = members.reduce((a, b) => (b.wastedMs > a.wastedMs ? b : a));
    const others = members.filter((one) => one !== shown).map(({ series }) => series.rank!);
    const alike = [...new Set(others)].sort((a, b) => a - b);
    return { shown, alike };
  });
}

/** Only ranks: the others are named by their numbers. */
function areAlike(a: TrackedSeries, b: TrackedSeries): boolean {
  return a.series.rank !== null && b.series.rank !== null && sameChanges(a, b);
}

/** What the picture shows, in numbers: change points and episodes. */
function renderChangePoints(changes: readonly ChangePoint[]): Markup {
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
function renderEpisodes(episodes: readonly Episode[]): Markup {
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
  return html`${scrollingTable("iteration", caption, head, rows)}
  ${rest !== "" && html`<p class="note">${rest}</p>`}`;
}

function utc(ms: number | null): Part {
  if (ms === null || !(Math.abs(ms) <= LAST_MS)) return "–";
  const iso = new Date(ms).toISOString();
  return html`<time datetime="${iso}">${iso.slice(0, -5).replace("T", " ")}</time>`;
}
