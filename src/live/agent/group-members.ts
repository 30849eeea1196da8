/** Who is who in the groups of a run, as far as this machine's ranks tell. */
import type { MemberOf } from "./answer-operators.ts";
import type { RunTrack } from "./run-track.ts";

export function membersOf(track: RunTrack): MemberOf {
  const members = new Map<string, number>();
  const whole = new Set<string>();
  for (const { rank, groups } of track.ranks.values())
    for (const { key, groupRank, size } of groups.list) {
      members.set(`${key} ${groupRank}`, rank);
      // In the group of all, everybody's place is his rank, unless one of ours is elsewhere.
      if (size === track.worldSize && groupRank === rank) whole.add(key);
    }
  for (const { rank, groups } of track.ranks.values())
    for (const { key, groupRank } of groups.list) if (groupRank !== rank) whole.delete(key);
  return (key, place) => members.get(`${key} ${place}`) ?? (whole.has(key) ? place : -1);
}
