/**
 * A job that halted has a culprit, so less is asked of one: the machine that is unlike its peers while everybody waits,
 * if it alone is. Over the whole halt noise averages out; in a job that runs nobody would be accused of so little.
 */
import { quantilePlace, select } from "../../maths/quickselect.ts";
import { TO_DEVIATION } from "../../maths/robust.ts";
import { studentQuantile } from "../../maths/student.ts";
import type { Phase } from "../../model/machine-report.ts";
import { detailed, differs, evidenceOf, kindOf, type Evidence } from "./evidence.ts";
import type { Judged } from "./judge.ts";
import { isFrozen } from "./telemetry.ts";
import { deviationBetween, type View } from "./views.ts";

/** Of what matters in practice. */
const LEAST_MATERIAL = 0.7;
/** While everybody waits nothing is sent, so that nothing is congested: a few pauses are more than there should be. */
const LEAST_CONGESTION = 0.5;
/** Chance that a healthy machine of a halted job is farther out; tails as in limits.ts. */
const RISK = 0.02;
const DEGREES = 8;
/** The next machine may be this far at most. */
const NEXT_SHARE = 0.65;
const SETTLE_S = 20;
/** Checkpoints end before that; a halt that ended with the job was none. */
const LEAST_S = 150;
const LEAST_ENDED_S = 60;
const BEFORE_S = 60;
/** Where machines do not differ at all, this much of what matters is taken for noise. */
const LEAST_NOISE = 0.05;
/** Long evidence, but weak. */
const SCORE = 0.55;

interface Candidate {
  readonly machine: number;
  readonly view: View;
  readonly share: number;
}

export function haltCulprit(
  halt: Phase,
  isEnded: boolean,
  views: readonly View[],
  isTelemetry: (machine: number, metric: string) => boolean,
): Judged | null {
  const fromS = halt.fromS + SETTLE_S;
  if (halt.toS - halt.fromS < (isEnded ? LEAST_ENDED_S : LEAST_S)) return null;
  const best = new Map<number, Candidate>();
  for (const view of views) {
    const kind = kindOf(view.metric.id, view.metric.group);
    // Busy or hot machines stop nobody.
    if (view.side === "high" && ["cpu", "memory", "tcp", "thermal"].includes(kind)) continue;
    const sign = view.side === "low" ? -1 : 1;
    const off = Float64Array.from(
      view.peers.role,
      (_, m) => sign * deviationBetween(view, m, fromS, halt.toS),
    );
    off.forEach((_, m) => {
      if (isTelemetry(m, view.metric.id)) off[m] = NaN;
    });
    const limit = limitOf(off, views.length);
    const least = kind === "congestion" ? LEAST_CONGESTION : LEAST_MATERIAL;
    off.forEach((one, m) => {
      const share = one / limit;
      if (!(one >= least && share >= 1)) return;
      if (share <= (best.get(m)?.share ?? 0)) return;
      // It must not have been so before.
      const before = sign * deviationBetween(view, m, halt.fromS - BEFORE_S, halt.fromS - SETTLE_S);
      const candidate = { machine: m, view, share };
      const [evidence] = judgedOf(candidate, halt).evidence;
      if (!(before > one / 2) && !isFrozen(evidence!) && differs(detailed(evidence!)))
        best.set(m, candidate);
    });
  }
  const [first, second] = [...best.values()].sort((a, b) => b.share - a.share);
  if (!first || (second && second.share > NEXT_SHARE * first.share)) return null;
  return judgedOf(first, halt);
}

/**
 * How far out the farthest of so many may be by chance, in units of what matters. One that is twice as far as the next
 * needs no more than so many deviations.
 */
export function limitOf(off: Float64Array, views: number): number {
  const known = off.filter((one) => one === one);
  if (known.length === 0) return Infinity;
  const sorted = known.toSorted();
  const distances = known.map(Math.abs);
  const middle = select(distances, 0, distances.length, quantilePlace(distances.length, 0.5));
  const noise = Math.max(TO_DEVIATION * middle, LEAST_NOISE);
  const [second = 0, top = 0] = sorted.subarray(-2);
  if (top >= ALONE_DEVIATIONS * noise && top >= ALONE_FACTOR * second) return top;
  return noise * studentQuantile(RISK / (views * Math.max(3, off.length)), DEGREES);
}

const ALONE_DEVIATIONS = 6;
const ALONE_FACTOR = 2;

function judgedOf({ machine, view, share }: Candidate, { fromS, toS }: Phase): Judged {
  const evidence: Evidence = evidenceOf({
    view,
    machine,
    fromS,
    toS,
    isOpen: true,
    strength: share,
    sigmas: NaN,
  });
  return {
    machine,
    fromS,
    untilS: null,
    evidence: [evidence],
    kinds: [evidence.kind],
    score: SCORE,
  };
}
