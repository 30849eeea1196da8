/** Ranks that show symptoms and are not to blame: shown to wait, with no fault of their own that anything tells of. */
import { factsOf } from "../model/facts.ts";
import type { Rank } from "../model/ids.ts";
import type { Suspect } from "../model/verdict.ts";
import { type Case, isStop } from "./case.ts";
import type { Hypothesis } from "./hypotheses.ts";
import { probabilityOf } from "./reliability.ts";

/** Below this, an accusation is no reason to doubt that a rank only waits. */
const DOUBT = 0.2;
/** From this on, a finding shows that the ranks it clears wait; below, they are those that complain. An accusation of having stopped the job needs as much. */
const SHOWS = 0.5;

export function victimsOf(
  { job, kind, findings }: Case,
  suspects: readonly Suspect[],
  all: readonly Hypothesis[],
): Rank[] {
  const blamed = new Set(suspects.flatMap(({ ranks }) => ranks));
  // Of a crash whose rank is unknown, one of those that complain is no victim.
  const isKnown = kind !== "crash" || blamed.size > 0;
  const cleared = findings.flatMap(({ clears, weight }) =>
    isKnown || weight >= SHOWS ? clears : [],
  );
  const faulty = new Set([
    ...blamed,
    ...all.filter(hasOwnFault).flatMap(({ ranks }) => ranks),
    ...factsOf(findings, "slow-before-stop").flatMap(({ ranks }) => ranks),
  ]);
  const machines = new Set(suspects.flatMap((one) => (one.ranks.length === 0 ? one.machine : [])));
  return [...new Set(cleared)]
    .filter((rank) => !faulty.has(rank) && !machines.has(job.ranks.get(rank)?.machine ?? null))
    .sort((a, b) => a - b);
}

/**
 * Whether one rank is accused for itself. That it waits where the job stopped does not clear it of having been slow, or
 * of a GPU unlike its peers'; it does clear it of having stopped the job.
 */
function hasOwnFault(one: Hypothesis): boolean {
  if ((one.type !== "rank" && one.type !== "gpu") || one.ranks.length !== 1) return false;
  return isStop(one) ? one.weight >= SHOWS : probabilityOf(one.undamped) >= DOUBT;
}
