import { describe, expect, test } from "vitest";
import type { Rank } from "../../model/ids.ts";
import type { RankKernels } from "../../model/kernels.ts";
import { kernelClocks } from "./kernel-clocks.ts";
import { testTrace, type TestKernel } from "../../../test/support/methods/kernel-trace.ts";

interface Options {
  readonly hasSeq?: boolean;
  readonly skipped?: number;
}

/** All-reduces of a pair of ranks that end at the same moments, and messages to the next pair and back. */
function rankTrace(rank: Rank, { hasSeq = true, skipped = 0 }: Options = {}): RankKernels {
  const first = rank - (rank % 2);
  const pair = [first, first + 1];
  const kernels: TestKernel[] = [];
  for (let k = skipped; k < 12; k++) {
    const end = 1_000 + 700 * k + 13 * (k % 5);
    const at = end - 100 - 37 * ((rank + k) % 4);
    kernels.push({
      name: "nccl",
      at,
      dur: end - at,
      collective: {
        operation: "allreduce",
        ranks: pair,
        numel: 4,
        ...(hasSeq ? { seq: 40 + k } : {}),
      },
    });
  }
  return testTrace({
    rank,
    steps: [
      [0, 5_000],
      [5_000, 5_000],
    ],
    kernels,
  });
}

function message(rank: Rank, peer: Rank, operation: "send" | "recv", end: number): TestKernel {
  const ranks = [Math.min(rank, peer), Math.max(rank, peer)];
  return { name: "nccl", at: end - 50, dur: 50, collective: { operation, ranks, numel: 4, peer } };
}

function shifted(trace: RankKernels, aheadNs: bigint): RankKernels {
  return { ...trace, epochNs: trace.epochNs + 1_794_704_609_000_000_000n + aheadNs };
}

function between(traces: readonly RankKernels[]): number[] {
  const clocks = kernelClocks(traces.map((trace) => [trace.rank!, trace]));
  const at = new Map(clocks.map(({ rank, aheadNs }) => [rank, aheadNs]));
  return traces.map(({ rank }) => Math.round(at.get(rank!)! - at.get(traces[0]!.rank!)!));
}

describe("clocks of traced ranks", () => {
  test("are recovered from collectives, however far they were set apart", () => {
    for (const aheadNs of [0n, 1n, -12_345_678n, 3_600_000_000_001n])
      expect(between([shifted(rankTrace(0), 0n), shifted(rankTrace(1), aheadNs)])).toEqual([
        0,
        Number(aheadNs),
      ]);
  });

  test("are recovered by order within the step where the traces have no sequence numbers", () => {
    const options = { hasSeq: false };
    expect(
      between([shifted(rankTrace(0, options), 0n), shifted(rankTrace(1, options), 5_000n)]),
    ).toEqual([0, 5_000]);
  });

  test("are recovered where one trace begins later, by the group's own numbers", () => {
    expect(
      between([shifted(rankTrace(0), 0n), shifted(rankTrace(1, { skipped: 3 }), -777n)]),
    ).toEqual([0, -777]);
  });

  test("are joined across pipeline stages by messages, though receivers are late", () => {
    const there = Array.from({ length: 6 }, (_, k) => 900 + 600 * k);
    const late = [3, 0, 90, 41, 0, 7];
    const sender = (rank: Rank, peer: Rank): TestKernel[] => [
      ...there.map((end) => message(rank, peer, "send", end)),
      ...there.map((end, k) => message(rank, peer, "recv", end + 300 + late[5 - k]!)),
    ];
    const receiver = (rank: Rank, peer: Rank): TestKernel[] => [
      ...there.map((end, k) => message(rank, peer, "recv", end + late[k]!)),
      ...there.map((end) => message(rank, peer, "send", end + 300)),
    ];
    const steps = [[0, 9_000]] as const;
    const stage0 = shifted(testTrace({ rank: 0, steps, kernels: sender(0, 1) }), 0n);
    const stage1 = shifted(testTrace({ rank: 1, steps, kernels: receiver(1, 0) }), 44_000n);
    expect(between([stage0, stage1])).toEqual([0, 44_000]);
  });

  test("are left as they were where ranks share nothing, and that is said", () => {
    const clocks = kernelClocks([
      [0, shifted(rankTrace(0), 0n)],
      [1, shifted(rankTrace(1), 10n)],
      [2, shifted(rankTrace(2), 20n)],
    ]);
    expect(clocks.map(({ component }) => component)).toEqual([0, 0, 2]);
    expect(clocks[2]!.aheadNs).toBe(0);
  });

  test("of no traces are none", () => {
    expect(kernelClocks([])).toEqual([]);
  });
});
