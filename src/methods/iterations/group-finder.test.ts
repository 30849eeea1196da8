import { expect, test } from "vitest";
import type { Group } from "../../model/job.ts";
import type { DumpGroup } from "../../model/operators.ts";
import { GroupFinder } from "./group-finder.ts";

const LISTS: [string, number[]][] = [
  ["tp", [0, 1, 2, 3]],
  ["tp", [4, 5, 6, 7]],
  ["tp", [0, 2, 1, 3]],
  ["dp", [0, 4]],
];
const finder = new GroupFinder(
  LISTS.map(([name, ranks], id): Group => {
    return { id, name, desc: "", ranks, role: name, carriesP2p: false };
  }),
);
const asked = (name: string, ranks: number[] | null): DumpGroup => {
  return { name, desc: "", ranks, enqueued: -1, started: -1, completed: -1 };
};

test("a group is found by its name and all its members, in their order", () => {
  for (const [id, [name, ranks]] of LISTS.entries())
    expect(finder.idOf(asked(name, [...ranks]), ranks[0]!)).toBe(id);
  expect(finder.idOf(asked("tp", [0, 1, 3, 2]), 0)).toBe(-1);
  expect(finder.idOf(asked("ep", [0, 4]), 0)).toBe(-1);
});

test("by its name alone where members are unknown, unless the rank has several of that name", () => {
  expect(finder.idOf(asked("tp", null), 6)).toBe(1);
  expect(finder.idOf(asked("dp", null), 4)).toBe(3);
  expect(finder.idOf(asked("tp", null), 2)).toBe(-1);
  expect(finder.idOf(asked("dp", null), 1)).toBe(-1);
});
