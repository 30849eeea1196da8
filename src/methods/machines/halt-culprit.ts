/**
 * A job that halted has a culprit, so less is asked of one: the machine that is unlike its peers while everybody waits,
 * if it alone is. In a job that runs nobody would be accused of so little.
 */
import type { Phase } from "../../model/machine-report.ts";
import { evidenceOf, kindOf, type Evidence } from "./evidence.ts";
import type { Judged } from "./judge.ts";
import { isFrozen } from "./telemetry.ts";
import { deviationBetween, type View } from "./views.ts";

/** Of the limit that is asked for in a job that runs, and of what matters in practice. */
const LEAST_SHARE = 0.4;
const LEAST_MATERIAL = 0.7;
/** The next machine may be this far at most. */
const NEXT_SHARE = 0.6;
const SETTLE_S = 20;
/** Checkpoints end before that. */
const LEAST_S = 150;
const BEFORE_S = 60;
/** Long evidence, but weak. */
const SCORE = 0.55;

interface Candidate {
  readonly machine: number;
  readonly view: View;
  readonly share: number;
}

export function haltCulprit(
  halt: Phase,
  views: readonly View[],
  isTelemetry: (machine: number, metric: string) => boolean,
): Judged | null {
  const fromS = halt.fromS + SETTLE_S;
  if (halt.toS - fromS < LEAST_S) return null;
  const best = new Map<number, Candidate>();
  for (const view of views) {
    const kind = kindOf(view.metric.id, view.metric.group);
    if (view.side === "high" && (kind === "cpu" || kind === "memory" || kind === "tcp")) continue;
    const sign = view.side === "low" ? -1 : 1;
    const { blocks, limit, role } = view.peers;
    const middle = Math.min(
      blocks.count - 1,
      Math.floor(((fromS + halt.toS) / 2 - blocks.startS) / blocks.blockS),
    );
    for (let m = 0; m < role.length; m++) {
      const off = sign * deviationBetween(view, m, fromS, halt.toS);
      if (!(off >= LEAST_MATERIAL) || isTelemetry(m, view.metric.id)) continue;
      const share = (off * view.scale.material) / limit[role[m]! * blocks.count + middle]!;
      if (share < LEAST_SHARE || share <= (best.get(m)?.share ?? 0)) continue;
      // It must not have been so before.
      if (sign * deviationBetween(view, m, halt.fromS - BEFORE_S, halt.fromS - SETTLE_S) > off / 2)
        continue;
      best.set(m, { machine: m, view, share });
    }
  }
  const [first, second] = [...best.values()].sort((a, b) => b.share - a.share);
  if (!first || (second && second.share > NEXT_SHARE * first.share)) return null;
  const judged = judgedOf(first, halt);
  return judged.evidence.some((one) => isFrozen(one)) ? null : judged;
}

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
