/** The five metrics on traces small enough to work out by hand. */
import { describe, expect, test } from "vitest";
import { ALLOCATE, DATA_LOADER, GARBAGE_COLLECTION, SYNCHRONIZE } from "../../model/kernels.ts";
import { bandwidthRows, busFactor } from "./bandwidth.ts";
import { flopsRows } from "./flops.ts";
import { gemmOf, misalignedOf } from "./gemm-shape.ts";
import { issueLatencies } from "./issue-latency.ts";
import { measured } from "./measured.ts";
import { stallsOf } from "./stalls.ts";
import { stepsOf } from "./steps.ts";
import {
  testTrace,
  type TestKernel,
  type TestTrace,
} from "../../../test/support/methods/kernel-trace.ts";
import { voidShares } from "./void-share.ts";

const stallsIn = (given: TestTrace) => {
  const one = measured(testTrace(given));
  return stallsOf(one, voidShares(one).interSpans);
};

describe("steps", () => {
  const kernels = [{ name: "k", at: 10, dur: 5 }];

  test("are what the profiler marks; a hole between two marks belongs to neither", () => {
    const steps = stepsOf(
      testTrace({
        kernels,
        steps: [
          [0, 100],
          [100, 100],
          [900, 100],
        ],
      }),
    );
    expect(steps.from).toBe("profiler");
    expect(steps.startNs).toEqual([0, 100_000, 900_000]);
    expect(steps.endNs).toEqual([100_000, 200_000, 1_000_000]);
  });

  test("are told by the data loader where nothing marks them", () => {
    const host = [0, 200, 400].map((at) => ({ name: "next", kind: DATA_LOADER, at, dur: 10 }));
    const steps = stepsOf(testTrace({ kernels, host }));
    expect(steps.from).toBe("dataloader");
    expect(steps.startNs).toEqual([0, 200_000]);
  });

  test("are told by the period of the kernels where there is no loader either", () => {
    const sequence = ["a", "b", "c", "a", "d", "e", "f"];
    const repeated = Array.from({ length: 12 * sequence.length }, (_, i) => ({
      name: sequence[i % sequence.length]!,
      at: 10 * i,
      dur: 5,
    }));
    const steps = stepsOf(testTrace({ kernels: repeated }));
    expect(steps.from).toBe("period");
    expect(steps.endNs[0]! - steps.startNs[0]!).toBe(70_000);
  });

  test("are the whole trace at last", () => {
    expect(stepsOf(testTrace({ kernels })).from).toBe("whole");
  });
});

describe("FLOPS", () => {
  test("come from the dims of each kind of product", () => {
    const shape = (...dims: number[][]) => ({ dims, types: dims.map(() => "c10::Half") });
    expect(gemmOf("aten::mm", shape([4, 8], [8, 2]))).toMatchObject({ batch: 1, m: 4, k: 8, n: 2 });
    expect(gemmOf("aten::addmm", shape([2], [4, 8], [8, 2]))).toMatchObject({ m: 4, k: 8, n: 2 });
    expect(gemmOf("aten::bmm", shape([3, 4, 8], [3, 8, 2]))).toMatchObject({ batch: 3, m: 4 });
    expect(gemmOf("aten::linear", shape([5, 4, 8], [2, 8], [2]))).toMatchObject({
      m: 20,
      k: 8,
      n: 2,
    });
    expect(gemmOf("aten::mm", shape([4, 8], [9, 2]))).toBeNull();
    expect(gemmOf("aten::convolution", shape([1, 3, 8, 8], [4, 3, 3, 3]))).toBeNull();
  });

  test("of kernels that communication overlaps are counted apart", () => {
    const dims = [
      [1000, 1000],
      [1000, 1000],
    ];
    const gemm = (at: number, dur: number): TestKernel => ({ name: "nvjet", at, dur, dims });
    const reduce = { operation: "allreduce", ranks: [0, 1], numel: 8 };
    const kernels = [
      gemm(10, 20),
      gemm(50, 80),
      { name: "ncclDevKernel_AllReduce", at: 45, dur: 100, stream: 9, collective: reduce },
    ];
    const one = measured(testTrace({ kernels, steps: [[0, 200]] }));
    expect(flopsRows(one)).toMatchObject([
      { kernel: "aten::mm", tflops: 100, count: 2, overlapped: 1, share: 0.5 },
    ]);
  });

  test("a dimension that tensor cores cannot read is named with the size to pad it to (FLARE §7.3.2)", () => {
    const gemm = { batch: 1, m: 4096, k: 8192, n: 8484, elementBytes: 2 };
    expect(misalignedOf(gemm)).toEqual({ dimension: "n", size: 8484, paddedSize: 8512 });
    expect(misalignedOf({ ...gemm, n: 33936 })).toBeNull();
    expect(misalignedOf({ ...gemm, m: 1 })).toBeNull();
  });
});

