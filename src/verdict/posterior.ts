/**
 * How likely the first hypothesis is beside the others. What is named by the same method, lies in the same place or
 * follows from it does not compete with it; all else does, and so does that nobody who was named is to blame.
 */
import { isStop } from "./case.ts";
import type { Hypothesis } from "./hypotheses.ts";
import { probabilityOf } from "./reliability.ts";

export interface Rival {
  readonly hypothesis: Hypothesis;
  readonly probability: number;
}

export interface Posterior {
  readonly probability: number;
  /** The likeliest first. */
  readonly rivals: readonly Rival[];
}

/** `lead`: null where nobody is accused; then all compete with that. `others`: who is to blame beside it. */
export function posteriorOf(
  lead: Hypothesis | null,
  all: readonly Hypothesis[],
  others: readonly Hypothesis[] = [],
): Posterior {
  const rivals = all.filter(
    (other) => other !== lead && !others.includes(other) && (!lead || competes(other, lead)),
  );
  const odds = (one: Hypothesis): number => Math.exp(one.odds);
  const own = lead ? odds(lead) : 0;
  const sum = rivals.reduce((total, rival) => total + odds(rival), 1 + own);
  return {
    probability: own / sum,
    rivals: rivals
      .map((hypothesis) => ({ hypothesis, probability: odds(hypothesis) / sum }))
      .sort((a, b) => b.probability - a.probability),
  };
}

const LOUD = 0.5;

/** Whether it would be likely, had nobody cleared it. */
export function isLoud({ hypothesis }: Rival): boolean {
  return probabilityOf(hypothesis.undamped) >= LOUD;
}

function competes(other: Hypothesis, lead: Hypothesis): boolean {
  // A crash makes the others hang, and ranks that then wait look stuck.
  if (lead.kind === "crash" && other.kind === "hang") return false;
  // Who ends a job that stands still has not stopped it.
  if (lead.kind === "hang" && other.cause === "scheduler") return false;
  // What was slow before is another story.
  if (isStop(lead) && other.kind === "fail-slow") return false;
  // A method that names both says that both are to blame.
  if (other.methods.some((method) => lead.methods.includes(method))) return false;
  return other.ranks.length === 0 || !other.ranks.some((rank) => lead.ranks.includes(rank));
}
