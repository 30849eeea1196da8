/** What runs over a link between two ranks, and how many bytes. */
import { UserError } from "../../base/errors.ts";
import type { LaneGroups, Lanes } from "./lanes.ts";
import { ALL_REDUCE, ALL_TO_ALL } from "./program.ts";
import type { ClusterSpec } from "./spec.ts";

/** Group (over all stages) that two ranks share in a role, -1 where they share none. */
export function sharedGroup({ lanes }: Lanes, groups: LaneGroups, a: number, b: number): number {
  const stage = Math.floor(a / lanes);
  if (groups.size === 1 || stage !== Math.floor(b / lanes)) return -1;
  const group = groups.groupOf[a % lanes]!;
  return group === groups.groupOf[b % lanes] ? stage * groups.count + group : -1;
}

/** A rehearsal of a fault on a link that carries nothing would rehearse nothing. */
export function checkLinksAreUsed(spec: ClusterSpec, lanes: Lanes): void {
  for (const { cause, link } of spec.faults) {
    if (link === null || !link.every((end) => /^\d+$/.test(end))) continue;
    const [a, b] = link.map(Number) as [number, number];
    const isLane = a % lanes.lanes === b % lanes.lanes;
    const apart = Math.abs(Math.floor(a / lanes.lanes) - Math.floor(b / lanes.lanes));
    const isPipeline = isLane && (apart === 1 || apart === spec.pp - 1);
    const roles = [lanes.tp, lanes.cp, lanes.dp, lanes.ep];
    if (isPipeline || roles.some((role) => sharedGroup(lanes, role, a, b) >= 0)) continue;
    const hint = `ranks that share a group, or neighbours in a pipeline such as ${a}-${(a + lanes.lanes) % spec.gpus}`;
    throw new UserError(
      `--fault ${cause}: nothing runs between ranks ${a} and ${b} in this layout`,
      hint,
      2,
    );
  }
}

/** Bytes that the slowest link of a ring carries. */
export function wireBytes(kind: number, bytes: number, size: number): number {
  if (kind === ALL_REDUCE) return (2 * bytes * (size - 1)) / size;
  if (kind === ALL_TO_ALL) return (bytes * (size - 1)) / size;
  return bytes * (size - 1);
}
