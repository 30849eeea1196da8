import { describe, expect, test } from "vitest";
import * as K from "../../../model/kernels.ts";
import type { Regression } from "../../../model/regression.ts";
import { GPU_ACTIVITIES } from "../../../model/trace-picture.ts";
import { profileRun } from "../profile-run.ts";
import { testTrace, type TestKernel } from "../../../../test/support/methods/kernel-trace.ts";
import { timelinePicture } from "./timeline.ts";

const PRODUCT = [
  [64, 64],
  [64, 64],
];

/**
 * Steps of 1,000 µs: a matrix product, an all-reduce that a small kernel hides half of, and a product that reaches into
 * the next step, so that the CPU leads again. In the second step a synchronisation makes the launch late.
 */
function rankTrace(rank: number, lateUs = 100): K.RankKernels {
  const step = (at: number): TestKernel[] => {
    const late = at === 1_000 ? lateUs : 0;
    const last = at + 470 + late;
    return [
      { name: "gemm", at: at + 50, dur: 200, issued: at + 20, dims: PRODUCT },
      {
        name: "ncclDevKernel_AllReduce",
        at: at + 250,
        dur: 200,
        issued: at + 30,
        stream: 20,
        collective: { operation: "allreduce", ranks: [0, 1], numel: 8, seq: at },
      },
      { name: "add", at: at + 350, dur: 100, issued: at + 40 },
      {
        name: "gemm",
        at: last,
        dur: at + 1_050 - last,
        issued: late > 0 ? last - 20 : at + 45,
        dims: PRODUCT,
      },
    ];
  };
  return testTrace({
    rank,
    steps: [0, 1_000, 2_000].map((at) => [at, 1_000] as const),
    kernels: [0, 1_000, 2_000].flatMap(step),
    calls: [{ name: "cudaDeviceSynchronize", kind: K.SYNCHRONIZE, at: 1_300, dur: lateUs + 140 }],
    host: [{ name: "DataLoader", kind: K.DATA_LOADER, at: 1_000, dur: 15 }],
  });
}

const regression = { cause: "synchronization", ranks: [1], share: 0.2 } as unknown as Regression;

function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

describe("the breakdown of a step", () => {
  test("names each moment once and adds up to the step", () => {
    const { breakdown } = profileRun([rankTrace(0)], "")!.ranks[0]!;
    const shares = Object.fromEntries(
      GPU_ACTIVITIES.map((activity) => [activity, breakdown![activity][1]!]),
    );
    expect(sum(Object.values(shares))).toBeCloseTo(1, 9);
    expect(shares["matrix"]).toBeCloseTo(0.05 + 0.2 + 0.43, 9);
    expect(shares["minority"]).toBeCloseTo(0.1, 9);
    expect(shares["communication"]).toBeCloseTo(0.1, 9);
    expect(shares["launch-gap"]).toBeCloseTo(0.1, 9);
    expect(shares["idle"]).toBeCloseTo(0.02, 9);
  });
});

describe("the timeline", () => {
  const kernels = [rankTrace(0), rankTrace(1, 120)];
  const run = profileRun(kernels, "")!;
  const picture = timelinePicture(kernels, run, [regression])!;

  test("is put around a step of the accused rank, which comes first", () => {
    expect(picture.rank).toBe(1);
    expect(picture.lanes.map(({ rank }) => rank)).toEqual([1, 0]);
    expect(picture.stepMs).toBeCloseTo(1, 9);
    expect(picture.windowMs).toBeCloseTo(1.06, 9);
  });

  test("adds up to the window on every lane, in every part of it", () => {
    for (const { gpu, ms } of picture.lanes) {
      expect(sum(Object.values(ms))).toBeCloseTo(picture.windowMs, 6);
      for (let part = 0; part < picture.parts; part++)
        expect(sum(GPU_ACTIVITIES.map((activity) => gpu[activity][part]!))).toBeCloseTo(1, 4);
    }
  });

  test("shows the call that held the CPU up, by name and place", () => {
    const call = picture.lanes[0]!.calls.find(({ activity }) => activity === "synchronization")!;
    expect(call.name).toBe("cudaDeviceSynchronize");
    expect(call.durMs).toBeCloseTo(0.26, 9);
    expect(call.startMs).toBeCloseTo(0.33, 3);
    expect(sum(picture.lanes[0]!.cpu.synchronization) * (1.06 / picture.parts)).toBeCloseTo(
      0.26,
      4,
    );
  });

  test("puts another rank's kernels at the same moments though its clock is an hour ahead", () => {
    const ahead = { ...kernels[1]!, epochNs: 3_600_000_000_000n };
    const moved = timelinePicture([kernels[0]!, ahead], run, [regression])!;
    expect(moved.lanes[1]!.isAligned).toBe(true);
    const whole = moved.lanes[1]!.gpu.matrix;
    picture.lanes[1]!.gpu.matrix.forEach((share, part) =>
      expect(whole[part]).toBeCloseTo(share, 3),
    );
  });

  test("puts ranks that share nothing at their own step of the same number", () => {
    const alone = testTrace({
      rank: 9,
      steps: [0, 1_000, 2_000].map((at) => [at + 40, 1_000] as const),
      kernels: [{ name: "gemm", at: 1_100, dur: 500 }],
    });
    const all = [...kernels, { ...alone, epochNs: 77_000_000_000n }];
    const drawn = timelinePicture(all, profileRun(all, "")!, [regression])!;
    const lane = drawn.lanes.find(({ rank }) => rank === 9)!;
    const own = lane.steps.find(({ number }) => number === drawn.step)!;
    expect(lane.isAligned).toBe(false);
    expect(own.startMs).toBeCloseTo(0.03, 6);
  });

  test("draws sixteen ranks and names the others", () => {
    const many = Array.from({ length: 20 }, (_, rank) => rankTrace(rank));
    const drawn = timelinePicture(many, profileRun(many, "")!, [])!;
    expect(drawn.lanes).toHaveLength(16);
    expect(drawn.leftOut).toHaveLength(4);
  });
});
