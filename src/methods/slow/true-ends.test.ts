import { expect, it } from "vitest";
import type { Group, Job, RankInfo } from "../../model/job.ts";
import type { OperatorTable } from "../../model/operators.ts";
import type { RankOperators } from "../../model/rank-operators.ts";
import { withTrueEnds } from "./true-ends.ts";

const GROUPS: readonly Group[] = [
  { id: 0, name: "all", desc: "", role: "", ranks: [0, 1, 2], carriesP2p: false },
  { id: 1, name: "pair", desc: "", role: "", ranks: [1, 2], carriesP2p: true },
];

interface Op {
  readonly group: number;
  readonly name?: string;
  /** Rank in the group; sends where `sends`. */
  readonly peer?: number;
  readonly sends?: boolean;
  readonly seq?: number;
  /** Milliseconds. */
  readonly started: number;
  readonly ended: number;
}

/** One iteration of a rank whose times are since another moment than the others'. */
function rankOf(rank: number, list: readonly Op[], durations?: readonly number[]): RankOperators {
  const shiftMs = 1000 * rank;
  const column = (of: (op: Op) => number): Float64Array => Float64Array.from(list, of);
  const names = [...new Set(list.map(({ name = "all_reduce" }) => name))];
  const table: Partial<OperatorTable> = {
    count: list.length,
    group: Int32Array.from(list, ({ group }) => group),
    name: Int32Array.from(list, ({ name = "all_reduce" }) => names.indexOf(name)),
    seq: Int32Array.from(list, ({ seq = 0 }) => seq),
    isP2p: Uint8Array.from(list, ({ peer }) => (peer === undefined ? 0 : 1)),
    isSend: Uint8Array.from(list, ({ sends = false }) => (sends ? 1 : 0)),
    peer: Int32Array.from(list, ({ peer = -1 }) => peer),
    startedNs: column(({ started }) => (started - shiftMs) * 1e6),
    completedNs: column(({ ended }) => (ended - shiftMs) * 1e6),
    durationMs: Float32Array.from(durations ?? list.map(({ started, ended }) => ended - started)),
    names,
  };
  return {
    rank,
    file: `${rank}`,
    ops: table as OperatorTable,
    epochNs: BigInt(shiftMs) * 1_000_000n,
    groupIds: Int32Array.of(0, 1),
    hasSequence: true,
    iteration: Float64Array.of(7),
    from: Int32Array.of(0),
    to: Int32Array.of(list.length),
    durationMs: Float64Array.of(100),
    startMs: Float64Array.of(0),
  };
}

const on = (...machines: string[]): Job["ranks"] =>
  new Map(machines.map((machine, rank) => [rank, { machine } as RankInfo]));
const ranks = on("a", "a", "a");

const durations = (all: readonly RankOperators[]): number[][] =>
  withTrueEnds(all, { groups: GROUPS, ranks }).map(({ ops }) =>
    [...ops.durationMs].map(Math.round),
  );

it("lets no collective end before its last member has begun", () => {
  // Rank 0, a leaf of the tree, is through with its part at once; rank 2 is late.
  const all = [
    rankOf(0, [{ group: 0, seq: 5, started: 10, ended: 11 }]),
    rankOf(1, [{ group: 0, seq: 5, started: 12, ended: 62 }]),
    rankOf(2, [{ group: 0, seq: 5, started: 60, ended: 62 }]),
  ];
  expect(durations(all)).toEqual([[50], [50], [2]]);
  expect(withTrueEnds(all, { groups: GROUPS, ranks })[2]).toBe(all[2]);
  // Clocks of two machines may be apart by as much.
  expect(withTrueEnds(all, { groups: GROUPS, ranks: on("a", "b", "c") })).toBe(all);
  const two = withTrueEnds(all, { groups: GROUPS, ranks: on("a", "b", "a") });
  expect(two.map(({ ops }) => Math.round(ops.durationMs[0]!))).toEqual([50, 50, 2]);
});

it("leaves the root of a broadcast alone, and clocks that are a little apart", () => {
  const of = (name: string, started: number): RankOperators[] => [
    rankOf(0, [{ group: 0, seq: 1, name, started: 10, ended: 11 }]),
    rankOf(1, [{ group: 0, seq: 1, name, started, ended: started + 1 }]),
  ];
  expect(durations(of("broadcast", 40))).toEqual([[1], [1]]);
  expect(durations(of("all_gather", 11.5))).toEqual([[1], [1]]);
  expect(durations(of("all_gather", 40))).toEqual([[30], [1]]);
});

it("lets no receive end before its send has begun, each with its own", () => {
  const receiver = rankOf(2, [
    { group: 1, peer: 0, started: 1, ended: 2 },
    { group: 1, peer: 0, sends: true, started: 1, ended: 2 },
    { group: 1, peer: 0, started: 30, ended: 45 },
  ]);
  const sender = rankOf(1, [
    { group: 1, peer: 1, sends: true, started: 21, ended: 22 },
    { group: 1, peer: 1, sends: true, started: 44, ended: 45 },
  ]);
  expect(durations([sender, receiver])).toEqual([
    [1, 1],
    [20, 1, 15],
  ]);
  // One of the sends is not on record: which, nothing tells.
  const fewer = rankOf(1, [{ group: 1, peer: 1, sends: true, started: 44, ended: 45 }]);
  expect(durations([fewer, receiver])[1]).toEqual([1, 1, 15]);
});

it("does not touch flight recorders, which find starts and ends when they happen to look", () => {
  const all = [
    rankOf(0, [{ group: 0, seq: 5, started: 10, ended: 11 }], [3]),
    rankOf(1, [{ group: 0, seq: 5, started: 60, ended: 62 }], [3]),
  ];
  expect(durations(all)).toEqual([[3], [3]]);
});
