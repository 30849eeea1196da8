/** A machine whose ranks are all slow together: each leads everybody elsewhere, and hardly one another. */
import { getOrInsert } from "../../../base/group-by.ts";
import type { Evidence } from "./evidence.ts";
import {
  addHiccups,
  type Hypotheses,
  type Known,
  logRate,
  type Since,
  TEMPER,
} from "./hypotheses.ts";
import { LEADS } from "./kinds.ts";
import type { LogHiccups } from "./spikes.ts";

/** Of faults of a rank, how many are its machine's. */
const MACHINES = 0.1;
/** A machine leads as far as all but a few of its ranks do. */
const LEAST_PART = 1 / 4;
const FEWEST_RANKS = 2;
/** Of two ranks it is told one by one whether both are slow. */
const FEWEST_WEIGHED = 3;

/** The machine of which these are nearly all ranks; -1 for none. */
export function machineOfMost(
  machines: readonly (readonly number[])[],
  slow: ReadonlySet<number>,
): number {
  return machines.findIndex(
    (places) =>
      places.filter((place) => slow.has(place)).length >= (1 - LEAST_PART) * places.length,
  );
}

/** By machine: places of its ranks. */
export function machinesOf(machineOf: ArrayLike<number> | undefined): readonly number[][] {
  const machines = new Map<number, number[]>();
  for (let place = 0; place < (machineOf?.length ?? 0); place++) {
    const machine = machineOf![place]!;
    if (machine < 0) continue;
    const own = machines.get(machine);
    if (own === undefined) machines.set(machine, [place]);
    else own.push(place);
  }
  const most = (machineOf?.length ?? 0) / 2;
  return [...machines.values()].filter(({ length }) => length >= FEWEST_RANKS && length <= most);
}

export function addMachines(
  to: Hypotheses,
  evidence: Evidence,
  machines: readonly (readonly number[])[],
  { named, hasGrown, floorOf }: Known,
  logHiccups: LogHiccups,
): void {
  if (machines.length === 0) return;
  const since = new Map<number, Since[]>();
  for (const [w, { from, spanMs, blocks }] of evidence.windows.entries()) {
    const leads = machines.map((places) => leadOf(evidence, w, places));
    let squares = 0;
    for (const { lead } of leads) if (lead > 0) squares += lead * lead;
    for (const [machine, places] of machines.entries()) {
      const { lead, place } = leads[machine]!;
      if (
        places.length < FEWEST_WEIGHED ||
        !(lead > 0) ||
        from.number < floorOf(place) ||
        places.some((one) => named.includes(one))
      )
        continue;
      const others = squares - lead * lead;
      const log = evidence.ofMany(w, place, lead, others, machines.length - 1);
      if (log === -Infinity) continue;
      const odds = TEMPER * (log + (hasGrown ? 0 : evidence.pace(w)));
      const rate = logRate(spanMs * places.length) + Math.log(MACHINES);
      to.add({
        type: "machine",
        shape: "lasting",
        kind: LEADS,
        items: places,
        isOne: true,
        since: from.number,
        log: rate + odds,
      });
      getOrInsert(since, machine, () => []).push({ blocks, log: rate + odds, rate });
    }
  }
  // Who is held up for once holds up the ranks that work with it.
  for (const [machine, all] of since) addHiccups(to, all, logHiccups, machines[machine]!.length);
}

const NOBODY = { lead: NaN, place: -1 };

/** How far nearly all its ranks lead, and the rank that leads so far. */
function leadOf(
  evidence: Evidence,
  w: number,
  places: readonly number[],
): { readonly lead: number; readonly place: number } {
  // Nearly always most do not lead at all: then how little they do is nobody's chance.
  let leading = 0;
  for (const place of places) if (evidence.beyondAll(w, place) > 0) leading++;
  if (leading < (1 - LEAST_PART) * places.length) return NOBODY;
  const leads = places
    .map((place) => ({ place, lead: evidence.beyondAll(w, place) }))
    .filter(({ lead }) => !Number.isNaN(lead))
    .sort((a, b) => a.lead - b.lead);
  return leads[Math.floor(LEAST_PART * leads.length)] ?? NOBODY;
}
