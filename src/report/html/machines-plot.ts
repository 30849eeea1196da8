/**
 * One metric of one machine beside its peers, small enough to stand in a row of others. Where there was no sample
 * nothing is drawn: a line across a gap would claim what nobody measured.
 */
import type { MachinePicture } from "../../model/machine-picture.ts";
import type { ClockZone } from "../parts/clock-zone.ts";
import { html, type Markup } from "./escape.ts";
import { px } from "./iterations-points.ts";
import {
  amountAxis,
  type AmountAxis,
  BOTTOM,
  HEIGHT,
  isAmount,
  LEFT,
  RIGHT,
  stepOf,
  type TimeAxis,
  TOP,
  WIDTH,
} from "./machines-scale.ts";
import { clockText, metricTitle, nameWords, spanText, zoneText } from "./machines-words.ts";

/** Of a character of the labels, to keep them inside. */
const CHARACTER = 6.2;
/** Narrower gaps speak for themselves. */
const NAMED_GAP = 64;

/** "GPU power, gpu3". */
export function pictureTitle({ title, metric, device }: MachinePicture): string {
  const name = title === "" ? metricTitle(metric) : nameWords(title);
  return device === null ? name : `${name}, ${nameWords(device)}`;
}

/** `figures`: machine and peers in words, for those who cannot see the plot. */
export function renderMachinePlot(
  picture: MachinePicture,
  time: TimeAxis,
  figures: string,
): Markup {
  const amounts = amountAxis(picture);
  const sentence = describe(picture, time.zone, figures, amounts?.isLog === true);
  return html`<svg
    class="machine-plot"
    role="img"
    aria-label="${sentence}"
    viewBox="0 0 ${WIDTH} ${HEIGHT}"
  >
    <title>${sentence}</title>
    ${drawDeviation(picture, time)} ${drawAxes(amounts, time)}
    ${amounts && drawSeries(picture, time, amounts)} ${drawGapName(picture, time)}
  </svg>`;
}

function drawSeries(picture: MachinePicture, time: TimeAxis, amounts: AmountAxis): Markup {
  const { value, middle } = picture;
  return html`<path class="peers" d="${bandPath(picture, time, amounts)}" />
    <path class="peers-middle" d="${linePath(picture.timeS, middle, time, amounts)}" />
    <path class="own" d="${linePath(picture.timeS, value, time, amounts)}" />`;
}

/** Stretches of neighbouring points that all have a value; a jump in time parts them, too. */
export function runsOf(timeS: readonly number[], has: (i: number) => boolean): number[][] {
  const most = 1.5 * stepOf(timeS);
  const runs: number[][] = [];
  let open: number[] | null = null;
  for (const [i, at] of timeS.entries()) {
    if (!Number.isFinite(at) || !has(i)) {
      open = null;
      continue;
    }
    const since = open === null ? 0 : at - timeS[open.at(-1)!]!;
    if (open === null || since <= 0 || since > most) {
      open = [];
      runs.push(open);
    }
    open.push(i);
  }
  return runs;
}

function linePath(
  timeS: readonly number[],
  values: readonly (number | null)[],
  { x }: TimeAxis,
  { y }: AmountAxis,
): string {
  return runsOf(timeS, (i) => isAmount(values[i]))
    .map((run) => {
      const points = run.map((i) => `${px(x(timeS[i]!))} ${px(y(values[i]!))}`);
      // A point between two gaps is a dot: its line goes nowhere, and its round ends are seen.
      return `M${points.join("L")}${run.length === 1 ? "h0" : ""}`;
    })
    .join("");
}

/** A point stands for the time around it: the band reaches half a step beyond its first and its last. */
function bandPath(
  { timeS, low, high }: MachinePicture,
  { x }: TimeAxis,
  { y }: AmountAxis,
): string {
  const half = stepOf(timeS) / 2;
  return runsOf(timeS, (i) => isAmount(low[i]) && isAmount(high[i]))
    .map((run) => {
      const [first, last] = [run[0]!, run.at(-1)!];
      const start = px(Math.min(x(timeS[first]! - half), x(timeS[first]!) - 0.5));
      const end = px(Math.max(x(timeS[last]! + half), x(timeS[last]!) + 0.5));
      const above = run.map((i) => `L${px(x(timeS[i]!))} ${px(y(high[i]!))}`).join("");
      const below = run
        .toReversed()
        .map((i) => `L${px(x(timeS[i]!))} ${px(y(low[i]!))}`)
        .join("");
      return `M${start} ${px(y(high[first]!))}${above}L${end} ${px(y(high[last]!))}V${px(y(low[last]!))}${below}L${start} ${px(y(low[first]!))}z`;
    })
    .join("");
}

