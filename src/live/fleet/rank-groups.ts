/** The groups that a rank communicates in, as one of its members knows them. */
import type { ClusterGroups } from "../../simulate/cluster/groups.ts";
import type { LaneGroups } from "../../simulate/cluster/lanes.ts";
import * as P from "../../simulate/cluster/program.ts";
import type { Simulation } from "../../simulate/cluster/times.ts";
import type { GroupReport } from "../wire/messages.ts";
import type { StageOperators } from "./stage-operators.ts";

/** In the order in which a rank joins its groups. */
const ROLES = [P.WORLD, P.TP, P.CP, P.DP, P.EP, P.PP, P.EMBEDDING] as const;
/** Beyond this members are not listed: whoever names the same key is one. */
const MOST_LISTED = 64;

export interface RankGroup extends GroupReport {
  readonly role: number;
  /** Index among the job's groups. */
  readonly index: number;
}

/** Groups that a rank never uses have no communicator, so they are not told of. */
export function rankGroups(
  simulation: Simulation,
  groups: ClusterGroups,
  { stage, role: used }: StageOperators,
  rank: number,
): RankGroup[] {
  const { spec, lanes } = simulation;
  const lane = rank % lanes.lanes;
  const placeIn: Partial<Record<number, LaneGroups>> = {
    [P.TP]: lanes.tp,
    [P.CP]: lanes.cp,
    [P.DP]: lanes.dp,
    [P.EP]: lanes.ep,
  };
  const groupRank = (role: number): number => {
    if (role === P.WORLD) return rank;
    if (role === P.PP) return stage;
    if (role === P.EMBEDDING) return stage === 0 ? 0 : 1;
    const of = placeIn[role]!;
    const first = of.groupOf[lane]! * of.size;
    return of.members.subarray(first, first + of.size).indexOf(lane);
  };
  return ROLES.filter((role) => used.includes(role)).map((role) => {
    const index = groups.groupOf(rank, role);
    const { name, desc, ranks } = groups.groups[index]!;
    const size = role === P.WORLD ? spec.gpus : ranks.length;
    return {
      role,
      index,
      key: name,
      name,
      desc,
      groupRank: groupRank(role),
      size,
      ranks: size > MOST_LISTED ? null : ranks,
    };
  });
}
