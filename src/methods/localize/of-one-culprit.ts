/**
 * Of iterations that are slow now and then, those that speak for one culprit: several may be slow in turn, healthy jobs have
 * hiccups, and the iteration after a slow one waits for what it left behind.
 */
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { Attribution } from "./attribute.ts";
import type { OwnTimeSuspect } from "./own-time.ts";
import type { SlowIterations } from "./slow-iterations.ts";
import type { TimeBreakdown } from "./time-breakdown.ts";

/** Slow iterations that must speak for one culprit. */
export const HABIT = 3;

/**
 * The slow iterations that speak for one culprit: a rank whose own time jumps in them; else those whose searches come to the
 * same end, the one with most behind it, those that come to the most suspect device (Holmes §4.4), whichever way, and those
 * that come to the network of one group's members: who of a slow ring is late differs, and so does the pipeline that waits for
 * it. The others are hiccups of others, or wait for what a slow iteration left behind.
 */
export function ofOneCulprit(
  [habit]: readonly OwnTimeSuspect[],
  accounts: ReadonlyMap<Rank, TimeBreakdown>,
  { devices: [first], found }: Attribution,
  job: Job,
  leastHabit: number,
): SlowIterations[] {
  const end = mostSuspectEnd(found);
  const sets = habit
    ? [habit.slow.map((i) => accounts.get(habit.rank)!.iteration[i]!)]
    : [
        found.filter(({ what }) => endOf(what) === end),
        found.filter(({ what }) => first?.device.ranks.some((rank) => what.ranks.includes(rank))),
        ofOneGroup(found, job),
      ].map((those) => those.map(({ iteration }) => iteration));
  const different = new Map(
    sets.map((numbers) => new Set(numbers)).map((one) => [[...one].join(), one]),
  );
  return [...different.values()]
    .filter(({ size }) => size >= HABIT)
    .map((slow) => ({
      isSlow: (iteration) => slow.has(iteration),
      from: Math.min(...slow),
      until: null,
      isLasting: false,
      leastHabit,
    }));
}

/** Searches that come to communication of one group's members: of the group that most iterations come to. */
function ofOneGroup(found: Attribution["found"], { groups, worldSize }: Job): Attribution["found"] {
  const networks = found.filter(({ what }) => what.cause === "network");
  const ends = new Set(networks.flatMap(({ what }) => what.ranks));
  let best: { readonly those: Attribution["found"]; readonly iterations: number } | null = null;
  for (const { ranks, carriesP2p } of groups) {
    if (carriesP2p || ranks.length < 3 || ranks.length === worldSize) continue;
    const members = new Set(ranks.filter((rank) => ends.has(rank)));
    if (members.size === 0) continue;
    const those = networks.filter(({ what }) => what.ranks.some((rank) => members.has(rank)));
    const iterations = new Set(those.map(({ iteration }) => iteration)).size;
    if (iterations > (best?.iterations ?? 0)) best = { those, iterations };
  }
  return best?.those ?? [];
}

function endOf({ cause, ranks }: Attribution["found"][number]["what"]): string {
  return `${cause} ${ranks.join()}`;
}

/** The end of most searches, each with its rate. */
function mostSuspectEnd(found: Attribution["found"]): string | null {
  const rates = new Map<string, number>();
  for (const { what } of found) rates.set(endOf(what), (rates.get(endOf(what)) ?? 0) + what.rate);
  return [...rates].toSorted(([, a], [, b]) => b - a)[0]?.[0] ?? null;
}
