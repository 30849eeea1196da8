/** Issue latencies as cumulative distributions: this run against the healthy ones (FLARE, figure 11). */
import { largest } from "../../base/numbers.ts";
import type { Rank } from "../../model/ids.ts";
import type { RankProfile, RunProfile } from "../../model/trace-profile.ts";
import { html, type Markup } from "./escape.ts";
import { px } from "./iterations-points.ts";
import { steps as roundValues } from "./iterations-scale.ts";
import { msWords } from "./trace-words.ts";

const WIDTH = 960;
const HEIGHT = 300;
const LEFT = 56;
const RIGHT = 948;
const TOP = 12;
const BOTTOM = 250;
/** Points of a line: more than can be seen. */
const POINTS = 256;
const MOST_LINES = 16;
/** The slowest few in a thousand would flatten all others. */
const SHOWN = 0.995;

/** Where a share of the kernels has started: shares and milliseconds, both never falling. */
interface CdfPoint {
  readonly ms: number;
  readonly share: number;
}

/** Nothing where no latency was measured. */
export function renderCdf(
  run: RunProfile,
  healthy: readonly RunProfile[],
  distanceMs: ReadonlyMap<Rank, number>,
  worst: readonly Rank[],
): Markup {
  const all = pooled(run.ranks);
  const base = pooled(healthy.flatMap(({ ranks }) => ranks));
  if (all.length === 0) return html``;
  const topMs = Math.max(1e-3, quantile(all, SHOWN), base.length > 0 ? quantile(base, SHOWN) : 0);
  const x = (ms: number): number => LEFT + ((RIGHT - LEFT) * Math.min(ms, topMs)) / topMs;
  const y = (share: number): number => BOTTOM - (BOTTOM - TOP) * share;
  const line = (sorted: readonly number[], style: string): Markup => {
    const points = cdfPoints(sorted, POINTS);
    const d = points
      .map(({ ms, share }, i) => `${i === 0 ? "M" : "L"}${px(x(ms))} ${px(y(share))}`)
      .join("");
    return d === "" ? html`` : html`<path class="${style}" d="${d}" />`;
  };
  const ranks = worst
    .slice(0, MOST_LINES)
    .flatMap((rank) => run.ranks.find((profile) => profile.rank === rank) ?? []);
  const ticks = roundValues(topMs, 10);
  const shares = [0, 0.25, 0.5, 0.75, 1];
  const grid = shares.map((share) => `M${LEFT} ${px(y(share))}H${RIGHT}`).join("");
  const half = (sorted: readonly number[]): string => msWords(quantile(sorted, 0.5));
  const medians =
    base.length > 0
      ? `Half of the kernels start within ${half(all)} of their launch; in the baseline within ${half(base)}.`
      : `Half of the kernels start within ${half(all)} of their launch.`;
  return html`<p>${medians} ${base.length > 0 && distanceWords(distanceMs)}</p>
    <p class="note">
      A CPU that runs ahead of its GPU gives long latencies; one that is blocked issues late, the
      kernel starts at once, and the line moves to the left.
      ${base.length > 0 && "The area between two lines is their distance."}
    </p>
    <ul class="legend">
      ${key("cdf", "this run, all ranks")} ${ranks.length > 1 && key("cdf one", "a rank of it")}
      ${base.length > 0 && key("cdf base", "baseline")}
    </ul>
    <div class="scroll" tabindex="0" role="group" aria-label="Plot, scrolls sideways">
      <svg class="trace-plot" role="img" aria-label="${medians}" viewBox="0 0 ${WIDTH} ${HEIGHT}">
        <path class="grid" d="${grid}" />
        <path class="axis" d="M${LEFT} ${BOTTOM}H${RIGHT}" />
        ${shares.map((share) => html`<text class="soft left" x="${LEFT - 6}" y="${px(y(share) + 4)}">${100 * share} %</text> `)}
        ${ticks.map((ms) => html`<text class="soft middle" x="${px(x(ms))}" y="${BOTTOM + 18}">${Number(ms.toPrecision(6))}</text> `)}
        <text class="soft middle" x="${(LEFT + RIGHT) / 2}" y="${HEIGHT - 10}">
          milliseconds from launch to start; up: share of kernels that have started
        </text>
        ${ranks.length > 1 && ranks.map(({ latencyMs }) => line(latencyMs, "cdf one"))}
        ${base.length > 0 && line(base, "cdf base")} ${line(all, "cdf")}
      </svg>
    </div>`;
}

function distanceWords(distanceMs: ReadonlyMap<Rank, number>): string {
  const most = largest([...distanceMs.values()], 0);
  const rank = [...distanceMs].find(([, ms]) => ms === most)?.[0];
  if (rank === undefined || most <= 0) return "";
  return `Rank ${rank}’s have moved most, by ${msWords(most)} (Wasserstein distance).`;
}

/** Ascending in; at most so many points, the last one always among them. */
export function cdfPoints(sorted: readonly number[], most: number): CdfPoint[] {
  const { length } = sorted;
  const count = Math.min(length, most);
  return Array.from({ length: count }, (_, k) => {
    const row = Math.round(((k + 1) * length) / count) - 1;
    return { ms: sorted[row]!, share: (row + 1) / length };
  });
}

function pooled(ranks: readonly RankProfile[]): number[] {
  return [...Float64Array.from(ranks.flatMap(({ latencyMs }) => latencyMs)).sort()];
}

function quantile(sorted: readonly number[], q: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))]!;
}

function key(style: string, words: string): Markup {
  return html`<li>
    <svg class="trace-plot trace-key" width="18" height="12" viewBox="0 0 18 12">
      <path class="${style}" d="M0 6h18" />
    </svg>
    ${words}
  </li> `;
}