describe("bus bandwidth", () => {
  const ranks = [0, 1];
  const trace = (rank: number, at: number, dur: number) =>
    measured(
      testTrace({
        rank,
        steps: [[0, 1000]],
        kernels: [
          { name: "elementwise", at: 0, dur: 1 },
          {
            name: "ncclDevKernel_AllReduce",
            at,
            dur,
            collective: { operation: "allreduce", ranks, numel: 1_000_000, seq: 5 },
          },
        ],
      }),
    );

  test("is that of the member who comes last: who comes first only waits", () => {
    const rows = bandwidthRows(
      new Map([
        [0, [trace(0, 100, 500)]],
        [1, [trace(1, 500, 100)]],
      ]),
    );
    // 2 MB in 100 µs, all-reduce of two: 20 GB/s.
    expect(rows.get(0)).toMatchObject([
      { collective: "allreduce", bytes: 2e6, busGBps: 20, isWhole: true },
    ]);
  });

  test("says when a member is missing, whose wait nobody can take out", () => {
    const rows = bandwidthRows(new Map([[0, [trace(0, 100, 500)]]]));
    expect(rows.get(0)).toMatchObject([{ isWhole: false }]);
  });

  test("has NCCL's factors", () => {
    expect(busFactor("allreduce", 8)).toBe(1.75);
    expect(busFactor("_allgather_base", 8)).toBe(0.875);
    expect(busFactor("_reduce_scatter_base", 4)).toBe(0.75);
    expect(busFactor("all_to_allv", 4)).toBe(0.75);
    expect(busFactor("broadcast", 4)).toBe(1);
    expect(busFactor("send/recv", 2)).toBe(1);
  });
});

test("issue latency is the kernel's start less its launch, of instrumented kernels only", () => {
  const kernels = [
    { name: "gemm", at: 100, dur: 10, issued: 40 },
    { name: "elementwise", at: 120, dur: 10, issued: 50 },
    {
      name: "ncclKernel_AllReduce_RING",
      at: 140,
      dur: 10,
      issued: 60,
      collective: { operation: "allreduce", ranks: [0, 1], numel: 1 },
    },
  ];
  const { ns, byCollective } = issueLatencies(measured(testTrace({ kernels, steps: [[0, 200]] })));
  expect([...ns]).toEqual([60_000, 80_000]);
  expect(byCollective.get("allreduce")).toEqual([80_000]);
});

