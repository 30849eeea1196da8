/**
 * Iteration times for a tired person: a line of bars to see the shape, the changes, what was wasted. Series
 * that say the same (the ranks of a synchronous job) are shown once.
 */
import { count, cutText, harmless, ranges, thousands } from "../base/text.ts";
import type { ChangePoint, Ramp, TrackedSeries } from "../model/series.ts";
import { grouped, sameChanges } from "./same-changes.ts";
import type { Colours } from "./terminal.ts";

const MAX_SHOWN = 12;
const MAX_CHANGES = 24;
const MAX_SPIKES = 3;
const HOUR_MS = 3_600_000;
const BARS = "▁▂▃▄▅▆▇█";

export function renderIterationsTerminal(
  tracked: readonly TrackedSeries[],
  missing: readonly string[],
  colours: Colours,
  width: number,
): string {
  const lines: string[] = [];
  const groups = grouped(tracked, areAlike);
  for (const group of groups.slice(0, MAX_SHOWN))
    lines.push(...seriesLines(group, colours, width), "");
  if (groups.length > MAX_SHOWN)
    lines.push(
      colours.dim(`… ${thousands(groups.length - MAX_SHOWN)} more series with --json`),
      "",
    );
  for (const text of missing.slice(0, 4))
    lines.push(colours.dim(cutText(`missing or odd: ${harmless(text)}`, width)));
  return lines.join("\n").trimEnd();
}

/** On a screen without a picture the times must be alike, too. */
function areAlike(a: TrackedSeries, b: TrackedSeries): boolean {
  return Math.abs(Math.log(a.medianMs / b.medianMs)) < 0.05 && sameChanges(a, b);
}

function seriesLines(group: readonly TrackedSeries[], colours: Colours, width: number): string[] {
  const [one] = group as [TrackedSeries];
  const { bold, dim } = colours;
  const { series, iterations, medianMs, variation, changePoints, episodes, restarts } = one;
  const inUnit = series.isRelative ? plainText : timeText;
  const stood = one.pauses.flatMap(({ why, iteration }) =>
    why === "standstill" ? [iteration] : [],
  );
  const facts = [
    count(Math.round(iterations), "iteration"),
    `median ${inUnit(medianMs)}`,
    `varying by ${(100 * variation).toFixed(1)} %`,
    ...(one.periods.length > 0 ? [`${thousands(one.periods[0]!)} calls each`] : []),
    ...(restarts.length > 0
      ? [`${count(restarts.length, "restart")} (${ranges(restarts, 4)})`]
      : []),
    ...(stood.length > 0 ? [`${count(stood.length, "standstill")} (${ranges(stood, 4)})`] : []),
    ...(one.standstillMs > 0 && !series.isRelative
      ? [`${wastedText(one.standstillMs)} standing still`]
      : []),
  ];
  const lines = [
    `${bold(cutText(harmless(series.source), width - 4))}${alsoText(group, dim)}`,
    `  ${facts.join(" · ")}`,
    `  ${bars(one, Math.min(width - 2, 96), colours)}`,
  ];
  for (const change of changePoints.slice(0, MAX_CHANGES))
    lines.push(changeLine(change, inUnit, colours));
  if (changePoints.length > MAX_CHANGES)
    lines.push(dim(`  … ${count(changePoints.length - MAX_CHANGES, "more change")}`));
  if (changePoints.length === 0)
    lines.push(isTooShort(one) ? "  too few iterations to detect a change" : "  no lasting change");
  if (series.isRelative)
    lines.push(
      dim(
        series.basis === "throughput"
          ? "  times are relative: the log has throughput but no times to scale them by"
          : "  times are relative: the table says that they are normalised",
      ),
    );
  for (const episode of episodes.filter(({ type }) => type === "fluctuation").slice(0, 3)) {
    const beat = episode.period === null ? "" : `, about every ${episode.period} iterations`;
    lines.push(
      `  fluctuation ×${episode.ratio.toFixed(2)} in ${thousands(Math.round(episode.iterations))} of the iterations ${episode.from}–${episode.to}${beat}`,
    );
  }
  lines.push(...spikeLine(one), ...wastedLine(one, dim));
  return lines;
}

/** Level and noise are unknown before, and a change after them needs some points. */
function isTooShort({ levelMs }: TrackedSeries): boolean {
  let counted = 0;
  for (const level of levelMs) if (!Number.isNaN(level)) counted++;
  return counted < 12;
}

function alsoText(group: readonly TrackedSeries[], dim: (text: string) => string): string {
  if (group.length === 1) return "";
  const ranks = group.slice(1).flatMap(({ series }) => series.rank ?? []);
  const isOne = group.length === 2;
  const who =
    ranks.length === group.length - 1
      ? `rank${isOne ? "" : "s"} ${ranges(ranks, 8)}`
      : `${thousands(group.length - 1)} other series`;
  return dim(`  (${who} ${isOne ? "says" : "say"} the same)`);
}

