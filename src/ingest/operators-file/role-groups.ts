/** Which group of a role each rank of operators.flop is in. */
import type { DumpGroup } from "../../model/operators.ts";

/** The groups of one role. A group and its list of members are one object for all who are in it. */
export interface RoleGroups {
  readonly groups: readonly DumpGroup[];
  /** By rank: index into `groups`, -1 for none, and the rank's place in it. */
  readonly groupOf: Int32Array;
  readonly placeOf: Int32Array;
}

/** How a Megatron-like script describes the groups of a role, as the simulator names them. */
const ROLES: ReadonlyMap<string, string> = new Map([
  ["default_pg", "world"],
  ["TENSOR_MODEL_PARALLEL_GROUP", "tp"],
  ["CONTEXT_PARALLEL_GROUP", "cp"],
  ["DATA_PARALLEL_GROUP_WITH_CP", "dp"],
  ["EXPERT_MODEL_PARALLEL_GROUP", "ep"],
  ["PIPELINE_MODEL_PARALLEL_GROUP", "pp"],
  ["EMBEDDING_GROUP", "embedding"],
]);

export function roleGroups(given: readonly unknown[], gpus: number): Map<string, RoleGroups> {
  const found = new Map<string, RoleGroups & { readonly groups: DumpGroup[] }>();
  for (const item of given) {
    const { name, desc, ranks } = Object(item) as Readonly<Record<string, unknown>>;
    if (typeof name !== "string" || typeof desc !== "string" || !areRanks(ranks, gpus)) continue;
    const role = ROLES.get(desc.replace(/_\d+$/, ""));
    if (role === undefined) continue;
    const of = found.get(role) ?? {
      groups: [],
      groupOf: new Int32Array(gpus).fill(-1),
      placeOf: new Int32Array(gpus),
    };
    found.set(role, of);
    const index = of.groups.push(groupNamed(name, desc, ranks)) - 1;
    ranks.forEach((rank, place) => {
      if (of.groupOf[rank] !== -1) return;
      of.groupOf[rank] = index;
      of.placeOf[rank] = place;
    });
  }
  return found;
}

export function groupNamed(name: string, desc: string, ranks: readonly number[] | null): DumpGroup {
  return { name, desc, ranks, enqueued: -1, started: -1, completed: -1 };
}

function areRanks(value: unknown, gpus: number): value is number[] {
  return (
    Array.isArray(value) &&
    value.every(
      (rank) => Number.isInteger(rank) && (rank as number) >= 0 && (rank as number) < gpus,
    )
  );
}
