/**
 * Where ranks stand. All ranks of a pipeline stage run the same program, so a stage is a row of lanes
 * (tp × cp × dp of them) and everything within it is described once: which lanes form a group is the
 * same on every stage. rank = stage · lanes + lane; tp counts fastest, then cp, then dp ("tp-cp-dp-pp").
 */
import type { ClusterSpec } from "./spec.ts";

/** The groups of one role within a stage. */
export interface LaneGroups {
  readonly size: number;
  readonly count: number;
  /** Lanes of group g at [g · size, (g + 1) · size). */
  readonly members: Int32Array;
  readonly groupOf: Int32Array;
}

export interface Lanes {
  readonly lanes: number;
  readonly stages: number;
  readonly tp: LaneGroups;
  readonly cp: LaneGroups;
  /** Gradients are reduced over dp and cp together, as Megatron's DATA_PARALLEL_GROUP_WITH_CP does. */
  readonly dp: LaneGroups;
  readonly ep: LaneGroups;
}

export function makeLanes(spec: ClusterSpec): Lanes {
  const { tp, cp, dp, ep, pp } = spec;
  const lanes = tp * cp * dp;
  const replica = (lane: number): number => Math.floor(lane / tp); // cp + cp_size · dp
  return {
    lanes,
    stages: pp,
    tp: group(lanes, tp, (lane) => replica(lane)),
    cp: group(lanes, cp, (lane) => (lane % tp) + tp * Math.floor(lane / (tp * cp))),
    dp: group(lanes, cp * dp, (lane) => lane % tp),
    ep: group(lanes, ep, (lane) => (lane % tp) + tp * Math.floor(replica(lane) / ep)),
  };
}

/** Lanes with the same key form a group, in lane order. */
function group(lanes: number, size: number, keyOf: (lane: number) => number): LaneGroups {
  const count = lanes / size;
  const members = new Int32Array(lanes);
  const groupOf = new Int32Array(lanes);
  const filled = new Int32Array(count);
  for (let lane = 0; lane < lanes; lane++) {
    const key = keyOf(lane);
    groupOf[lane] = key;
    members[key * size + filled[key]!++] = lane;
  }
  return { size, count, members, groupOf };
}
