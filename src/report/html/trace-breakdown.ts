/** Where a step's time goes, a bar a rank: as long as the step, with the baseline's below it. */
import { largest } from "../../base/numbers.ts";
import { rankWords } from "../../base/text.ts";
import type { Rank } from "../../model/ids.ts";
import { GPU_ACTIVITIES, type GpuActivity } from "../../model/trace-picture.ts";
import type { RankProfile, RunProfile } from "../../model/trace-profile.ts";
import { html, type Markup } from "./escape.ts";
import { px } from "./iterations-points.ts";
import { steps as roundValues } from "./iterations-scale.ts";
import { GPU_WORDS, gpuLegend, msWords, shareWords } from "./trace-words.ts";

const LEFT = 72;
const RIGHT = 880;
const WIDTH = 960;
const TOP = 22;
const BAR = 20;
const BASE_BAR = 7;
const ROW = 36;
const MOST_BARS = 16;
/** Light in both colour schemes, so their figures are dark in both. */
const ON_LIGHT: ReadonlySet<GpuActivity> = new Set(["minority", "copy", "communication"]);
/** Narrower parts have no room for their figure. */
const LEAST_LABEL = 44;

interface Bar {
  readonly stepMs: number;
  /** Milliseconds of a step, means over the steps. */
  readonly ms: Readonly<Record<GpuActivity, number>>;
}

/** null for profiles that were stored without a breakdown. */
export function barOf(profiles: readonly RankProfile[]): Bar | null {
  const known = profiles.filter(({ breakdown }) => breakdown !== undefined);
  const steps = known.flatMap(({ stepMs, breakdown }) =>
    stepMs.map((ms, i) => ({ ms, share: (one: GpuActivity) => breakdown![one][i] ?? 0 })),
  );
  if (steps.length === 0) return null;
  const mean = (of: (step: (typeof steps)[number]) => number): number =>
    steps.reduce((sum, step) => sum + of(step), 0) / steps.length;
  return {
    stepMs: mean(({ ms }) => ms),
    ms: Object.fromEntries(
      GPU_ACTIVITIES.map((one) => [one, mean(({ ms, share }) => ms * share(one))]),
    ) as Record<GpuActivity, number>,
  };
}

/** Nothing where no step was measured. */
export function renderBreakdown(
  run: RunProfile,
  healthy: readonly RunProfile[],
  worst: readonly Rank[],
): Markup {
  const rows = worst.slice(0, MOST_BARS).flatMap((rank) => {
    const own = barOf(run.ranks.filter((profile) => profile.rank === rank));
    const base = barOf(
      healthy.flatMap(({ ranks }) => ranks.filter((profile) => profile.rank === rank)),
    );
    return own ? [{ rank, own, base }] : [];
  });
  if (rows.length === 0) return html``;
  const topMs = largest(
    rows.flatMap(({ own, base }) => [own.stepMs, base?.stepMs ?? 0]),
    0,
  );
  if (!(topMs > 0)) return html``;
  const hasBase = rows.some(({ base }) => base !== null);
  const bottom = TOP + rows.length * ROW;
  const x = (ms: number): number => LEFT + ((RIGHT - LEFT) * ms) / topMs;
  const ticks = roundValues(topMs, 10);
  const grid = ticks.map((ms) => `M${px(x(ms))} ${TOP - 6}V${bottom}`).join("");
  const rest = worst.slice(MOST_BARS);
  return html`<p class="note">
      A bar is as long as the rank’s mean step, in milliseconds; its parts add up to it.
      ${hasBase && "The thin bar below is the same rank in the baseline."} Small kernels and copies
      count while no matrix product runs, communication while nothing else does.
    </p>
    ${gpuLegend()}
    <div class="scroll" tabindex="0" role="group" aria-label="Bars, scroll sideways">
      <svg
        class="trace-plot"
        role="img"
        aria-label="${rows.map(({ rank, own }) => `rank ${rank}: ${barWords(own)}`).join("; ")}"
        viewBox="0 0 ${WIDTH} ${bottom + 6}"
      >
        <path class="grid" d="${grid}" />
        ${ticks.map((ms) => html`<text class="soft middle" x="${px(x(ms))}" y="12">${Number(ms.toPrecision(6))}</text> `)}
        <text class="soft" x="4" y="12">ms</text>
        ${rows.map(
          ({ rank, own, base }, i) =>
            html`<g>
              <text class="name" x="4" y="${TOP + i * ROW + 14}">rank ${rank}</text>
              ${drawBar(own, TOP + i * ROW, BAR, x, true)}
              <text class="soft" x="${px(x(own.stepMs) + 6)}" y="${TOP + i * ROW + 14}"
                >${msWords(own.stepMs)}</text
              >
              ${base && html`<g class="thin">${drawBar(base, TOP + i * ROW + BAR + 1, BASE_BAR, x, false)}</g>`}
            </g> `,
        )}
      </svg>
    </div>
    ${rest.length > 0 && html`<p class="note">Not drawn: ${rankWords(rest)}.</p>`}`;
}

function barWords({ stepMs, ms }: Bar): string {
  const parts = GPU_ACTIVITIES.map((one) => `${GPU_WORDS[one]} ${shareWords(ms[one] / stepMs)}`);
  return `${msWords(stepMs)} per step, ${parts.join(", ")}`;
}

function drawBar(
  bar: Bar,
  y: number,
  height: number,
  x: (ms: number) => number,
  hasLabels: boolean,
): Markup[] {
  let before = 0;
  return GPU_ACTIVITIES.map((activity) => {
    const ms = bar.ms[activity];
    const [left, width] = [x(before), x(before + ms) - x(before)];
    before += ms;
    if (!(width >= 0.05)) return html``;
    const words = `${GPU_WORDS[activity]}: ${msWords(ms)}, ${shareWords(ms / bar.stepMs)}`;
    return html`<rect
        class="${activity}"
        x="${px(left)}"
        y="${y}"
        width="${px(width)}"
        height="${height}"
        ><title>${words}</title></rect
      >
      ${hasLabels && width >= LEAST_LABEL && activity !== "idle" && html`<text class="inside${ON_LIGHT.has(activity) && " on-light"}" x="${px(left + width / 2)}" y="${y + height - 6}">${shareWords(ms / bar.stepMs)}</text> `}`;
  });
}
