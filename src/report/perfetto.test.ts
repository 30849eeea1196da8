import { describe, expect, test } from "vitest";
import { kernelClocks } from "../methods/traces/kernel-clocks.ts";
import { testTrace } from "../../test/support/methods/kernel-trace.ts";
import * as K from "../model/kernels.ts";
import { perfettoPieces } from "./perfetto.ts";

interface Event {
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
  readonly dur?: number;
  readonly name: string;
  readonly args?: Record<string, unknown>;
}

function rankTrace(rank: number, aheadNs: bigint, name = "gemm"): K.RankKernels {
  const ends = [300, 800, 1_300, 1_900];
  return {
    ...testTrace({
      rank,
      steps: [[-50, 2_000]],
      kernels: [
        { name, at: 10, dur: 80 },
        ...ends.map((end, seq) => ({
          name: "ncclDevKernel_AllReduce",
          at: end - 100 - 10 * rank,
          dur: 100 + 10 * rank,
          stream: 20,
          collective: { operation: "allreduce", ranks: [0, 1], numel: 4, seq },
        })),
      ],
      calls: [{ name: "cudaDeviceSynchronize", kind: K.SYNCHRONIZE, at: 400, dur: 90 }],
      host: [{ name: 'say "hi"\u2028</script>', kind: K.DATA_LOADER, at: 500, dur: 40 }],
    }),
    epochNs: 1_794_704_609_424_650_000n + aheadNs,
  };
}

function merged(traces: readonly K.RankKernels[]): {
  pieces: string[];
  events: Event[];
  otherData: Record<string, string>;
} {
  const of = traces.map((trace) => [trace.rank!, trace] as const);
  const pieces = [...perfettoPieces(of, kernelClocks(of))];
  const file = JSON.parse(pieces.join("")) as {
    traceEvents: Event[];
    otherData: Record<string, string>;
  };
  return { pieces, events: file.traceEvents, otherData: file.otherData };
}

describe("the merged trace", () => {
  const traces = [rankTrace(0, 0n), rankTrace(1, 250_000n)];
  const { events, otherData } = merged(traces);

  test("is JSON with every event of every rank, a process a rank", () => {
    const complete = events.filter(({ ph }) => ph === "X");
    const expected = traces.reduce(
      (sum, { gpu, calls, hostEvents, steps, matrixOps }) =>
        sum + gpu.count + calls.count + hostEvents.count + steps.count + matrixOps.count,
      0,
    );
    expect(complete).toHaveLength(expected);
    expect(new Set(complete.map(({ pid }) => pid))).toEqual(new Set([0, 1]));
    const names = events.filter(({ name }) => name === "process_name");
    expect(names.map(({ args }) => args!["name"])).toEqual(["rank 0", "rank 1"]);
    expect(complete.some(({ name }) => name === 'say "hi"\u2028</script>')).toBe(true);
  });

  test("names every track, and no two processes share one", () => {
    const owner = new Map<number, number>();
    for (const { ph, pid, tid } of events) {
      if (ph !== "X") continue;
      expect(owner.get(tid) ?? pid).toBe(pid);
      owner.set(tid, pid);
    }
    const named = new Set(
      events.filter(({ name }) => name === "thread_name").map(({ tid }) => tid),
    );
    for (const tid of owner.keys()) expect(named).toContain(tid);
  });

  test("begins at zero and lasts as long as the ranks do", () => {
    const complete = events.filter(({ ph }) => ph === "X");
    const starts = complete.map(({ ts }) => ts);
    expect(Math.min(...starts)).toBe(0);
    expect(Math.max(...complete.map(({ ts, dur }) => ts + dur!))).toBeCloseTo(2_000, 3);
  });

  test("has collectives end at one moment on all ranks, to the nanosecond", () => {
    const ends = [0, 1].map((rank) =>
      events
        .filter(({ ph, pid, name }) => ph === "X" && pid === rank && name.startsWith("nccl"))
        .map(({ ts, dur }) => Math.round(1_000 * (ts + dur!))),
    );
    expect(ends[0]).toHaveLength(4);
    expect(ends[1]).toEqual(ends[0]);
  });

  test("says how far each clock was moved", () => {
    expect(otherData).toMatchObject({ "rank 0": "-125.000 us", "rank 1": "+125.000 us" });
  });

  test("is handed over in pieces of bounded size", () => {
    const many = testTrace({
      rank: 0,
      steps: [[0, 1e6]],
      kernels: Array.from({ length: 3_000 }, (_, k) => ({ name: `k${k % 7}`, at: 10 * k, dur: 5 })),
    });
    const { pieces } = merged([many]);
    expect(pieces.length).toBeGreaterThan(5);
    for (const piece of pieces) expect(piece.length).toBeLessThan(70_000);
  });

  test("of no traces is still a trace", () => {
    expect(merged([]).events).toEqual([]);
  });
});
