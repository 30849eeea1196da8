import type { Rank } from "../../../src/model/ids.ts";
import type { Role, SimGroup } from "../../../src/simulate/flight/rank-records.ts";

/** Sizes of the three dimensions; ranks count through tp first, then dp, then pp, as Megatron has it. */
export interface Layout {
  readonly tp: number;
  readonly pp: number;
  readonly dp: number;
}

export interface GroupChoice {
  /** First and last stage share their embedding's gradients. */
  readonly embedding: boolean;
  /** Experts are spread over the data-parallel ranks, through a group of their own. */
  readonly experts: boolean;
  /** Create groups that no operator uses: they eat names and local ids but appear in no dump. */
  readonly unused: boolean;
}

export function worldSize(layout: Layout): number {
  return layout.tp * layout.pp * layout.dp;
}

export function rankOf(layout: Layout, t: number, d: number, p: number): Rank {
  return t + layout.tp * (d + layout.dp * p);
}

export function stageOf(layout: Layout, rank: Rank): number {
  return Math.floor(rank / (layout.tp * layout.dp));
}

/** Every rank creates all groups in the same order, as torch.distributed.new_group demands. */
export function buildGroups(layout: Layout, choice: GroupChoice): SimGroup[] {
  const { tp, pp, dp } = layout;
  const groups: SimGroup[] = [];
  const counts = new Map<Role, number>();
  const add = (role: Role, desc: string, ranks: Rank[]): void => {
    const index = groups.length;
    const nth = counts.get(role) ?? 0;
    counts.set(role, nth + 1);
    const numbered = role === "default" ? desc : `${desc}_${nth}`;
    groups.push({ index, name: String(index), desc: numbered, role, ranks });
  };
  const over = (count: number, rank: (i: number) => Rank): Rank[] =>
    Array.from({ length: count }, (_, i) => rank(i));

  add(
    "default",
    "default_pg",
    over(worldSize(layout), (r) => r),
  );
  for (let p = 0; p < pp; p++)
    for (let d = 0; d < dp; d++)
      add(
        "tp",
        "TENSOR_PARALLEL",
        over(tp, (t) => rankOf(layout, t, d, p)),
      );
  if (choice.unused)
    for (let d = 0; d < dp; d++)
      add(
        "unused",
        "MODEL_PARALLEL",
        over(tp * pp, (i) => rankOf(layout, i % tp, d, Math.floor(i / tp))),
      );
  for (let p = 0; p < pp; p++)
    for (let t = 0; t < tp; t++)
      add(
        "dp",
        "DATA_PARALLEL",
        over(dp, (d) => rankOf(layout, t, d, p)),
      );
  for (let d = 0; d < dp; d++)
    for (let t = 0; t < tp; t++)
      add(
        "pp",
        "PIPELINE_PARALLEL",
        over(pp, (p) => rankOf(layout, t, d, p)),
      );
  if (choice.embedding && pp > 1)
    for (let d = 0; d < dp; d++)
      for (let t = 0; t < tp; t++)
        add("embedding", "EMBEDDING", [rankOf(layout, t, d, 0), rankOf(layout, t, d, pp - 1)]);
  if (choice.experts)
    for (let p = 0; p < pp; p++)
      for (let t = 0; t < tp; t++)
        add(
          "expert",
          "EXPERT_PARALLEL",
          over(dp, (d) => rankOf(layout, t, d, p)),
        );
  return groups;
}

/** A rank's place in a group. */
export interface Membership {
  readonly group: SimGroup;
  readonly groupRank: number;
}

/** Per rank its groups in the order of joining: the index is the process-local pg_id. */
export function memberships(layout: Layout, groups: readonly SimGroup[]): Membership[][] {
  const of: Membership[][] = Array.from({ length: worldSize(layout) }, () => []);
  for (const group of groups)
    group.ranks.forEach((rank, groupRank) => of[rank]?.push({ group, groupRank }));
  return of;
}