function changeLine(
  change: ChangePoint,
  inUnit: (value: number) => string,
  { red, green, dim }: Colours,
): string {
  const { iteration, detectedAt, beforeMs, afterMs, ratio, direction, ramp, atMs } = change;
  const word = `${ramp ? "slowly " : ""}${direction} ×${ratio.toFixed(2)}`;
  const painted = direction === "slower" ? red(word) : green(word);
  const since = atMs === null ? "" : `since ${new Date(atMs).toISOString()}, `;
  const where = ramp
    ? `from iteration ${iteration} to ${ramp.until}, ${perIteration(ramp, inUnit)}`
    : `at iteration ${iteration}`;
  return `  ${painted} ${where}: ${inUnit(beforeMs)} → ${inUnit(afterMs)} ${dim(`(${since}known at ${detectedAt})`)}`;
}

/** "0.35 ms more each iteration" */
function perIteration({ msPerIteration }: Ramp, inUnit: (value: number) => string): string {
  const size = Number(Math.abs(msPerIteration).toPrecision(2));
  return `${size}${inUnit === timeText ? " ms" : ""} ${msPerIteration > 0 ? "more" : "less"} each iteration`;
}

function spikeLine({ episodes }: TrackedSeries): string[] {
  const spikes = episodes.filter(({ type }) => type === "spike");
  if (spikes.length === 0) return [];
  const worst = spikes.toSorted((a, b) => b.wastedMs - a.wastedMs).slice(0, MAX_SPIKES);
  const list = worst.map(({ from, ratio }) => `iteration ${from} ×${ratio.toFixed(1)}`).join(", ");
  const more = spikes.length > worst.length ? ", …" : "";
  return [`  ${count(spikes.length, "spike")}: ${list}${more}`];
}

function wastedLine(
  { series, wastedMs, episodes }: TrackedSeries,
  dim: (text: string) => string,
): string[] {
  if (wastedMs <= 0 || series.isRelative) return [];
  const share = (type: string): number =>
    episodes.reduce((sum, episode) => sum + (episode.type === type ? episode.wastedMs : 0), 0);
  const parts = ["degradation", "fluctuation", "spike"]
    .filter((type) => share(type) > 0)
    .map((type) => `${type} ${wastedText(share(type))}`);
  return [`  wasted ${wastedText(wastedMs)} ${dim(`(${parts.join(", ")})`)}`];
}

function wastedText(value: number): string {
  if (value >= HOUR_MS / 10) return `${(value / HOUR_MS).toFixed(2)} h`;
  return value >= 1000 ? `${(value / 1000).toFixed(1)} s` : timeText(value);
}

/** One bar a stretch of points: the median of those that count, between the fastest and the slowest stretch. */
function bars({ series, levelMs }: TrackedSeries, width: number, { dim }: Colours): string {
  const { durationMs } = series;
  const cells = Math.max(1, Math.min(width, durationMs.length));
  const heights: number[] = [];
  for (let cell = 0; cell < cells; cell++) {
    const from = Math.floor((cell * durationMs.length) / cells);
    const to = Math.floor(((cell + 1) * durationMs.length) / cells);
    const part: number[] = [];
    for (let i = from; i < to; i++) if (!Number.isNaN(levelMs[i]!)) part.push(durationMs[i]!);
    part.sort((a, b) => a - b);
    heights.push(part.length > 0 ? part[part.length >> 1]! : NaN);
  }
  const known = heights.filter((height) => !Number.isNaN(height));
  const least = known.reduce((a, b) => Math.min(a, b), Infinity);
  // At least a tenth from top to bottom: noise must not look like mountains.
  const most = Math.max(
    known.reduce((a, b) => Math.max(a, b), 0),
    least * 1.1,
  );
  const drawn = heights.map((height) => {
    if (Number.isNaN(height)) return " ";
    const level = Math.round(((height - least) / (most - least)) * (BARS.length - 1));
    return BARS[level] ?? BARS[0]!;
  });
  return dim(drawn.join(""));
}

function plainText(value: number): string {
  return Number.isFinite(value) ? String(Number(value.toPrecision(4))) : "?";
}

function timeText(value: number): string {
  if (!Number.isFinite(value)) return "?";
  if (value >= 1e10) return `${(value / 3.6e6).toExponential(1)} h`;
  if (value >= 120_000) return `${(value / 60_000).toFixed(1)} min`;
  if (value >= 10_000) return `${(value / 1000).toFixed(1)} s`;
  return `${value.toFixed(value < 100 ? 1 : 0)} ms`;
}
