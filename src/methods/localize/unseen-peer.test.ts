import { describe, expect, test } from "vitest";
import type { Group } from "../../model/job.ts";
import { allFloors } from "./progressive/observe-all.ts";
import { COLLECTIVE, type OperatorSource } from "./progressive/source.ts";
import { unseenPeer } from "./unseen-peer.ts";

const CALLS = 20;
const ITERATIONS = [1, 2, 3];
const TOTAL_MS = [1000, 1000, 1000];
const groups = Array.from({ length: 6 }, (_, id) => {
  const ranks = Array.from({ length: 4 }, (__, k) => 4 * id + k);
  return { id, role: "TENSOR_PARALLEL", ranks } as Partial<Group> as Group;
});

/** Six groups of four, a machine each; `waitMs` is how long everybody in the group of rank 9 waits in its nth operator. */
function answer(away: readonly number[], waitMs: (nth: number) => number) {
  const ranks = groups.flatMap((group) => group.ranks).filter((rank) => !away.includes(rank));
  const source: OperatorSource = {
    worldSize: 24,
    ranks,
    bytes: 0,
    totalBytes: 0,
    has: (rank) => ranks.includes(rank),
    iterationOf: (rank) => ({
      kind: new Uint8Array(CALLS).fill(COLLECTIVE),
      group: new Int32Array(CALLS).fill(Math.floor(rank / 4)),
      peer: new Int32Array(CALLS).fill(-1),
    }),
    placesOf: () => new Float64Array(0),
    collectivesOf: (members, group, nth, iterations) =>
      members.map((rank) =>
        Float64Array.from(
          iterations.flatMap(() => nth),
          (n) => (group === 2 && rank !== 9 ? 5 + waitMs(n) : 5),
        ),
      ),
    transfersOf: () => new Float64Array(0),
  };
  const wiring = { machineOf: (rank: number) => Math.floor(rank / 4), leafOf: () => null };
  const floors = allFloors(source, groups, ITERATIONS);
  return unseenPeer(source, groups, floors, ITERATIONS, TOTAL_MS, wiring);
}

describe("of a group that waits", () => {
  test("the one without a record is whom it waits for", () => {
    expect(answer([9], () => 20)).toEqual({
      rank: 9,
      waiting: [8, 10, 11],
      growthMs: 400,
      isThroughout: true,
    });
  });

  test("and that it waits in one operator only is said", () => {
    expect(answer([9], (n) => (n === 0 ? 400 : 0))).toMatchObject({ rank: 9, isThroughout: false });
  });

  test("nobody is meant where it waits no longer than others, or two are missing, or none", () => {
    expect(answer([9], () => 0)).toBeNull();
    expect(answer([9, 10], () => 20)).toBeNull();
    expect(answer([], () => 20)).toBeNull();
    expect(answer([13], () => 20)).toBeNull();
  });
});
