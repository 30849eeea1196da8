/**
 * A job that slowed down, and goes on slowly, has a culprit as one that halted has (halt-culprit.ts): the machine that has
 * been unlike its peers since then, if it alone is. Over the whole slowdown noise averages out, so that less is asked of
 * it than of a machine in a job that runs as before.
 */
import { median } from "../../maths/robust.ts";
import { detailed, evidenceOf, kindOf, unlikeShare, type Evidence } from "./evidence.ts";
import { limitOf } from "./halt-culprit.ts";
import type { Judged } from "./judge.ts";
import { isIn, type Activity } from "./phases.ts";
import { isFrozen } from "./telemetry.ts";
import { deviationBetween, type View } from "./views.ts";

/** Of the pace. */
const LEAST_LOST = 0.08;
/** So many times what the pace strays by. */
const CLEAR = 4;
const BEFORE_S = 600;
const LEAST_BEFORE_S = 180;
const EDGE_S = 30;
const LEAST_SAMPLES = 5;
/** Of what matters in practice. */
const LEAST_MATERIAL = 0.6;
/** Soon after the onset it must be at least this much of what it is over the whole slowdown. */
const SOON_S = 180;
const SOON_SHARE = 0.6;
/** The next machine may be this far at most. */
const NEXT_SHARE = 0.6;
/** Of its own samples. */
const LEAST_UNLIKE = 0.6;
/** Long evidence, but weak. */
const SCORE = 0.5;
/** A warm place slows down only who clocks lower, a clock that is off nobody. */
const HARMLESS = ["gpu-temperature", "clock-offset"];

export interface Slowdown {
  readonly fromS: number;
  readonly toS: number;
  readonly isOpen: boolean;
}

/** The clearest step down of the middle machine's pace that lasts for `leastS`. */
export function slowdownOf({ level, grid, phases }: Activity, leastS: number): Slowdown | null {
  if (!level || !grid) return null;
  const { startS, stepS, ticks } = grid;
  const works = Float64Array.from(level, (value, t) =>
    isIn(phases, startS + (t + 0.5) * stepS, "pause", "idle", "warm-up", "halt") ? NaN : value,
  );
  const between = (fromS: number, toS: number): Float64Array =>
    works
      .subarray(
        Math.max(0, Math.round((fromS - startS) / stepS)),
        Math.max(0, Math.min(ticks, Math.round((toS - startS) / stepS))),
      )
      .filter((value) => value === value);
  const edgeS = Math.max(EDGE_S, stepS);
  let best: { atS: number; lost: number; before: number; after: number } | null = null;
  for (let t = 0; t < ticks; t++) {
    const atS = startS + t * stepS;
    const before = between(atS - BEFORE_S, atS - edgeS);
    const after = between(atS + edgeS, atS + Math.max(leastS, SOON_S));
    if (before.length < Math.max(LEAST_SAMPLES, LEAST_BEFORE_S / stepS)) continue;
    if (after.length < Math.max(LEAST_SAMPLES, (leastS - 2 * edgeS) / stepS / 2)) continue;
    const [was, is] = [median(before), median(after)];
    const lost = 1 - is / was;
    const strays = (values: Float64Array, middle: number): number =>
      median(values.map((value) => Math.abs(value - middle))) / was;
    if (lost < LEAST_LOST || lost < CLEAR * Math.max(strays(before, was), strays(after, is)))
      continue;
    if (!best || lost > best.lost) best = { atS, lost, before: was, after: is };
  }
  if (!best) return null;
  // Until it is nearer to what it was before.
  const back = (best.before + best.after) / 2;
  for (let t = Math.round((best.atS + edgeS - startS) / stepS); t < ticks; t++) {
    const toS = startS + t * stepS;
    const next = between(toS, toS + Math.max(60, 3 * stepS));
    if (next.length < 2 || median(next) <= back) continue;
    // An evaluation, not a fault.
    return toS - best.atS < leastS ? null : { fromS: best.atS, toS, isOpen: false };
  }
  return { fromS: best.atS, toS: startS + ticks * stepS, isOpen: true };
}

interface Candidate {
  readonly share: number;
  readonly evidence: Evidence;
}

export function slowCulprit(
  slowdown: Slowdown,
  views: readonly View[],
  isTelemetry: (machine: number, metric: string) => boolean,
): Judged | null {
  const { fromS, toS } = slowdown;
  const best = new Map<number, Candidate>();
  for (const view of views) {
    const { metric, side, peers, grid } = view;
    const kind = kindOf(metric.id, metric.group);
    // More traffic slows nobody down.
    if (kind === "tcp" || kind === "other" || HARMLESS.includes(metric.id)) continue;
    const edgeS = Math.max(EDGE_S, grid.stepS);
    const sign = side === "low" ? -1 : 1;
    const change = (m: number, untilS: number): number =>
      sign *
      (deviationBetween(view, m, fromS + edgeS, untilS) -
        deviationBetween(view, m, fromS - BEFORE_S, fromS - edgeS));
    const off = Float64Array.from(peers.role, (_, m) =>
      isTelemetry(m, metric.id) ? NaN : change(m, toS),
    );
    const limit = limitOf(off, views.length);
    off.forEach((one, m) => {
      const share = one / limit;
      if (!(one >= LEAST_MATERIAL && share >= 1) || share <= (best.get(m)?.share ?? 0)) return;
      if (!(change(m, Math.min(toS, fromS + edgeS + SOON_S)) >= SOON_SHARE * one)) return;
      // Far to the other side before: a metric that swings with the part of an iteration that it meets.
      if (sign * deviationBetween(view, m, fromS - BEFORE_S, fromS - edgeS) < -1) return;
      // It begins with the slowdown, not by chance in the minutes before it.
      const just = sign * deviationBetween(view, m, fromS - edgeS - SOON_S, fromS - edgeS);
      if (just - sign * deviationBetween(view, m, fromS - BEFORE_S, fromS - edgeS) > one / 2)
        return;
      const evidence = evidenceOf({
        view,
        machine: m,
        fromS,
        toS,
        isOpen: slowdown.isOpen,
        strength: share,
        sigmas: NaN,
      });
      // Tenants come when they like; one that holds the job up shows in full (judge.ts).
      if (evidence.isBusier) return;
      if (isFrozen(evidence) || unlikeShare(evidence) < LEAST_UNLIKE) return;
      best.set(m, { share, evidence: { ...evidence, isHeldUp: true } });
    });
  }
  const [first, second] = [...best.values()].sort((a, b) => b.share - a.share);
  if (!first || (second && second.share > NEXT_SHARE * first.share)) return null;
  const evidence = { ...detailed(first.evidence), fromS };
  return {
    machine: evidence.machine,
    fromS,
    untilS: slowdown.isOpen ? null : toS,
    evidence: [evidence],
    kinds: [evidence.kind],
    score: SCORE,
  };
}

/** Whether somebody has been accused of what was so in that time. */
export function isExplained(slowdown: Slowdown, judged: readonly Judged[]): boolean {
  return judged.some(
    ({ fromS, untilS }) => fromS < slowdown.toS && (untilS ?? Infinity) > slowdown.fromS,
  );
}
