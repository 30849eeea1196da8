/**
 * One series as a picture: time of each iteration, the level that it is compared with, and what the tracker
 * sees in it. The axis belongs to the iterations that count; longer ones are cut off at its top with an arrow.
 */
import { count, cutText } from "../../base/text.ts";
import type { TrackedSeries, Pause } from "../../model/series.ts";
import { html, type Markup } from "./escape.ts";
import {
  CHARACTER,
  drawBand,
  drawChanges,
  drawRestarts,
  type PlacedEpisode,
} from "./iterations-bands.ts";
import { placeAll } from "./iterations-places.ts";
import { drawClipped, drawLevel, drawPoints, px, upArrow } from "./iterations-points.ts";
import {
  BOTTOM,
  HEIGHT,
  iterationTicks,
  LEFT,
  makeScale,
  RIGHT,
  TOP,
  WIDTH,
  isDuration,
  type Scale,
} from "./iterations-scale.ts";
import {
  changeWords,
  durationWords,
  episodeWords,
  iterationCount,
  iterationWords,
} from "./iterations-words.ts";

interface PlacedPause {
  readonly pause: Pause;
  readonly at: number;
}

const MAX_BANDS = 120;
const MAX_CHANGES = 120;
const MAX_SPIKES = 60;
const MAX_PAUSES = 60;
const MAX_NAMED = 6;
const MAX_SOURCE = 200;
const AXIS_MIDDLE = (TOP + BOTTOM) / 2;

export function renderIterationPlot(tracked: TrackedSeries): Markup {
  const scale = makeScale(tracked);
  if (!scale) return html`<p class="note">No point of this series has a duration.</p>`;
  const { series, changePoints, pauses } = tracked;
  const places = placeAll(tracked);
  const episodes = placedEpisodes(tracked, places.episodes);
  const bands = pickFirst(
    episodes.filter(({ episode }) => episode.type !== "spike"),
    MAX_BANDS,
    ({ episode }) => episode.wastedMs,
  );
  const spikes = pickFirst(
    episodes.filter(({ episode }) => episode.type === "spike"),
    MAX_SPIKES,
    ({ episode }) => episode.wastedMs,
  );
  const changes = pickFirst(
    changePoints.flatMap((change, k) => {
      const at = places.changes[k] ?? null;
      if (at === null) return [];
      const until = change.ramp ? series.iteration.indexOf(change.ramp.until, at) : -1;
      return [{ change, at, until: until < 0 ? null : until }];
    }),
    MAX_CHANGES,
    ({ change }) => Math.abs(Math.log(change.ratio)),
  );
  const marks = pickFirst(
    pauses.flatMap((pause, k) => {
      const at = places.pauses[k] ?? null;
      return at === null ? [] : [{ pause, at }];
    }),
    MAX_PAUSES,
    ({ pause }) => pause.durationMs,
  );
  const left = [
    more(bands.leftOut, "band"),
    more(changes.leftOut, "change point"),
    more(spikes.leftOut, "spike"),
    more(marks.leftOut, "pause"),
  ].filter((words) => words !== "");
  const note = left.length > 0 ? `not drawn: ${left.join(", ")}` : "";
  return html`<svg
    class="iteration-plot"
    role="img"
    aria-label="${describe(tracked)}"
    viewBox="0 0 ${WIDTH} ${HEIGHT}"
  >
    ${bands.kept.map((band) => drawBand(band, scale))} ${drawAxes(tracked, scale)}
    ${drawLevel(tracked, scale, places.restarts)} ${drawPoints(tracked, scale, places.restarts)}
    ${drawRestarts(places.restarts, series.iteration, scale)} ${drawChanges(changes.kept, scale)}
    ${marks.kept.map((mark) => drawPause(mark, scale))} ${drawClipped(tracked, scale)}
    ${spikes.kept.map((spike) => drawSpike(spike, series.durationMs, scale))}
    ${note !== "" && html`<text class="soft left" x="${RIGHT}" y="${HEIGHT - 6}">${note}</text>`}
  </svg>`;
}

function placedEpisodes(
  { episodes }: TrackedSeries,
  places: readonly (readonly [number, number] | null)[],
): PlacedEpisode[] {
  return episodes.flatMap((episode, k) => {
    const at = places[k] ?? null;
    return at === null ? [] : [{ episode, from: at[0], to: at[1] }];
  });
}

