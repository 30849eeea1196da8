/**
 * Whose logs are written. Up to 1,024 ranks: all. Beyond that a folder of logs helps nobody, so only: the
 * last rank (it prints the iterations), the first rank of each machine, the ranks that a fault names, and
 * those that communicate with them, because their logs say what became of the others (at most 64 of a group).
 */
import type { Simulation } from "../../cluster/times.ts";
import { faultRanks } from "../../cluster/faults.ts";
import type { ClusterGroups } from "../../cluster/groups.ts";
import { linkEnds } from "../../cluster/links.ts";
import { WORLD } from "../../cluster/program.ts";
import { membershipsOf } from "./memberships.ts";

const ALL_UP_TO = 1024;
const PEERS_OF_A_GROUP = 64;

export function ranksOfInterest({ spec, topology }: Simulation, groups: ClusterGroups): number[] {
  const all = Array.from({ length: spec.gpus }, (_, rank) => rank);
  if (spec.gpus <= ALL_UP_TO) return all;
  const chosen = new Set([spec.gpus - 1]);
  for (const rank of all) if (topology.gpuOf(rank) === 0) chosen.add(rank);
  for (const fault of spec.faults) {
    const ends = fault.link && linkEnds(topology, spec.gpus, fault.link);
    const named = ends ? ends.flat() : faultRanks(spec, topology, fault);
    if (named.length > ALL_UP_TO) continue;
    for (const rank of named) {
      chosen.add(rank);
      for (const { role, group } of membershipsOf(groups, rank)) {
        if (role === WORLD) continue;
        for (const peer of group.ranks.slice(0, PEERS_OF_A_GROUP)) chosen.add(peer);
      }
    }
  }
  return [...chosen].sort((a, b) => a - b);
}
