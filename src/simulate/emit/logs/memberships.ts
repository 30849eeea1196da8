/** A rank's process groups with what the log says of them. */
import type { ClusterGroups } from "../../cluster/groups.ts";
import { CP, DP, EMBEDDING, EP, PP, TP, WORLD } from "../../cluster/program.ts";
import type { Role, SimGroup } from "../../flight/rank-records.ts";

export interface Membership {
  readonly role: number;
  readonly group: SimGroup;
  readonly groupRank: number;
  /** "[PG ID 2 PG GUID 7(DATA_PARALLEL_2) Rank 0]"; the id counts the groups that this process joined. */
  readonly tag: string;
}

/** In the order in which a rank joins its groups, as in the flight-recorder dumps. */
const ROLES: readonly (readonly [code: number, role: Role])[] = [
  [WORLD, "default"],
  [TP, "tp"],
  [CP, "cp"],
  [DP, "dp"],
  [EP, "expert"],
  [PP, "pp"],
  [EMBEDDING, "embedding"],
];

export function membershipsOf(groups: ClusterGroups, rank: number): Membership[] {
  const joined: Membership[] = [];
  for (const [role, name] of ROLES) {
    const group = groups.groups[groups.groupOf(rank, role)];
    // A dimension of size 1 has no groups, and its index is that of another role's.
    if (group?.role !== name) continue;
    const groupRank = role === WORLD ? rank : group.ranks.indexOf(rank);
    if (groupRank < 0) continue;
    const tag = `[PG ID ${joined.length} PG GUID ${group.name}(${group.desc}) Rank ${groupRank}]`;
    joined.push({ role, group, groupRank, tag });
  }
  return joined;
}
