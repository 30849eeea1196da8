import { describe, expect, test } from "vitest";
import { median } from "../../maths/robust.ts";
import type { OperatorTable } from "../../model/operators.ts";
import type { RankOperators } from "../../model/rank-operators.ts";
import type { TimeBreakdown } from "./time-breakdown.ts";
import { cpuOrGpu } from "./cpu-or-gpu.ts";

const ITERATIONS = 5;
const CALLS = 40;
const ITERATION_MS = 1000;
const OWN_MS = { usual: 300, slow: 700 };

/** When a rank makes its nth call, milliseconds after the iteration began; 0.1 ms a call is usual. */
type Calls = (nth: number, iteration: number) => number;
const usual = (nth: number): number => 0.1 * nth;

function operatorsOf(rank: number, calls: Calls): RankOperators {
  const at = (i: number): number =>
    Math.floor(i / CALLS) * ITERATION_MS + calls(i % CALLS, Math.floor(i / CALLS));
  const length = ITERATIONS * CALLS;
  const ops = {
    createdNs: Float64Array.from({ length }, (_, i) => 1e6 * at(i)),
    isP2p: new Uint8Array(length),
    isSend: new Uint8Array(length),
    inputNumel: Float64Array.from({ length }, (_, i) => i % CALLS),
    name: new Int32Array(length),
    names: ["all_reduce"],
  } as Partial<OperatorTable> as OperatorTable;
  const from = Int32Array.from({ length: ITERATIONS }, (_, i) => i * CALLS);
  return {
    rank,
    ops,
    iteration: Float64Array.from(from, (_, i) => 100 + i),
    from,
    to: from.map((first) => first + CALLS),
    startMs: Float64Array.from(from, (first) => at(first)),
  } as Partial<RankOperators> as RankOperators;
}

/** Rank 2 of eight is slow since the record began. */
function side(
  calls: Calls,
  overwritten = 0,
  lost = new Map<number, Float64Array>(),
  clocks = new Map<number, number>(),
) {
  const cut = Array.from({ length: 8 }, (_, rank) => operatorsOf(rank, rank === 2 ? calls : usual));
  for (const { from, to } of cut) to.set(from.subarray(0, overwritten));
  const accounts = new Map(
    cut.map(({ rank, iteration, startMs, ops, to }) => {
      const issueMs = startMs.map((ms, i) => ops.createdNs[to[i]! - 1]! / 1e6 - ms);
      const totalMs = issueMs.map(() => ITERATION_MS);
      const account = { iteration, issueMs, totalMs, program: 1 } as Partial<TimeBreakdown>;
      return [rank, account as TimeBreakdown];
    }),
  );
  const suspect = {
    rank: 2,
    kind: "always" as const,
    iteration: null,
    until: null,
    beforeMs: OWN_MS.usual,
    afterMs: OWN_MS.slow,
    sigmas: 20,
    slow: [0, 1, 2, 3, 4],
  };
  return cpuOrGpu(suspect, accounts.get(2)!, cut[2]!, { accounts, cut, clocks, lost });
}

describe("a rank that was slow since its record began", () => {
  test("waits for data where it is late with the first call of each of two micro-batches", () => {
    const { cause, issueMs } = side((nth) => usual(nth) + (nth < CALLS / 2 ? 195 : 390));
    expect(cause).toBe("dataloader");
    expect(median([issueMs[1]])).toBeGreaterThan(350);
  });

  test("does so where the operators of its first iterations are overwritten", () => {
    const late: Calls = (nth) => usual(nth) + (nth < CALLS / 2 ? 195 : 390);
    expect(side(late, 2).cause).toBe("dataloader");
  });

  test("has a slow CPU where a few calls come late and the first does not: no batch begins without its data", () => {
    const layers: Calls = (nth) => usual(nth) + 130 * Math.floor(Math.min(nth, 12) / 4);
    expect(side(layers).cause).toBe("cpu-stall");
    expect(side((nth) => usual(nth) + (nth < 12 ? 0 : 390)).cause).toBe("dataloader");
  });

  test("waits for data where the first batch of an iteration is late by less: it was asked for long before", () => {
    const late: Calls = (nth) => usual(nth) + 40 + 175 * Math.min(2, Math.floor(nth / 13));
    expect(side(late).cause).toBe("dataloader");
  });

  test("has either where clocks had to be corrected: lateness is not known well enough", () => {
    const late: Calls = (nth) => usual(nth) + (nth < CALLS / 2 ? 195 : 390);
    const { certainty, isToldApart } = side(late, 0, new Map(), new Map([[2, 3000]]));
    expect(isToldApart).toBe(false);
    expect(certainty).toBeLessThan(0.5);
  });

  test("has a slow CPU where all its calls come late", () => {
    expect(side((nth) => 10 * nth).cause).toBe("cpu-stall");
  });

  test("has a slow CPU where one call of each iteration comes late, always another one: a garbage collector's pauses", () => {
    const lost = new Map([[2, new Float64Array(ITERATIONS).fill(390)]]);
    const pauses: Calls = (nth, iteration) => usual(nth) + (nth > 5 + 7 * iteration ? 390 : 0);
    expect(side(pauses, 0, lost).cause).toBe("cpu-stall");
  });

  test("has a slow GPU where its calls are those of the others, though it begins late", () => {
    expect(side(usual).cause).toBe("gpu-slow");
    const late = side((nth) => usual(nth) + 390);
    expect(late).toMatchObject({ cause: "gpu-slow", isToldApart: false });
    expect(late.certainty).toBeLessThan(side(usual).certainty);
  });
});
