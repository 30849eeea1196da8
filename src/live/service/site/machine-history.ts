/** The history of machines as people corrected it: an incident counts for the machine that it really was. */
import type { History, Offender } from "../../../history/history.ts";
import { type Handling, rootOf } from "../../../model/handling.ts";
import type { Judged } from "./how-right.ts";

/**
 * A judgement that names a machine moves the incident there; one that only says "wrong" takes it from those accused.
 * What else is known of a machine (in how many jobs, when last) stays, for it is kept as a sum.
 */
export function correctedOffenders(
  offenders: readonly Offender[],
  judgements: readonly Judged[],
  sinceMs: number,
): readonly Offender[] {
  const found = new Map(offenders.map((one) => [one.machine, one]));
  for (const { isRight, machine: truth, cause, said } of judgements) {
    if (said.openedMs < sinceMs || (isRight && truth === null)) continue;
    for (const machine of new Set(said.machines)) {
      const known = found.get(machine);
      if (!known || machine === truth) continue;
      const incidents = known.incidents - 1;
      if (incidents <= 0) found.delete(machine);
      else found.set(machine, { ...known, incidents, jobs: Math.min(known.jobs, incidents) });
    }
    if (truth === null || said.machines.includes(truth)) continue;
    const known = found.get(truth);
    const causes = cause === null ? [] : [cause];
    found.set(truth, {
      machine: truth,
      incidents: (known?.incidents ?? 0) + 1,
      jobs: known?.jobs ?? 1,
      lastMs: Math.max(known?.lastMs ?? 0, said.openedMs),
      causes: [...new Set([...(known?.causes ?? []), ...causes])],
    });
  }
  return [...found.values()].sort(
    (a, b) => b.incidents - a.incidents || b.lastMs - a.lastMs || (a.machine < b.machine ? -1 : 1),
  );
}

/** Merges that were made last; older ones were of incidents that are hardly asked about any more. */
const MOST_MERGED = 500;

/** Incidents that are the same as others which count: confirmed, of these jobs, opened since. They would count twice. */
export async function countedTwice(
  history: Pick<History, "incidents">,
  handlings: ReadonlyMap<string, Handling>,
  sinceMs: number,
  jobs?: readonly string[],
): Promise<readonly string[]> {
  const merged = [...handlings.keys()]
    .map((id) => ({ id, root: rootOf(handlings, id) }))
    .filter(({ id, root }) => id !== root)
    .slice(-MOST_MERGED);
  if (merged.length === 0) return [];
  const ids = [...new Set(merged.map(({ root }) => root))];
  const query = { ids, sinceMs, most: ids.length, ...(jobs === undefined ? {} : { jobs }) };
  const roots = (await history.incidents(query)).filter(({ verdict }) => verdict !== null);
  const counting = new Set(roots.map(({ id }) => id));
  return merged.filter(({ root }) => counting.has(root)).map(({ id }) => id);
}
