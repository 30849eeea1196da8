import { describe, expect, it } from "vitest";
import type { Job } from "../../model/job.ts";
import { callTable, type Call } from "../../../test/support/methods/call-table.ts";
import { rankOperatorSource } from "./rank-operators.ts";

const CALLS = 12;
/** Eight calls of a pass and a step of four: 20 ms of pause, then 11 ms. */
const iteration: Call[] = Array.from({ length: CALLS }, (_, i) => ({
  group: i < 8 ? 1 : 2,
  name: i < 8 ? "all_reduce" : ["reduce_scatter", "all_reduce", "broadcast", "all_gather"][i - 8]!,
  elements: i < 8 ? 1024 : 4096 + i,
  ms: i === 0 ? 20 : 1,
}));

function cut(times: number, first = 0) {
  const { ops, epochNs } = callTable(Array.from({ length: times }, () => iteration).flat(), first);
  const groups = [0, 1, 2].map((number) => ({ number, name: String(number), ranks: [] }));
  const operators = [{ file: "run/3", rank: 3, ops, epochNs, groups, hasSequence: true }];
  return rankOperatorSource({ operators, dumps: new Map(), groups: [] } as unknown as Job);
}

describe("operators of a rank, cut into iterations", () => {
  it.each([3, 4, 12])("of %i that ran, all but the first and the last are known whole", (times) => {
    const found = cut(times).fetch(3)!;
    const numbers = Array.from({ length: times - 2 }, (_, i) => i + 2);
    expect([...found.iteration]).toEqual(numbers);
    // From the first call of one to the first call of the next.
    expect([...found.from]).toEqual(numbers.map((number) => CALLS * (number - 1)));
    expect([...found.to]).toEqual(numbers.map((number) => CALLS * number));
    for (const ms of found.durationMs) expect(ms).toBeCloseTo(31, 6);
    if (times > 3) expect(found.startMs[1]! - found.startMs[0]!).toBeCloseTo(31, 3);
  });

  it("are those that a ring still holds, by the numbers that they had", () => {
    const found = cut(12, 3 * CALLS + 5).fetch(3)!;
    expect(found.iteration.at(-1)).toBe(11);
    expect(found.ops.recordId[found.from.at(-1)!]).toBe(10 * CALLS);
  });

  it("are none where nothing repeats, and nobody has those of a rank that is not there", () => {
    expect(cut(1).fetch(3)).toBeNull();
    expect(cut(4).fetch(4)).toBeNull();
    expect(cut(4).ranks).toEqual([3]);
  });
});
