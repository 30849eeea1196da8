/** The chart of iterations as uplot draws it: the line, the healthy level, episodes behind it, where they began. */
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Incident } from "../live/api.ts";
import { dayWords, exactWords, clockWords, type Zone } from "../shell/zone.ts";
import { between, type ChartView, type Span } from "./chart-view.ts";
import type { Points } from "./iteration-points.ts";
import { msWords } from "./measures.ts";
import type { ThemeColors } from "./theme-colors.ts";

export interface PlotOptions {
  readonly width: number;
  readonly height: number;
  readonly isLog: boolean;
  readonly zone: Zone;
  readonly colors: ThemeColors;
  onView(view: ChartView): void;
}

export interface PlotContent {
  readonly points: Points;
  /** What the same iterations took in another run. */
  readonly otherRun: readonly (number | null)[] | null;
  readonly span: Span;
  readonly baselineMs: number | null;
  readonly episodes: readonly Incident[];
}

export interface IterationPlot {
  show(content: PlotContent): void;
  resize(width: number, height: number): void;
  destroy(): void;
}

/** What uplot calls Scale.Distr.Logarithmic: an enum of its declarations, of which nothing is there at run time. */
// oxlint-disable-next-line typescript/no-unsafe-enum-assignment
const LOG: Pick<uPlot.Scale, "distr"> = { distr: 3 };

/** Rooms that the page's own strip above the chart keeps as well. */
export const PLOT_LEFT_PX = 64;
export const PLOT_RIGHT_PX = 14;

export function iterationPlot(host: HTMLElement, options: PlotOptions): IterationPlot {
  const { colors, isLog, zone } = options;
  let content: PlotContent | null = null;
  const tip = document.createElement("div");
  tip.className = "chart-tip small";
  tip.hidden = true;

  const plot = new uPlot(
    {
      width: options.width,
      height: options.height,
      ms: 1,
      tzDate: (ms) => (zone === "utc" ? uPlot.tzDate(new Date(ms), "Etc/UTC") : new Date(ms)),
      legend: { show: false },
      padding: [8, PLOT_RIGHT_PX, 0, 0],
      cursor: {
        y: false,
        drag: { x: true, y: false, setScale: false },
        points: { size: 8, fill: colors.link },
        bind: { dblclick: () => () => (options.onView({ kind: "all" }), null) },
      },
      scales: {
        x: { time: true, auto: false },
        y: {
          auto: true,
          ...(isLog ? LOG : {}),
          range: (_, low, high) => yRange(low, high, content?.baselineMs ?? null, isLog),
        },
      },
      axes: [
        {
          stroke: colors.soft,
          font: "12px system-ui, sans-serif",
          grid: { show: false },
          ticks: { stroke: colors.line, width: 1 },
          space: 84,
          values: (_, splits, __, ___, everyMs) => splits.map((ms) => tickWords(ms, everyMs, zone)),
        },
        {
          stroke: colors.soft,
          font: "12px system-ui, sans-serif",
          size: PLOT_LEFT_PX,
          grid: { stroke: colors.line, width: 1 },
          ticks: { show: false },
          values: (_, splits) => splits.map((ms) => (ms === null ? "" : axisWords(ms))),
        },
      ],
      series: [
        {},
        { stroke: colors.link, width: 1.5, points: { show: false }, spanGaps: true },
        { stroke: colors.soft, width: 1, dash: [4, 3], points: { show: false }, spanGaps: true },
      ],
      hooks: {
        drawClear: [(self) => content && drawEpisodes(self, content, colors)],
        draw: [(self) => content && drawMarks(self, content, colors)],
        setSelect: [
          (self) => {
            const { left, width } = self.select;
            if (width < 4) return;
            options.onView(between(self.posToVal(left, "x"), self.posToVal(left + width, "x")));
            self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          },
        ],
        setCursor: [(self) => content && showTip(self, tip, content.points)],
      },
    },
    [[], [], []],
    host,
  );
  plot.over.append(tip);
  // The sentence below the chart says what it shows.
  plot.ctx.canvas.setAttribute("aria-hidden", "true");

  return {
    show(next) {
      content = next;
      plot.batch(() => {
        const { endMs, durationMs } = next.points;
        plot.setData([endMs, durationMs, [...(next.otherRun ?? endMs.map(() => null))]], false);
        plot.setScale("x", { min: next.span.fromMs, max: next.span.toMs });
      });
    },
    resize: (width, height) => plot.setSize({ width, height }),
    destroy: () => plot.destroy(),
  };
}

/** From nothing on, so that heights compare; a log scale has no nothing. */
function yRange(
  low: number | null,
  high: number | null,
  baselineMs: number | null,
  isLog: boolean,
): [number, number] {
  const top = Math.max(high ?? 0, baselineMs ?? 0) || 1;
  if (!isLog) return [0, top * 1.12];
  const bottom = Math.min(low ?? top, baselineMs ?? Infinity);
  const [from, to] = uPlot.rangeLog(Math.max(1e-3, bottom / 1.2), top * 1.2, 10, false);
  return [from!, to!];
}

