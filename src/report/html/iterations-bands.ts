/** Stretches of the plot: slow ones shaded, fluctuating ones hatched; and the lines where something changes. */
import type { ChangePoint, Episode } from "../../model/series.ts";
import { html, type Markup } from "./escape.ts";
import { px } from "./iterations-points.ts";
import { BOTTOM, LEFT, RIGHT, type Scale, TOP } from "./iterations-scale.ts";
import {
  changeWords,
  durationWords,
  episodeWords,
  iterationCount,
  iterationWords,
  periodWords,
  ratioWords,
} from "./iterations-words.ts";

/** Baselines of the rows of labels above the plot. */
const SLOWER_ROW = 11;
const FASTER_ROW = 24;
const BAND_ROW = 38;
/** Width of a character of the labels. */
export const CHARACTER = 6;
const HATCH_GAP = 9;
const MAX_RESTARTS = 40;

export interface PlacedEpisode {
  readonly episode: Episode;
  readonly from: number;
  readonly to: number;
}

export function drawBand({ episode, from, to }: PlacedEpisode, scale: Scale): Markup {
  const start = edge(scale, from, -0.5);
  const left = Math.min(start, RIGHT - 1);
  // A narrow band is still to be seen.
  const width = Math.max(1, Math.min(RIGHT, edge(scale, to, 0.5)) - left);
  const isSlow = episode.type === "degradation";
  const top = BAND_ROW - 12;
  const label = bandLabels(episode).find((words) => words.length * CHARACTER + 4 <= width);
  const middle = px(left + width / 2);
  return html`<g class="band ${isSlow ? "slow" : "fluctuating"}">
    <title>${bandTitle(episode)}</title>
    <rect x="${px(left)}" y="${top}" width="${px(width)}" height="${BOTTOM - top}" />
    ${!isSlow && html`<path class="hatch" d="${hatch(left, width)}" />`}
    ${label !== undefined && html`<text class="middle" x="${middle}" y="${BAND_ROW}">${label}</text>`}
  </g>`;
}

function edge(scale: Scale, index: number, side: number): number {
  return scale.x(index + side);
}

/** From the longest to the shortest: what fits is written. */
function bandLabels(episode: Episode): string[] {
  const { type, ratio, period } = episode;
  const size = ratioWords(ratio);
  if (type === "degradation") return [episodeWords(episode), `${size} slower`, size];
  const rhythm = period === null ? [] : [`fluctuates ${periodWords(period)}`];
  return [episodeWords(episode), ...rhythm, "fluctuates", size];
}

function bandTitle(episode: Episode): string {
  const { iterations, wastedMs, isOpen } = episode;
  const end = isOpen ? ", up to the end" : "";
  return `${episodeWords(episode)}${end}: ${iterationCount(iterations)}, ${durationWords(wastedMs)} wasted`;
}

/** Rising lines, cut at the band's edges: a pattern would need an id, and a page has several plots. */
function hatch(left: number, width: number): string {
  const height = BOTTOM - TOP;
  let d = "";
  for (let at = HATCH_GAP; at < width + height; at += HATCH_GAP) {
    const [x1, x2] = [Math.max(0, at - height), Math.min(at, width)];
    d += `M${px(left + x1)} ${px(TOP + at - x1)}L${px(left + x2)} ${px(TOP + at - x2)}`;
  }
  return d;
}

interface PlacedChange {
  readonly change: ChangePoint;
  readonly at: number;
  /** Where a ramp came to rest; null where it has no place in the plot, or there is none. */
  readonly until: number | null;
}

/** Slower and faster have a row each, so that the labels of a stretch's two ends do not meet. */
export function drawChanges(placed: readonly PlacedChange[], scale: Scale): Markup[] {
  const rows = { slower: new Row(), faster: new Row() };
  let before = LEFT;
  return placed.map(({ change, at, until }) => {
    const isSlower = change.direction === "slower";
    const x = edge(scale, at, -0.5);
    const y = isSlower ? SLOWER_ROW : FASTER_ROW;
    const words = iterationWords(change.iteration);
    const width = words.length * CHARACTER + 10;
    // Within the slow stretch, where there is room.
    const toLeft = x + width > RIGHT || (!isSlower && x - width > before);
    before = x;
    const start = toLeft ? x - width : x;
    const fits = rows[isSlower ? "slower" : "faster"].take(start - 4, start + width);
    const arrow = isSlower ? `M${px(x - 4)} ${y}h8l-4 -8z` : `M${px(x - 4)} ${y - 8}h8l-4 8z`;
    return html`<g class="change ${isSlower ? "slower" : "faster"}">
      <title>${changeWords(change)}</title>
      <path class="hit" d="M${px(x)} ${y - 8}V${BOTTOM}" />
      <path class="rule" d="M${px(x)} ${y}V${BOTTOM}" />
      <path class="arrow" d="${arrow}" />
      ${until !== null && html`<path class="slope" d="${slope(change, at, until, scale)}" />`}
      ${
        fits &&
        html`<text class="${toLeft ? "left" : "right"}" x="${px(toLeft ? x - 7 : x + 7)}" y="${y}">
          ${words}
        </text>`
      }
    </g>`;
  });
}

function slope(
  { beforeMs, afterMs }: ChangePoint,
  at: number,
  until: number,
  scale: Scale,
): string {
  return `M${px(scale.x(at))} ${px(scale.y(beforeMs))}L${px(scale.x(until))} ${px(scale.y(afterMs))}`;
}

export function drawRestarts(
  restarts: readonly number[],
  iteration: Float64Array,
  scale: Scale,
): Markup[] {
  const row = new Row();
  const width = "restart".length * CHARACTER + 6;
  return restarts.slice(0, MAX_RESTARTS).map((at) => {
    const x = edge(scale, at, -0.5);
    const toLeft = x + width > RIGHT;
    const start = toLeft ? x - width : x;
    return html`<g class="restart">
      <title>Restart before iteration ${iterationWords(iteration[at]!)}</title>
      <path class="hit" d="M${px(x)} ${TOP}V${BOTTOM}" />
      <path class="rule" d="M${px(x)} ${TOP}V${BOTTOM}" />
      ${
        row.take(start, start + width) &&
        html`<text
          class="${toLeft ? "left" : "right"}"
          x="${px(toLeft ? x - 4 : x + 4)}"
          y="${BOTTOM - 5}"
        >
          restart
        </text>`
      }
    </g>`;
  });
}

/** Room in a row of labels, given from left to right. */
class Row {
  #taken: (readonly [number, number])[] = [];

  take(start: number, end: number): boolean {
    if (this.#taken.some(([from, to]) => start < to && end > from)) return false;
    this.#taken.push([start, end]);
    return true;
  }
}
