/** Single points that stand out: spikes, and pauses that are no slowness. */
import type { Pause } from "../../model/series.ts";
import { html, type Markup } from "./escape.ts";
import type { PlacedEpisode } from "./iterations-bands.ts";
import { px, upArrow } from "./iterations-points.ts";
import { isDuration, type Scale } from "./iterations-scale.ts";
import { durationWords, episodeWords, iterationWords } from "./iterations-words.ts";

export function drawSpike(
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

interface PlacedPause {
  readonly pause: Pause;
  readonly at: number;
}

export function drawPause({ pause, at }: PlacedPause, scale: Scale): Markup | null {
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