function tickWords(ms: number, everyMs: number, zone: Zone): string {
  if (everyMs >= 86_400_000) return dayWords(ms, zone);
  const clock = clockWords(ms, zone);
  return everyMs < 60_000 ? clock : clock.slice(0, 5);
}

function axisWords(ms: number): string {
  if (ms === 0) return "0";
  if (ms < 1000) return `${Number(ms.toPrecision(3))} ms`;
  if (ms < 120_000) return `${Number((ms / 1000).toPrecision(3))} s`;
  return `${Number((ms / 60_000).toPrecision(3))} min`;
}

function drawEpisodes(plot: uPlot, { episodes, span }: PlotContent, colors: ThemeColors): void {
  const { ctx, bbox } = plot;
  ctx.save();
  for (const episode of episodes) {
    const end = episode.resolvedMs ?? Math.max(span.toMs, episode.onsetMs);
    if (end < span.fromMs || episode.onsetMs > span.toMs) continue;
    const from = plot.valToPos(Math.max(episode.onsetMs, span.fromMs), "x", true);
    const to = plot.valToPos(Math.min(end, span.toMs), "x", true);
    ctx.fillStyle = episode.kind === "fail-slow" ? colors["warn-soft"] : colors["bad-soft"];
    ctx.fillRect(from, bbox.top, Math.max(2, to - from), bbox.height);
  }
  ctx.restore();
}

function drawMarks(plot: uPlot, content: PlotContent, colors: ThemeColors): void {
  const { ctx, bbox } = plot;
  const { points, span, baselineMs, episodes } = content;
  const ratio = uPlot.pxRatio;
  ctx.save();
  ctx.font = `${12 * ratio}px system-ui, sans-serif`;
  ctx.textBaseline = "top";
  ctx.textAlign = "left";
  ctx.lineWidth = Math.max(1, Math.round(1.5 * ratio));
  let freeFrom = -Infinity;
  const xOf = (ms: number): number => Math.round(plot.valToPos(ms, "x", true));
  for (const { onsetMs, fromIteration, kind } of episodes) {
    if (onsetMs < span.fromMs || onsetMs > span.toMs) continue;
    const x = xOf(onsetMs);
    ctx.strokeStyle = kind === "fail-slow" ? colors.warn : colors.bad;
    dashed(ctx, [], x, bbox.top, x, bbox.top + bbox.height);
    if (fromIteration === null) continue;
    const text = `from iteration ${fromIteration}`;
    const width = ctx.measureText(text).width;
    const isRight = x + width + 6 * ratio < bbox.left + bbox.width;
    const left = isRight ? x + 5 * ratio : x - width - 5 * ratio;
    if (left < freeFrom || left < bbox.left) continue;
    // Another line would go through the words.
    const isCrossed = episodes.some(
      (one) => xOf(one.onsetMs) > left && xOf(one.onsetMs) < left + width,
    );
    if (isCrossed) continue;
    ctx.fillStyle = colors.text;
    ctx.fillText(text, left, bbox.top + 3 * ratio);
    freeFrom = left + width + 6 * ratio;
  }
  if (baselineMs !== null) {
    const y = Math.round(plot.valToPos(baselineMs, "y", true));
    ctx.strokeStyle = colors.good;
    dashed(ctx, [6 * ratio, 4 * ratio], bbox.left, y, bbox.left + bbox.width, y);
    ctx.fillStyle = colors.good;
    const text = `healthy ${msWords(baselineMs)}`;
    ctx.fillText(text, bbox.left + 6 * ratio, y + 4 * ratio);
  }
  const [endMs, durationMs] = [points.endMs.at(-1), points.durationMs.at(-1)];
  if (
    endMs !== undefined &&
    durationMs !== undefined &&
    endMs <= span.toMs &&
    endMs >= span.fromMs
  ) {
    ctx.fillStyle = colors.link;
    ctx.beginPath();
    ctx.arc(plot.valToPos(endMs, "x", true), plot.valToPos(durationMs, "y", true), 4 * ratio, 0, 7);
    ctx.fill();
  }
  ctx.restore();
}

function dashed(
  ctx: CanvasRenderingContext2D,
  dash: number[],
  x0: number,
  y0: number,
  x1: number,
  y1: number,
): void {
  ctx.setLineDash(dash);
  ctx.beginPath();
  ctx.moveTo(x0, y0);
  ctx.lineTo(x1, y1);
  ctx.stroke();
}

function showTip(plot: uPlot, tip: HTMLElement, points: Points): void {
  const { idx, left = -1 } = plot.cursor;
  const endMs = idx === null || idx === undefined ? undefined : points.endMs[idx];
  tip.hidden = endMs === undefined || left < 0;
  if (endMs === undefined || tip.hidden) return;
  const [local, utc] = exactWords(endMs).split(" · ");
  tip.textContent = `iteration ${points.iteration[idx!]}: ${msWords(points.durationMs[idx!]!)}\n${local}\n${utc}`;
  const isRightHalf = left > plot.over.clientWidth / 2;
  tip.style.left = isRightHalf ? "auto" : `${left + 14}px`;
  tip.style.right = isRightHalf ? `${plot.over.clientWidth - left + 14}px` : "auto";
}
