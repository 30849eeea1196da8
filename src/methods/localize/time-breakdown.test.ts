import { describe, expect, it } from "vitest";
import type { Rank } from "../../model/ids.ts";
import type { Group } from "../../model/job.ts";
import type { OperatorTable } from "../../model/operators.ts";
import type { RankOperators } from "../../model/rank-operators.ts";
import { timeBreakdowns, classesBeside, type Inside } from "./time-breakdown.ts";

const ITERATIONS = 6;
/** Milliseconds. */
const NOISE = [3, -4, 1, -2, 4, -3];

/**
 * A rank whose tensor group and sends last as long as told, of 1,000 ms per iteration. By chance the noise of its sends
 * goes with the other's or against it: a few iterations tell nothing of what belongs together.
 */
function inside(tensorMs: number, sendMs: number, sendNoise: number): Inside {
  const noisy = (ms: number, factor: number): Float64Array =>
    Float64Array.from({ length: ITERATIONS }, (_, i) => ms + factor * NOISE[i]!);
  return {
    durationMs: new Float64Array(ITERATIONS).fill(1000),
    byClass: new Map([
      ["TENSOR_PARALLEL", noisy(tensorMs, 1)],
      ["PIPELINE_PARALLEL send", noisy(sendMs, sendNoise)],
    ]),
    program: 1,
  };
}

/** Ranks 0 to 3 are a tensor group whose rank 1 computes 300 ms longer, so that the others of it wait. */
function ranksOf(othersTensorMs: number, sendNoise: number): Inside[] {
  return Array.from({ length: 16 }, (_, rank) =>
    rank < 4
      ? inside(rank === 1 ? 50 : 350, 100, sendNoise)
      : inside(othersTensorMs, 400, sendNoise),
  );
}

describe("a record of six iterations, all of them slow", () => {
  it("has sends beside kernels, if so only the slow rank differs from its peers", () => {
    expect([...classesBeside(ranksOf(350, -0.5))]).toEqual(["PIPELINE_PARALLEL send"]);
  });

  it("has sends that hold kernels up, if so only the slow rank differs from its peers", () => {
    expect([...classesBeside(ranksOf(50, 0.5))]).toEqual([]);
  });
});

/** Rank 0's iterations of so many calls each, in one group. */
function rankOf(perIteration: number, columns: Partial<OperatorTable>): RankOperators {
  const count = perIteration * ITERATIONS;
  const table: Partial<OperatorTable> = {
    count,
    group: new Int32Array(count),
    isP2p: new Uint8Array(count),
    isSend: new Uint8Array(count),
    peer: new Int32Array(count).fill(-1),
    createdNs: Float64Array.from({ length: count }, (_, op) => op * 1e6),
    durationMs: new Float32Array(count).fill(1),
    inputNumel: new Float64Array(count),
    name: new Int32Array(count),
    ...columns,
  };
  const first = (i: number): number => i * perIteration;
  const each = Array.from({ length: ITERATIONS }, (_, i) => i);
  return {
    rank: 0,
    file: "0",
    ops: table as OperatorTable,
    epochNs: 0n,
    groupIds: Int32Array.of(0),
    hasSequence: true,
    iteration: Float64Array.from(each),
    from: Int32Array.from(each, first),
    to: Int32Array.from(each, (i) => first(i + 1)),
    durationMs: new Float64Array(ITERATIONS).fill(100),
    startMs: Float64Array.from(each, (i) => i * 100),
  };
}

function groupOf(role: string, carriesP2p: boolean): Group {
  return { id: 0, name: "0", desc: role, role, ranks: [0, 1] as Rank[], carriesP2p };
}

it("does without the times of what a rank sends to itself", () => {
  // An all-to-all of two, half of it to oneself and back.
  const of = (values: readonly number[]): number[] =>
    Array.from({ length: values.length * ITERATIONS }, (_, op) => values[op % values.length]!);
  const rank = rankOf(4, {
    isP2p: Uint8Array.from(of([1, 1, 1, 1])),
    isSend: Uint8Array.from(of([1, 0, 1, 0])),
    peer: Int32Array.from(of([0, 0, 1, 1])),
    durationMs: Float32Array.from(of([NaN, NaN, 10, 20])),
    names: ["send 0->1"],
  });
  const accounts = timeBreakdowns([rank], [groupOf("EXPERT_PARALLEL", true)]);
  expect(accounts.get(0)?.totalMs[3]).toBe(100);
});

describe("a rank's program", () => {
  const calls = [5, 5, 7, 9, 5, 11];
  const programOf = (list: readonly number[], name = "all_reduce"): number =>
    timeBreakdowns([operators(list, name)], [group]).get(0)!.program;
  const group = groupOf("TENSOR_PARALLEL", false);

  /** Iterations of these calls, a size each. */
  function operators(sizes: readonly number[], name: string): RankOperators {
    const length = sizes.length * ITERATIONS;
    const inputNumel = Float64Array.from({ length }, (_, op) => sizes[op % sizes.length]!);
    return rankOf(sizes.length, { inputNumel, names: [name] });
  }

  it("is the same wherever its iterations are cut", () => {
    for (let k = 1; k < calls.length; k++)
      expect(programOf([...calls.slice(k), ...calls.slice(0, k)])).toBe(programOf(calls));
  });

  it("is the same whatever goes to each expert", () => {
    const other = calls.map((size, k) => size + k);
    expect(programOf(other, "all_to_allv")).toBe(programOf(calls, "all_to_allv"));
    expect(programOf(other)).not.toBe(programOf(calls));
  });

  it("is another in another order, and with another call", () => {
    expect(programOf([5, 7, 5, 9, 5, 11])).not.toBe(programOf(calls));
    expect(programOf([5, 5, 7, 9, 5, 12])).not.toBe(programOf(calls));
  });
});
