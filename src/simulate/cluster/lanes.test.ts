import fc from "fast-check";
import { expect, test } from "vitest";
import { makeLanes, type LaneGroups } from "./lanes.ts";
import { completeSpec } from "./spec.ts";
import { jobs } from "../../../test/support/simulate/jobs.ts";

const lists = ({ count, size, members }: LaneGroups): number[][] =>
  Array.from({ length: count }, (_, g) => [...members.subarray(g * size, (g + 1) * size)]);

test("tp counts fastest, then cp, then dp", () => {
  const lanes = makeLanes(completeSpec({ tp: 2, cp: 2, dp: 2, pp: 3, ep: 2 }));
  expect(lanes).toMatchObject({ lanes: 8, stages: 3 });
  expect(lists(lanes.tp)).toEqual([
    [0, 1],
    [2, 3],
    [4, 5],
    [6, 7],
  ]);
  expect(lists(lanes.cp)).toEqual([
    [0, 2],
    [1, 3],
    [4, 6],
    [5, 7],
  ]);
  // Gradients are reduced over dp and cp together.
  expect(lists(lanes.dp)).toEqual([
    [0, 2, 4, 6],
    [1, 3, 5, 7],
  ]);
  expect(lists(lanes.ep)).toEqual([
    [0, 2],
    [1, 3],
    [4, 6],
    [5, 7],
  ]);
});

test("every lane is in one group of each role, and groupOf finds it", () => {
  fc.assert(
    fc.property(jobs, (spec) => {
      const lanes = makeLanes(spec);
      for (const groups of [lanes.tp, lanes.cp, lanes.dp, lanes.ep]) {
        expect([...groups.members].sort((a, b) => a - b)).toEqual(
          Array.from({ length: lanes.lanes }, (_, lane) => lane),
        );
        lists(groups).forEach((members, g) => {
          for (const lane of members) expect(groups.groupOf[lane]).toBe(g);
        });
      }
    }),
    { seed: 8, numRuns: 100 },
  );
});
