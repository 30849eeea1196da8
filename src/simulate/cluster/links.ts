/** What runs over a link between two ranks or two machines, and how many bytes. */
import { UserError } from "../../base/errors.ts";
import type { LaneGroups, Lanes } from "./lanes.ts";
import { ALL_REDUCE, ALL_TO_ALL } from "./program.ts";
import type { ClusterSpec } from "./spec.ts";
import type { Topology } from "./topology.ts";

/**
 * The ranks at both ends of a link between two GPUs (named by their ranks in the unmoved layout) or two machines; null
 * for a link between a machine and its leaf.
 */
export function linkEnds(
  topology: Topology,
  gpus: number,
  link: readonly [string, string],
): readonly [readonly number[], readonly number[]] | null {
  if (link.every((end) => /^\d+$/.test(end)))
    return [[topology.rankAt(Number(link[0]))], [topology.rankAt(Number(link[1]))]];
  if (link.some((end) => end.startsWith("leaf"))) return null;
  const on = (name: string): number[] => {
    const ranks: number[] = [];
    for (let rank = 0; rank < gpus; rank++)
      if (topology.machineName(topology.machineOf(rank)) === name) ranks.push(rank);
    return ranks;
  };
  return [on(link[0]), on(link[1])];
}

/** Group (over all stages) that two ranks share in a role, -1 where they share none. */
export function sharedGroup({ lanes }: Lanes, groups: LaneGroups, a: number, b: number): number {
  const stage = Math.floor(a / lanes);
  if (groups.size === 1 || stage !== Math.floor(b / lanes)) return -1;
  const group = groups.groupOf[a % lanes]!;
  return group === groups.groupOf[b % lanes] ? stage * groups.count + group : -1;
}

/** A rehearsal of a fault on a link that carries nothing would rehearse nothing. */
export function checkLinksAreUsed(spec: ClusterSpec, lanes: Lanes, topology: Topology): void {
  for (const { cause, link } of spec.faults) {
    const ends = link === null ? null : linkEnds(topology, spec.gpus, link);
    if (ends === null || ends[0].some((a) => ends[1].some((b) => isUsed(spec, lanes, a, b))))
      continue;
    const isRanks = /^\d+$/.test(link![0]);
    const [a] = ends[0] as [number];
    const next = (a + lanes.lanes) % spec.gpus;
    const neighbours = isRanks
      ? `${a}-${next}`
      : [a, next].map((rank) => topology.machineName(topology.machineOf(rank))).join("-");
    throw new UserError(
      `--fault ${cause}: nothing runs between ${isRanks ? "ranks" : "machines"} ${link!.join(" and ")} in this layout`,
      `${isRanks ? "ranks" : "machines"} that share a group, or neighbours in a pipeline such as ${neighbours}`,
      2,
    );
  }
}

function isUsed(spec: ClusterSpec, lanes: Lanes, a: number, b: number): boolean {
  const isLane = a % lanes.lanes === b % lanes.lanes;
  const apart = Math.abs(Math.floor(a / lanes.lanes) - Math.floor(b / lanes.lanes));
  const isPipeline = isLane && (apart === 1 || apart === spec.pp - 1);
  const roles = [lanes.tp, lanes.cp, lanes.dp, lanes.ep];
  return isPipeline || roles.some((role) => sharedGroup(lanes, role, a, b) >= 0);
}

/** Bytes that the slowest link of a ring carries. */
export function wireBytes(kind: number, bytes: number, size: number): number {
  if (kind === ALL_REDUCE) return (2 * bytes * (size - 1)) / size;
  if (kind === ALL_TO_ALL) return (bytes * (size - 1)) / size;
  return bytes * (size - 1);
}
