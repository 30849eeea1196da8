/**
 * The process groups of a simulated job, in the order in which a Megatron-like script creates them on
 * every rank; the index is the name that torch.distributed gives.
 */
import type { Role, SimGroup } from "../flight/rank-records.ts";
import type { LaneGroups } from "./lanes.ts";
import type { Simulation } from "./times.ts";
import { CP, DP, EMBEDDING, EP, PP, TP, WORLD } from "./program.ts";

export interface ClusterGroups {
  readonly groups: readonly SimGroup[];
  /** Group index of a rank in a program's role; -1 where it has none. */
  groupOf(rank: number, role: number): number;
}

export function clusterGroups({ spec, lanes }: Simulation): ClusterGroups {
  const groups: SimGroup[] = [];
  const firstOf: number[] = [];
  const add = (role: Role, desc: string, ranks: number[]): void => {
    const index = groups.length;
    groups.push({ index, name: String(index), desc, role, ranks });
  };
  add(
    "default",
    "default_pg",
    Array.from({ length: spec.gpus }, (_, rank) => rank),
  );
  const perStage = (code: number, role: Role, desc: string, of: LaneGroups): void => {
    firstOf[code] = groups.length;
    if (of.size === 1 && code !== TP && code !== DP) return;
    for (let stage = 0; stage < spec.pp; stage++) {
      for (let g = 0; g < of.count; g++) {
        const members = of.members.subarray(g * of.size, (g + 1) * of.size);
        const ranks = [...members].map((lane) => stage * lanes.lanes + lane);
        add(role, `${desc}_${stage * of.count + g}`, ranks);
      }
    }
  };
  perStage(TP, "tp", "TENSOR_MODEL_PARALLEL_GROUP", lanes.tp);
  perStage(CP, "cp", "CONTEXT_PARALLEL_GROUP", lanes.cp);
  perStage(DP, "dp", "DATA_PARALLEL_GROUP_WITH_CP", lanes.dp);
  perStage(EP, "expert", "EXPERT_MODEL_PARALLEL_GROUP", lanes.ep);
  firstOf[PP] = groups.length;
  for (let lane = 0; lane < lanes.lanes; lane++) {
    const ranks = Array.from({ length: spec.pp }, (_, stage) => stage * lanes.lanes + lane);
    add("pp", `PIPELINE_MODEL_PARALLEL_GROUP_${lane}`, ranks);
  }
  firstOf[EMBEDDING] = groups.length;
  if (spec.pp > 1) {
    for (let lane = 0; lane < lanes.lanes; lane++) {
      add("embedding", `EMBEDDING_GROUP_${lane}`, [lane, (spec.pp - 1) * lanes.lanes + lane]);
    }
  }
  const byRole: Partial<Record<number, LaneGroups>> = {
    [TP]: lanes.tp,
    [CP]: lanes.cp,
    [DP]: lanes.dp,
    [EP]: lanes.ep,
  };
  return {
    groups,
    groupOf(rank, role) {
      const stage = Math.floor(rank / lanes.lanes);
      const lane = rank % lanes.lanes;
      if (role === WORLD) return 0;
      if (role === PP || role === EMBEDDING) return firstOf[role]! + lane;
      const of = byRole[role];
      if (of?.size === 1 && role !== TP && role !== DP) return -1;
      return of ? firstOf[role]! + stage * of.count + of.groupOf[lane]! : -1;
    },
  };
}
