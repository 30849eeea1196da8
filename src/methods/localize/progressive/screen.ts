/**
 * Groups whose communication got slow, of those like the groups that ranks on the path are in. Where another
 * member comes last in every iteration, the waiting leads nowhere, though the network is slow for all; but
 * operators in which nobody waits (a gather behind a barrier) show it on any member. Holmes has no such step.
 */
import type { Group } from "../../../model/job.ts";
import type { MinimumDurations, Observation } from "./minimum-durations.ts";
import type { RankWaits } from "./rank-waits.ts";
import { passesNic, type Wiring } from "./wiring.ts";

/** Larger groups (the whole job) tell nothing about devices. */
export const MOST_MEMBERS = 1024;
/** Small groups are too many to look at all. */
const MEAN_SIZE = 12;
/** Slow groups that are looked at with all their members. */
const MOST_SLOW = 4;

/** Which operator of groups of a role to look at, and how many there are of them in an iteration. */
export type Calm = ReadonlyMap<string, { readonly nth: number; readonly count: number }>;

/** By role, the operator in which ranks usually spend least time. */
export function calmOperators(read: readonly RankWaits[], groups: readonly Group[]): Calm {
  const calm = new Map<string, { nth: number; count: number; usualMs: number }>();
  for (const { waits } of read)
    for (const { of, isGroup, nth, usualMs, count } of waits) {
      if (!isGroup) continue;
      const { role } = groups[of]!;
      const shortest = Math.min(...usualMs);
      const known = calm.get(role);
      if (known && known.usualMs <= shortest) continue;
      calm.set(role, { nth: nth[usualMs.indexOf(shortest)]!, count, usualMs: shortest });
    }
  return calm;
}

/** The group whose communication costs most more, and how much by iteration of its operators. */
export function slowestGroup(
  floors: MinimumDurations,
  groups: readonly Group[],
  calm: Calm,
  wiring: Wiring,
): { group: Group; observation: Observation; growthMs: number } | null {
  const byRole = new Map<string, Group[]>();
  let ranks = 0;
  for (const group of groups) {
    ranks = Math.max(ranks, group.ranks.length);
    if (!calm.has(group.role) || group.carriesP2p || !crosses(group, wiring)) continue;
    const known = byRole.get(group.role);
    if (known) known.push(group);
    else byRole.set(group.role, [group]);
  }
  const suspects = [...byRole]
    .filter(([, alike]) => alike.length <= ranks / MEAN_SIZE)
    .flatMap(([role, alike]) =>
      alike.filter((group) => floors.mayBeSlow(group, calm.get(role)!.nth)),
    );
  let slowest: ReturnType<typeof slowestGroup> = null;
  for (const group of suspects.slice(0, MOST_SLOW)) {
    const { nth, count } = calm.get(group.role)!;
    const observation = floors.group(group, [nth]);
    if (!observation?.isSlow) continue;
    const growthMs = observation.growthMs * count;
    if (!slowest || growthMs > slowest.growthMs) slowest = { group, observation, growthMs };
  }
  return slowest;
}

/** Groups of two machines and more, but not the whole job. */
export function crosses({ ranks }: Group, wiring: Wiring): boolean {
  if (ranks.length < 2 || ranks.length > MOST_MEMBERS) return false;
  return passesNic(ranks, wiring);
}
