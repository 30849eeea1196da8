/** The points themselves: dots while they are few, the range and the median of each column when they are many. */
import { count } from "../../base/text.ts";
import type { TrackedSeries } from "../../model/series.ts";
import { html, type Markup, type Part } from "./escape.ts";
import { counts, LEFT, RIGHT, type Scale, TOP } from "./iterations-scale.ts";
import { durationWords, iterationWords } from "./iterations-words.ts";

/** More points than this are drawn by column, so that a million need no more room than a thousand. */
const MAX_DOTS = 1_500;
/** More than this, and a line from point to point is only a scribble. */
const MAX_JOINED = 300;
const COLUMNS = RIGHT - LEFT;

/** `breaks`: points with which a new line begins. */
export function drawPoints(
  tracked: TrackedSeries,
  scale: Scale,
  breaks: readonly number[],
): Part[] {
  const points = tracked.series.iteration.length;
  if (points > MAX_DOTS) return drawColumns(tracked, scale, breaks);
  const { durationMs } = tracked.series;
  const lines = new LinePath();
  let dots = "";
  for (let i = 0; i < points; i++) {
    if (breaks.includes(i)) lines.lift();
    if (!counts(tracked, i)) continue;
    const [x, y] = [scale.x(i), scale.y(durationMs[i]!)];
    dots += `M${px(x)} ${px(y)}h0`;
    lines.to(x, y);
  }
  return [
    points <= MAX_JOINED && html`<path class="joined" d="${lines.d}" />`,
    html`<path class="${points <= MAX_JOINED ? "dots few" : "dots"}" d="${dots}" />`,
  ];
}

function drawColumns(tracked: TrackedSeries, scale: Scale, breaks: readonly number[]): Part[] {
  const lines = new LinePath();
  let ranges = "";
  let nextBreak = 0;
  eachColumn(tracked, (x, sorted, end) => {
    while (nextBreak < breaks.length && breaks[nextBreak]! < end) {
      lines.lift();
      nextBreak++;
    }
    if (sorted.length === 0) return;
    const low = scale.y(sorted[0]!) + 0.5;
    const high = scale.y(sorted.at(-1)!) - 0.5;
    ranges += `M${px(x)} ${px(low)}V${px(high)}`;
    lines.to(x, scale.y(sorted[sorted.length >> 1]!));
  });
  return [
    html`<path class="ranges" d="${ranges}" />`,
    html`<path class="median" d="${lines.d}" />`,
  ];
}

/** Calls with the durations that count of each column, ascending, and the point after the column. */
function eachColumn(
  tracked: TrackedSeries,
  visit: (x: number, sorted: Float64Array, end: number) => void,
): void {
  const { durationMs } = tracked.series;
  const points = durationMs.length;
  for (let c = 0; c < COLUMNS; c++) {
    const from = Math.ceil((c * points) / COLUMNS);
    const end = Math.ceil(((c + 1) * points) / COLUMNS);
    const sorted = durationMs.subarray(from, end).filter((_, k) => counts(tracked, from + k));
    visit(LEFT + c + 0.5, sorted.sort(), end);
  }
}

/** What each point is compared with: in a slow stretch, the level before it. */
export function drawLevel(
  tracked: TrackedSeries,
  scale: Scale,
  breaks: readonly number[],
): Markup | null {
  const points = tracked.series.iteration.length;
  const each = Math.max(1, points / COLUMNS);
  const half = Math.min(8, Math.max(0.5, (scale.x(each) - scale.x(0)) / 2));
  let d = "";
  let pen: { readonly x: number; readonly y: string } | null = null;
  let nextBreak = 0;
  for (let k = 0; k * each < points; k++) {
    const i = Math.floor(k * each);
    while (nextBreak < breaks.length && breaks[nextBreak]! <= i) {
      if (pen) d += `H${px(pen.x)}`;
      pen = null;
      nextBreak++;
    }
    if (!counts(tracked, i)) continue;
    const [x, y] = [scale.x(i), px(scale.y(tracked.levelMs[i]!))];
    if (!pen) d += `M${px(x - half)} ${y}`;
    else if (y !== pen.y) d += `H${px(x - half)}V${y}`;
    pen = { x: x + half, y };
  }
  if (pen) d += `H${px(pen.x)}`;
  return d === "" ? null : html`<path class="level" d="${d}" />`;
}

/** Marks at the upper edge for points that lie beyond it. */
export function drawClipped(tracked: TrackedSeries, scale: Scale): Markup | null {
  const { durationMs, iteration } = tracked.series;
  let [clipped, longest, lastX, d] = [0, -1, -Infinity, ""];
  for (let i = 0; i < durationMs.length; i++) {
    if (!(durationMs[i]! > scale.topMs) || !counts(tracked, i)) continue;
    clipped++;
    if (longest < 0 || durationMs[i]! > durationMs[longest]!) longest = i;
    if (scale.x(i) - lastX < 5) continue;
    lastX = scale.x(i);
    d += upArrow(lastX);
  }
  if (clipped === 0) return null;
  const most = `${durationWords(durationMs[longest]!)} at iteration ${iterationWords(iteration[longest]!)}`;
  return html`<g class="clipped">
    <title>${count(clipped, "iteration")} beyond the axis, at most ${most}</title>
    <path d="${d}" />
  </g>`;
}

/** A small arrow that stands on the plot's upper edge: there is more above. */
export function upArrow(x: number): string {
  return `M${px(x - 3.5)} ${px(TOP + 1)}h7l-3.5 -6z`;
}

class LinePath {
  d = "";
  #isDown = false;

  lift(): void {
    this.#isDown = false;
  }

  to(x: number, y: number): void {
    this.d += `${this.#isDown ? "L" : "M"}${px(x)} ${px(y)}`;
    this.#isDown = true;
  }
}

export function px(value: number): string {
  return Number.isFinite(value) ? String(Math.round(value * 10) / 10) : "0";
}