/** The weightiest, in their own order. */
function pickFirst<T>(
  items: readonly T[],
  most: number,
  weight: (item: T) => number,
): { kept: readonly T[]; leftOut: number } {
  if (items.length <= most) return { kept: items, leftOut: 0 };
  const weighed = items.map((item, k) => ({ k, weight: weight(item) || 0 }));
  weighed.sort((a, b) => b.weight - a.weight || a.k - b.k);
  const chosen = weighed.slice(0, most).sort((a, b) => a.k - b.k);
  return { kept: chosen.map(({ k }) => items[k]!), leftOut: items.length - most };
}

function more(leftOut: number, noun: string): string {
  return leftOut > 0 ? count(leftOut, `more ${noun}`) : "";
}

function drawAxes(tracked: TrackedSeries, scale: Scale): Markup {
  const { unit, isLog, yTicks } = scale;
  const grid = yTicks.map(({ at }) => `M${LEFT} ${px(at)}H${RIGHT}`).join("");
  const ticks = iterationTicks(tracked, scale);
  const below = ticks.map(({ at }) => `M${px(at)} ${BOTTOM}v5`).join("");
  const title = `${unit} per iteration${isLog ? ", logarithmic" : ""}`;
  return html`<path class="grid" d="${grid}" />
    <path class="axis" d="M${LEFT} ${BOTTOM}H${RIGHT}${below}" />
    ${yTicks.map(({ at, label }) => html`<text class="soft left" x="${LEFT - 6}" y="${px(at + 4)}">${label}</text> `)}
    ${ticks.map(({ at, label }) => {
      const x = Math.min(at, WIDTH - 2 - (label.length * CHARACTER) / 2);
      return html`<text class="soft middle" x="${px(x)}" y="${BOTTOM + 18}">${label}</text> `;
    })}
    <text class="soft middle" x="12" y="${AXIS_MIDDLE}" transform="rotate(-90 12 ${AXIS_MIDDLE})"
      >${title}</text
    >
    <text class="soft" x="${LEFT}" y="${HEIGHT - 6}">iteration</text>`;
}

/** The picture in words, for those who cannot see it. */
function describe(tracked: TrackedSeries): string {
  const { series, iterations, medianMs, changePoints, episodes, pauses, restarts } = tracked;
  const bands = episodes.filter(({ type }) => type !== "spike");
  const parts = [
    `${iterationCount(iterations)}, median ${durationWords(medianMs)}`,
    ...named(bands.map(episodeWords), "more band"),
    ...named(changePoints.map(changeWords), "more change point"),
  ];
  if (parts.length === 1) parts.push("no lasting change");
  const spikes = episodes.length - bands.length;
  if (spikes > 0) parts.push(count(spikes, "spike"));
  if (pauses.length > 0) parts.push(count(pauses.length, "pause"));
  if (restarts.length > 0) parts.push(count(restarts.length, "restart"));
  return `Iteration times of ${cutText(series.source, MAX_SOURCE)}: ${parts.join("; ")}.`;
}

function named(all: readonly string[], rest: string): string[] {
  const cut = all.length - MAX_NAMED;
  return cut > 0 ? [...all.slice(0, MAX_NAMED), count(cut, rest)] : [...all];
}

/** Single points that stand out: spikes, and pauses that are no slowness. */
function drawSpike(
  { episode, from, to }: PlacedEpisode,
  durationMs: Float64Array,
  scale: Scale,
): Markup {
  let peak = from;
  for (let i = from; i <= to; i++) if (durationMs[i]! > (durationMs[peak] || 0)) peak = i;
  const [x, y] = [scale.x(peak), scale.y(durationMs[peak] || 0)];
  return html`<g class="spike">
    <title>${episodeWords(episode)}: up to ${durationWords(durationMs[peak]!)}</title>
    <path d="M${px(x)} ${px(y - 4.5)}l4.5 4.5l-4.5 4.5l-4.5 -4.5z" />
  </g>`;
}

function drawPause({ pause, at }: PlacedPause, scale: Scale): Markup | null {
  const { why, durationMs, iteration } = pause;
  if (!isDuration(durationMs)) return null;
  const x = scale.x(at);
  const isBeyond = durationMs > scale.topMs;
  const d = isBeyond
    ? upArrow(x)
    : `M${px(x - 3)} ${px(scale.y(durationMs))}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z`;
  return html`<g class="pause">
    <title>Iteration ${iterationWords(iteration)}: ${why}, ${durationWords(durationMs)}</title>
    <path d="${d}" />
  </g>`;
}
