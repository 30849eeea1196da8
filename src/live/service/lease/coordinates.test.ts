import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { makeLanes } from "../../../simulate/cluster/lanes.ts";
import { completeSpec } from "../../../simulate/cluster/spec.ts";
import { coordinatesOf, type Coordinates } from "./coordinates.ts";

const NO_STAGE = (): null => null;

/** Groups of ranks that are alike but for one axis, in the order of their ranks. */
function groupsOf(role: string, ranks: readonly number[], keyOf: (rank: number) => unknown) {
  const groups = new Map<unknown, number[]>();
  for (const rank of ranks) {
    const key = keyOf(rank);
    groups.set(key, [...(groups.get(key) ?? []), rank]);
  }
  return [...groups.values()].map((members) => ({ role, ranks: members }));
}

const count = (ranks: number): number[] => Array.from({ length: ranks }, (_, rank) => rank);
const cells = ({ pipeline, data, tensor }: Coordinates): string[] =>
  pipeline.map((p, k) => `${p} ${data[k]} ${tensor[k]}`);

describe("coordinatesOf", () => {
  it.each([
    [
      "Megatron",
      "TENSOR_MODEL_PARALLEL_GROUP",
      "DATA_PARALLEL_GROUP",
      "PIPELINE_MODEL_PARALLEL_GROUP",
    ],
    ["the recordings", "TENSOR_PARALLEL", "DATA_PARALLEL", "PIPELINE_PARALLEL"],
    ["meshes", "mesh_tp", "mesh_dp", "mesh_pp"],
    ["short names", "tp", "dp", "pp"],
  ])("reads the grid out of the groups of %s", (_, tp, dp, pp) => {
    // tp counts fastest, then dp, then pp: 2 × 3 × 2.
    const ranks = count(12);
    const at = (rank: number) => ({
      t: rank % 2,
      d: Math.floor(rank / 2) % 3,
      p: Math.floor(rank / 6),
    });
    const groups = [
      { role: "default_pg", ranks },
      ...groupsOf(tp, ranks, (rank) => Math.floor(rank / 2)),
      ...groupsOf(dp, ranks, (rank) => `${at(rank).t} ${at(rank).p}`),
      ...groupsOf(pp, ranks, (rank) => rank % 6),
    ];
    const found = coordinatesOf(ranks, groups, NO_STAGE);
    expect(found.pipeline).toEqual(ranks.map((rank) => at(rank).p));
    expect(found.data).toEqual(ranks.map((rank) => at(rank).d));
    expect(found.tensor).toEqual(ranks.map((rank) => at(rank).t));
  });

  it("knows nothing where groups have no names and nobody told a stage", () => {
    const groups = [{ role: "group of 4", ranks: [0, 1, 2, 3] }];
    expect(coordinatesOf([0, 1], groups, NO_STAGE)).toEqual({
      pipeline: [null, null],
      data: [null, null],
      tensor: [null, null],
    });
  });

  it("takes the stage for the place in the pipeline where groups do not tell it", () => {
    const found = coordinatesOf([0, 1, 2, 3], [], (rank) => Math.floor(rank / 2));
    expect(found).toEqual({ pipeline: [0, 0, 1, 1], data: [0, 1, 0, 1], tensor: [0, 0, 0, 0] });
  });

  it("is not misled by groups along two axes, of experts, or of embeddings", () => {
    const ranks = count(8);
    const plain = [
      ...groupsOf("TENSOR_MODEL_PARALLEL_GROUP", ranks, (rank) => Math.floor(rank / 2)),
      ...groupsOf("DATA_PARALLEL_GROUP_WITH_CP", ranks, (rank) => rank % 2),
    ];
    const odd = [
      { role: "TENSOR_AND_DATA_PARALLEL_GROUP", ranks: ranks.toReversed() },
      { role: "EXPERT_TENSOR_PARALLEL_GROUP", ranks: ranks.toReversed() },
      { role: "EXPERT_DATA_PARALLEL_GROUP", ranks: ranks.toReversed() },
      { role: "EMBEDDING_GROUP", ranks: [7, 0] },
      { role: "MODEL_PARALLEL_GROUP", ranks: ranks.toReversed() },
    ];
    expect(coordinatesOf(ranks, [...odd, ...plain], NO_STAGE)).toEqual(
      coordinatesOf(ranks, plain, NO_STAGE),
    );
  });

  it("counts what is left, as context parallelism, along the replicas", () => {
    // tp 2, cp 2, dp 2; the data group holds neither of the other two.
    const ranks = count(8);
    const groups = [
      ...groupsOf("tp", ranks, (rank) => Math.floor(rank / 2)),
      ...groupsOf("cp", ranks, (rank) => `${rank % 2} ${Math.floor(rank / 4)}`),
      ...groupsOf("dp", ranks, (rank) => rank % 4),
    ];
    const found = coordinatesOf(ranks, groups, NO_STAGE);
    expect(found.data).toEqual([0, 0, 1, 1, 2, 2, 3, 3]);
    expect(new Set(cells(found)).size).toBe(8);
  });

  it("gives every rank a cell of its own, whatever the groups say", () => {
    const group = fc.record({
      role: fc.constantFrom("tp", "dp", "pp", "cp", "EXPERT_MODEL_PARALLEL_GROUP", "x"),
      ranks: fc.uniqueArray(fc.nat(15), { minLength: 1 }),
    });
    fc.assert(
      fc.property(
        fc.array(group),
        fc.uniqueArray(fc.nat(15), { minLength: 1 }),
        (groups, ranks) => {
          const found = coordinatesOf(ranks, groups, NO_STAGE);
          if (found.data.every((one) => one === null)) return;
          expect(new Set(cells(found)).size).toBe(ranks.length);
        },
      ),
    );
  });

  it("agrees with the simulator about where ranks stand", () => {
    const spec = completeSpec({
      gpus: 64,
      tp: 4,
      pp: 4,
      cp: 2,
      microBatches: 4,
      layersPerStage: 2,
    });
    const { lanes, tp, dp } = makeLanes(spec);
    const ranks = count(64);
    const members = ({ members, size }: { members: Int32Array; size: number }, role: string) =>
      count(spec.pp).flatMap((stage) =>
        count(lanes / size).map((g) => ({
          role,
          ranks: [...members.subarray(g * size, (g + 1) * size)].map(
            (lane) => stage * lanes + lane,
          ),
        })),
      );
    const groups = [
      ...members(tp, "TENSOR_MODEL_PARALLEL_GROUP"),
      ...members(dp, "DATA_PARALLEL_GROUP_WITH_CP"),
      ...groupsOf("PIPELINE_MODEL_PARALLEL_GROUP", ranks, (rank) => rank % lanes),
    ];
    const found = coordinatesOf(ranks, groups, NO_STAGE);
    expect(found.pipeline).toEqual(ranks.map((rank) => Math.floor(rank / lanes)));
    expect(found.tensor).toEqual(ranks.map((rank) => rank % 4));
    expect(found.data).toEqual(ranks.map((rank) => Math.floor((rank % lanes) / 4)));
  });
});