describe("void percentages", () => {
  test("V_inter is the gap around the loader over the step; V_minority leaves it out (equations 1 and 2)", () => {
    const kernels = [
      { name: "gemm", at: 0, dur: 50 },
      { name: "gemm", at: 100, dur: 40, issued: 95 },
      { name: "elementwise", at: 140, dur: 30 },
    ];
    const host = [{ name: "next", kind: DATA_LOADER, at: 55, dur: 30 }];
    const { inter, minority } = voidShares(
      measured(testTrace({ kernels, host, steps: [[-10, 200]] })),
    );
    expect(inter).toEqual([50 / 200]);
    expect(minority).toEqual([30 / 150]);
  });

  test("rings' steps reach to the last collective of any stream; full traces' to the computing stream's end", () => {
    const reduce = { operation: "allreduce", ranks: [0, 1], numel: 1 };
    const kernels = [
      { name: "gemm", at: 0, dur: 50 },
      { name: "ncclKernel", at: 50, dur: 80, issued: 40, stream: 20, collective: reduce },
      { name: "gemm", at: 140, dur: 60, issued: 138 },
    ];
    const host = [{ name: "next", kind: DATA_LOADER, at: 132, dur: 4 }];
    const full = testTrace({ kernels, host, steps: [[0, 200]] });
    expect(voidShares(measured(full)).inter).toEqual([90 / 200]);
    expect(voidShares(measured({ ...full, coverage: "instrumented" })).inter).toEqual([10 / 200]);
  });

  test("a loader that the GPU does not wait for leaves no void", () => {
    const kernels = [
      { name: "gemm", at: 0, dur: 100 },
      { name: "gemm", at: 100, dur: 40, issued: 90 },
    ];
    const host = [{ name: "next", kind: DATA_LOADER, at: 20, dur: 60 }];
    expect(voidShares(measured(testTrace({ kernels, host, steps: [[-10, 200]] }))).inter).toEqual([
      0,
    ]);
  });

  test("a rank that waits in a receive is not held up between steps", () => {
    const receive = { operation: "recv", ranks: [0, 1], numel: 1, peer: 0 };
    const kernels = [
      {
        name: "ncclDevKernel_SendRecv",
        at: 10,
        dur: 300,
        issued: 5,
        stream: 9,
        collective: receive,
      },
      { name: "gemm", at: 310, dur: 50, issued: 20 },
    ];
    const { inter } = voidShares(measured(testTrace({ rank: 1, kernels, steps: [[0, 400]] })));
    expect(inter[0]).toBeLessThan(0.03);
  });

  test("minority kernels beside a matrix kernel cost nothing", () => {
    const kernels = [
      { name: "gemm", at: 0, dur: 100 },
      { name: "elementwise", at: 20, dur: 50, stream: 9 },
    ];
    expect(voidShares(measured(testTrace({ kernels, steps: [[-10, 200]] }))).minority).toEqual([0]);
  });
});

describe("stalls", () => {
  test("belong to what the CPU did while the stream was idle", () => {
    const kernels = [
      { name: "gemm", at: 0, dur: 50 },
      { name: "gemm", at: 205, dur: 50, issued: 200 },
      { name: "gemm", at: 405, dur: 50, issued: 400 },
    ];
    const stalls = stallsIn({
      kernels,
      steps: [[-10, 500]],
      host: [{ name: "Python GC", kind: GARBAGE_COLLECTION, at: 60, dur: 130 }],
      calls: [{ name: "cudaMalloc", kind: ALLOCATE, at: 260, dur: 120 }],
    });
    expect(stalls.intra["garbage-collection"][0]).toBeGreaterThan(120_000);
    expect(stalls.intra["memory-management"][0]).toBeGreaterThan(110_000);
    expect(stalls.intra.synchronization).toEqual([0]);
  });

  test("after a synchronisation all launches are late until the CPU leads again, and it is one stall", () => {
    const kernels = [
      { name: "gemm", at: 0, dur: 100, issued: -20 },
      { name: "elementwise", at: 120, dur: 5, issued: 115 },
      { name: "elementwise", at: 140, dur: 5, issued: 135 },
      { name: "gemm", at: 160, dur: 100, issued: 155 },
      { name: "gemm", at: 260, dur: 100, issued: 180 },
    ];
    const calls = [{ name: "cudaDeviceSynchronize", kind: SYNCHRONIZE, at: 10, dur: 92 }];
    const stalls = stallsIn({ kernels, calls, steps: [[-30, 500]] });
    expect(stalls.intra.synchronization).toEqual([15_000 + 10_000 + 10_000]);
    expect(stalls.names.synchronization.get("cudaDeviceSynchronize")).toBeDefined();
  });

  test("a kernel that waits for others was launched long before: no stall", () => {
    const kernels = [
      { name: "gemm", at: 0, dur: 50 },
      { name: "gemm", at: 900, dur: 50, issued: 20 },
    ];
    const { intra, inter } = stallsIn({ kernels, steps: [[-10, 1000]] });
    const sum = [...Object.values(intra), ...Object.values(inter)]
      .flat()
      .reduce((a, b) => a + b, 0);
    expect(sum).toBeLessThan(10_000);
  });
});
