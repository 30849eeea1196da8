/**
 * Whom a group waits for if one of its members left no record, and there is no before to compare with. Inside a machine
 * all groups that do as much communicate alike; if everybody who is seen of one group stays longer in it than the
 * members of the others do, they wait for a rank that is not seen.
 */
import { median, spread } from "../../maths/robust.ts";
import type { Rank } from "../../model/ids.ts";
import type { Group } from "../../model/job.ts";
import type { FloorSeries } from "./progressive/observe-all.ts";
import { least } from "./progressive/series.ts";
import { COLLECTIVE, type OperatorSource } from "./progressive/source.ts";
import { passesNic, type Wiring } from "./progressive/wiring.ts";

export interface UnseenPeer {
  readonly rank: Rank;
  /** Members of its group that are seen to wait. */
  readonly waiting: readonly Rank[];
  /** How much longer than others they stay, milliseconds an iteration. */
  readonly growthMs: number;
  /** Whether they wait in most of their operators: for a device that computes slowly. Else something holds it up now and then. */
  readonly isThroughout: boolean;
}

/** Groups to compare with, how far above them, and a share of the iteration that matters. */
const FEWEST_PEERS = 3;
const TIMES = 2;
const SIGMAS = 8;
const MATTERS = 0.05;
/** Of the waiting, and the share of the operators that it takes at least if it is throughout. */
const MOST_OF_IT = 0.8;
const THROUGHOUT = 0.25;

/** `floors` are those of groups that are seen whole; `iterations` those that they are of. */
export function unseenPeer(
  source: OperatorSource,
  groups: readonly Group[],
  floors: readonly FloorSeries[],
  iterations: readonly number[],
  totalMs: readonly number[],
  wiring: Wiring,
): UnseenPeer | null {
  let worst: UnseenPeer | null = null;
  for (const group of groups) {
    const away = group.ranks.filter((rank) => !source.has(rank));
    const waiting = group.ranks.filter((rank) => source.has(rank));
    // Of two that are missing nobody can tell which.
    if (away.length !== 1 || waiting.length < 1 || passesNic(group.ranks, wiring)) continue;
    const found = longerThanPeers(source, groups, group, waiting, floors, iterations);
    if (!found || found.growthMs < MATTERS * median(totalMs)) continue;
    if (found.growthMs > (worst?.growthMs ?? 0)) worst = { rank: away[0]!, waiting, ...found };
  }
  return worst;
}

function longerThanPeers(
  source: OperatorSource,
  groups: readonly Group[],
  { id, role, ranks }: Group,
  waiting: readonly Rank[],
  floors: readonly FloorSeries[],
  iterations: readonly number[],
): Pick<UnseenPeer, "growthMs" | "isThroughout"> | null {
  const { kind, group: of } = source.iterationOf(waiting[0]!, iterations.at(-1)!);
  let calls = 0;
  for (let place = 0; place < kind.length; place++)
    if (kind[place] === COLLECTIVE && of[place] === id) calls++;
  const peers = floors.filter(
    ({ group, count, isLink }) =>
      !isLink &&
      count === calls &&
      groups[group]!.role === role &&
      groups[group]!.ranks.length === ranks.length,
  );
  if (calls === 0 || peers.length < FEWEST_PEERS) return null;
  const levels = peers.map(({ floorMs }) => median(floorMs.filter((ms) => !Number.isNaN(ms))));
  const usual = median(levels);
  const nth = Array.from({ length: calls }, (_, n) => n);
  const floor = least(source.collectivesOf(waiting, id, nth, iterations));
  // By operator: its usual time.
  const each = nth.map((n) => median(iterations.map((_, i) => floor[i * calls + n]!)));
  const own = each.reduce((sum, ms) => sum + ms, 0);
  if (!(own >= Math.max(TIMES * usual, usual + SIGMAS * spread(levels, usual)))) return null;
  const excess = each.map((ms) => Math.max(0, ms - usual / calls)).sort((a, b) => b - a);
  const total = excess.reduce((sum, ms) => sum + ms, 0);
  let places = 0;
  for (let sum = 0; places < calls && sum < MOST_OF_IT * total; places++) sum += excess[places]!;
  return { growthMs: own - usual, isThroughout: places >= THROUGHOUT * calls };
}
