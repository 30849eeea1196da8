/** Deviations that did not last. They are no accusation, but the first place to look when training stuttered. */
import { groupBy } from "../../base/group-by.ts";
import type { Fleet } from "../../model/fleet.ts";
import type { Jitter } from "../../model/machine-report.ts";
import { detailed, type Evidence } from "./evidence.ts";
import { deviationWords } from "./words.ts";

interface Stretch {
  readonly machine: number;
  readonly fromS: number;
  toS: number;
  strongest: Evidence;
}

/** One for each machine and time; those that are shown are the strongest, the strongest first. */
export function jittersOf(
  fleet: Fleet,
  rest: readonly Evidence[],
  most: number,
): { shown: Jitter[]; leftOut: number } {
  const stretches: Stretch[] = [];
  for (const [machine, all] of groupBy(rest, (one) => one.machine)) {
    let open: Stretch | null = null;
    for (const one of [...all].sort((a, b) => a.fromS - b.fromS)) {
      if (open !== null && one.fromS <= open.toS) {
        open.toS = Math.max(open.toS, one.toS);
        if (one.strength > open.strongest.strength) open.strongest = one;
        continue;
      }
      open = { machine, fromS: one.fromS, toS: one.toS, strongest: one };
      stretches.push(open);
    }
  }
  stretches.sort((a, b) => b.strongest.strength - a.strongest.strength);
  const shown = stretches.slice(0, most).map(({ machine, fromS, toS, strongest }) => {
    const { deviation } = detailed(strongest);
    return {
      machine: fleet.machines[machine]!,
      metric: deviation.metric,
      fromS,
      toS,
      why: deviationWords(deviation),
    };
  });
  return { shown, leftOut: stretches.length - shown.length };
}