/** Shaded, with the moment it began written above: the first thing to be seen. */
function drawDeviation({ fromS, toS }: MachinePicture, time: TimeAxis): Markup | null {
  if (!(fromS < toS) || !(toS >= time.fromS) || !(fromS <= time.toS)) return null;
  const from = time.x(fromS);
  const width = Math.max(1, time.x(toS) - from);
  const start = clockText(fromS, time);
  const isOver = time.x(toS) < RIGHT - 6;
  const words = isOver ? `${start} – ${clockText(toS, time)}` : `since ${start}`;
  const room = RIGHT - words.length * CHARACTER;
  return html`<rect
      class="unlike"
      x="${px(from)}"
      y="${TOP}"
      width="${px(Math.min(width, RIGHT - from))}"
      height="${BOTTOM - TOP}"
    />
    <path class="onset" d="M${px(from)} ${TOP - 4}V${BOTTOM}" />
    <text class="alarm" x="${px(Math.max(2, Math.min(from, room)))}" y="${TOP - 7}"
      >${words}</text
    >`;
}

function drawAxes(amounts: AmountAxis | null, time: TimeAxis): Markup {
  const { fromS, toS } = time;
  const ticks = amounts?.ticks ?? [];
  const grid = ticks.map(({ at }) => `M${LEFT} ${px(at)}H${RIGHT}`).join("");
  const [start, end] = [clockText(fromS, time), clockText(toS, time)];
  return html`<path class="grid" d="${grid}" />
    <path class="axis" d="M${LEFT} ${BOTTOM}H${RIGHT}" />
    ${ticks.map(({ at, label }) => html`<text class="left" x="${LEFT - 5}" y="${px(at + 3.5)}">${label}</text> `)}
    ${amounts?.isLog === true && html`<text class="left" x="${LEFT - 5}" y="${TOP - 7}">log scale</text>`}
    ${
      toS > fromS
        ? html`<text x="${LEFT}" y="${HEIGHT - 6}">${start}</text>
            <text class="left" x="${RIGHT}" y="${HEIGHT - 6}">${end}</text>`
        : html`<text class="middle" x="${(LEFT + RIGHT) / 2}" y="${HEIGHT - 6}">${start}</text>`
    }`;
}

/** A wide gap is named, or its emptiness looks like a fault of the plot. */
function drawGapName({ timeS, value }: MachinePicture, { x }: TimeAxis): Markup | null {
  const runs = runsOf(timeS, (i) => isAmount(value[i]));
  const edges = runs.flatMap((run) => [x(timeS[run[0]!]!), x(timeS[run.at(-1)!]!)]);
  const stops = [LEFT, ...edges, RIGHT];
  let [widest, at] = [0, 0];
  for (let i = 0; i + 1 < stops.length; i += 2) {
    const gap = stops[i + 1]! - stops[i]!;
    if (gap > widest) [widest, at] = [gap, (stops[i]! + stops[i + 1]!) / 2];
  }
  if (widest < NAMED_GAP) return null;
  return html`<text class="alarm middle halo" x="${px(at)}" y="${BOTTOM - 8}">no sample</text>`;
}

/** The plot in words. */
function describe(
  picture: MachinePicture,
  zone: ClockZone,
  figures: string,
  isLog: boolean,
): string {
  const { machine, fromS, toS, value, middle } = picture;
  const zoneName = zone.name(1000 * fromS);
  const when = fromS < toS ? `unlike its peers ${spanText(fromS, toS, zone)} ${zoneName}` : "";
  const parts = [
    when,
    figures,
    value.some(isAmount) ? "" : "no sample of its own",
    middle.some(isAmount) ? "" : "no sample of its peers",
    isLog ? "logarithmic axis" : "",
  ].filter((part) => part !== "");
  const name = `${nameWords(machine)}, ${pictureTitle(picture)}`;
  return parts.length === 0
    ? `${name}, ${zoneText(fromS, zone)}.`
    : `${name}: ${parts.join("; ")}.`;
}
