/** Iterations, times and ratios in words. Whatever is not a number becomes "–", never NaN. */
import { thousands } from "../../base/text.ts";
import type { ChangePoint, Episode } from "../../model/series.ts";

/** 1405.7 → "1.41 s". */
export function durationWords(ms: number): string {
  if (!Number.isFinite(ms)) return "–";
  const { name, ms: unit } = unitFor(Math.abs(ms));
  return `${digits(ms / unit)} ${name}`;
}

const UNITS = [
  { name: "ms", ms: 1, below: 1_000 },
  { name: "s", ms: 1_000, below: 120_000 },
  { name: "min", ms: 60_000, below: 7_200_000 },
  { name: "h", ms: 3_600_000, below: Infinity },
] as const;

/** The unit in which a time of this size reads well. */
export function unitFor(ms: number): { readonly name: string; readonly ms: number } {
  return UNITS.find(({ below }) => ms < below) ?? UNITS[3];
}

/** Three digits that matter. */
function digits(value: number): string {
  return Math.abs(value) >= 100
    ? thousands(Math.round(value))
    : String(Number(value.toPrecision(3)));
}

export function hoursWords(ms: number): string {
  if (!Number.isFinite(ms)) return "–";
  const hours = ms / 3_600_000;
  if (hours <= 0) return "0 h";
  return hours < 0.01 ? "less than 0.01 h" : `${digits(hours)} h`;
}

/** 1.9 → "×1.9"; 17.3 → "×17". */
export function ratioWords(ratio: number): string {
  if (!Number.isFinite(ratio)) return "×–";
  return `×${ratio >= 10 ? thousands(Math.round(ratio)) : String(Number(ratio.toFixed(2)))}`;
}

export function iterationWords(iteration: number): string {
  return Number.isFinite(iteration) ? thousands(iteration) : "–";
}

/** "1 iteration", "1,200 iterations". */
export function iterationCount(iterations: number): string {
  return `${iterationWords(iterations)} ${iterations === 1 ? "iteration" : "iterations"}`;
}

/** "iterations 16–85", "iteration 7". */
function spanWords({ from, to }: Pick<Episode, "from" | "to">): string {
  if (from === to) return `iteration ${iterationWords(from)}`;
  return `iterations ${iterationWords(from)}–${iterationWords(to)}`;
}

/** "×1.9 slower, iterations 16–85"; what the band says. */
export function episodeWords(episode: Episode): string {
  const { type, ratio, period } = episode;
  const size = ratioWords(ratio);
  if (type === "degradation") return `${size} slower, ${spanWords(episode)}`;
  if (type === "spike") return `spike ${size}, ${spanWords(episode)}`;
  return `fluctuates ${size}${period === null ? "" : ` ${periodWords(period)}`}, ${spanWords(episode)}`;
}

export function periodWords(period: number): string {
  return period > 0 && period < 1e12
    ? `every ${Number(period.toPrecision(3))} iterations`
    : "now and then";
}

export function changeWords(change: ChangePoint): string {
  const { iteration, detectedAt, beforeMs, afterMs, ratio, direction, ramp } = change;
  const word = direction === "slower" ? "Slower" : "Faster";
  const slowly = ramp ? ` on, slowly until ${iterationWords(ramp.until)}` : "";
  return `${word} from iteration ${iterationWords(iteration)}${slowly}: ${durationWords(beforeMs)} → ${durationWords(afterMs)} (${ratioWords(ratio)}), known at ${iterationWords(detectedAt)}`;
}
