/** What the user's own history says of machines: how many incidents each had of late (verdict/prior.ts). */
import type { History, Offender } from "../../../history/history.ts";
import type { Handling } from "../../../model/handling.ts";
import type { Judged } from "../site/how-right.ts";
import { correctedOffenders, countedTwice } from "../site/machine-history.ts";

const DAYS_MS = 90 * 86_400_000;
const MOST_MACHINES = 10_000;
/** A verdict does not wait for a database that is slow. */
const PATIENCE_MS = 1000;

/** Incidents that are still open do not count: the one that is being looked at is among them. Empty where nobody knows. */
export async function earlierIncidents(
  history: Pick<History, "offenders" | "incidents">,
  nowMs: number,
  judgements: readonly Judged[] = [],
  handlings: ReadonlyMap<string, Handling> = new Map(),
  patienceMs: number = PATIENCE_MS,
): Promise<ReadonlyMap<string, number>> {
  const since = nowMs - DAYS_MS;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => (timer = setTimeout(resolve, patienceMs, null)));
  try {
    const asked = Promise.all([
      offendersOnce(history, since, handlings),
      history.incidents({ open: true, sinceMs: since }),
    ]);
    const answer = await Promise.race([asked, late]);
    if (answer === null) {
      asked.catch(() => undefined);
      return new Map();
    }
    const [[known, twice], open] = answer;
    const isOpen = new Set(open.map(({ id }) => id));
    const over = judgements.filter(({ incident }) => !isOpen.has(incident));
    const corrected = correctedOffenders(known, over, since);
    const counts = new Map(corrected.map(({ machine, incidents }) => [machine, incidents]));
    for (const { machines } of open.filter(({ id }) => !twice.includes(id)))
      for (const machine of machines) {
        const left = (counts.get(machine) ?? 0) - 1;
        if (left > 0) counts.set(machine, left);
        else counts.delete(machine);
      }
    return counts;
  } catch {
    return new Map();
  } finally {
    clearTimeout(timer);
  }
}

async function offendersOnce(
  history: Pick<History, "offenders" | "incidents">,
  sinceMs: number,
  handlings: ReadonlyMap<string, Handling>,
): Promise<readonly [readonly Offender[], twice: readonly string[]]> {
  const twice = await countedTwice(history, handlings, sinceMs);
  return [await history.offenders(sinceMs, MOST_MACHINES, undefined, twice), twice];
}
