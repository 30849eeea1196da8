/**
 * Where each rank stands in the job's grid of pipeline × data × tensor, from its process groups: Megatron's names
 * ("TENSOR_MODEL_PARALLEL_GROUP_3"), those of PyTorch's meshes ("mesh_dp_shard"), the short ones ("tp").
 */
import { groupBy } from "../../../base/group-by.ts";
import type { Rank } from "../../../model/ids.ts";
import type { Group } from "../../../model/job.ts";

export interface Coordinates {
  /** An entry a rank, from 0; null for all three where nothing tells. */
  readonly pipeline: readonly (number | null)[];
  readonly data: readonly (number | null)[];
  readonly tensor: readonly (number | null)[];
}

const PIPELINE = /pipeline|(^|[^a-z])pp([^a-z]|$)/i;
const TENSOR = /tensor|(^|[^a-z])tp([^a-z]|$)/i;
const DATA = /data|replicate|fsdp|(^|[^a-z])dp([^a-z]|$)/i;
/** Groups along two axes at once, and those that cut across the grid. */
const ACROSS = /expert|moe|embedding|_and_|(^|[^a-z])ep([^a-z]|$)/i;

type Named = Pick<Group, "role" | "ranks">;

export function coordinatesOf(
  ranks: readonly Rank[],
  groups: readonly Named[],
  stageOf: (rank: Rank) => number | null,
): Coordinates {
  const plain = groups.filter(({ role }) => !ACROSS.test(role));
  const isTensor = ({ role }: Named): boolean => TENSOR.test(role) && !PIPELINE.test(role);
  const inPipeline = places(plain.filter(({ role }) => PIPELINE.test(role)));
  const inTensor = places(plain.filter(isTensor));
  const inData = places(plain.filter((group) => DATA.test(group.role) && !isTensor(group)));
  const isKnown =
    inPipeline.size + inTensor.size + inData.size > 0 ||
    ranks.some((rank) => stageOf(rank) !== null);
  if (!isKnown) {
    const unknown = ranks.map(() => null);
    return { pipeline: unknown, data: unknown, tensor: unknown };
  }
  const pipeline = ranks.map((rank) => inPipeline.get(rank) ?? stageOf(rank) ?? 0);
  const tensor = ranks.map((rank) => inTensor.get(rank) ?? 0);
  const data = ranks.map((rank) => inData.get(rank) ?? 0);
  return { pipeline, data: apart(ranks, pipeline, data, tensor), tensor };
}

/** Place in its group, by rank. Of several roles (with and without context parallelism) the one with the largest groups. */
function places(groups: readonly Named[]): ReadonlyMap<Rank, number> {
  const most = (role: readonly Named[]): number =>
    role.reduce((size, group) => Math.max(size, group.ranks.length), 0);
  const [best = []] = [...groupBy(groups, ({ role }) => role).values()].sort(
    (a, b) => most(b) - most(a),
  );
  const place = new Map<Rank, number>();
  for (const group of best)
    for (const [k, rank] of group.ranks.entries()) if (!place.has(rank)) place.set(rank, k);
  return place;
}

/**
 * No two ranks share a cell: what the three axes leave open (context parallelism, groups without names) counts along the
 * second. All rows are counted anew then, so that they stay comparable.
 */
function apart(
  ranks: readonly Rank[],
  pipeline: readonly number[],
  data: readonly number[],
  tensor: readonly number[],
): readonly number[] {
  const cells = new Set(ranks.map((_, k) => `${pipeline[k]!} ${data[k]!} ${tensor[k]!}`));
  if (cells.size === ranks.length) return data;
  const counted = [...data];
  const rows = groupBy(ranks.keys(), (k) => `${pipeline[k]!} ${tensor[k]!}`);
  for (const row of rows.values()) {
    row.sort((a, b) => data[a]! - data[b]! || ranks[a]! - ranks[b]!);
    for (const [place, k] of row.entries()) counted[k] = place;
  }
  return counted;
}
