/** What regressions leave in traces (FLARE Tables 4 and 5), as the reader sees it. */
import { describe, expect, test } from "vitest";
import { kinetoSink } from "../../ingest/kineto.ts";
import * as K from "../../model/kernels.ts";
import { severitiesFromCosts } from "../cluster/costs.ts";
import { simulate } from "../cluster/engine.ts";
import { parseFault } from "../cluster/fault-spec.ts";
import { completeSpec, type ClusterSpec } from "../cluster/spec.ts";
import { emitKineto } from "./kineto.ts";
import { memoryOutput } from "../../../test/support/simulate/memory-output.ts";

const JOB: Partial<ClusterSpec> = {
  gpus: 8,
  tp: 2,
  pp: 1,
  iterations: 3,
  microBatches: 2,
  layersPerStage: 2,
  hidden: 8192,
  sequence: 8192,
  issueNs: 80_000,
  sharesByFlops: true,
  noise: 0,
};
const SHARDED = { gpus: 8, tp: 1, pp: 1, dp: 8, fullyShard: true, hidden: 4096 } as const;

/** Steps 2 and 3 of some ranks. */
function traces(fault: string, more: Partial<ClusterSpec> = {}, ranks = [0]): K.RankKernels[] {
  const faults = fault === "" ? [] : [parseFault(fault)];
  const simulation = simulate(severitiesFromCosts(completeSpec({ ...JOB, ...more, faults })));
  const output = memoryOutput();
  const emitter = emitKineto(simulation, output, { ranks, steps: [2, 3] });
  for (const times of simulation.iterations()) emitter.iteration(times);
  emitter.end();
  return [...output.bytes].map(([name, bytes]) => {
    const sink = kinetoSink(name);
    sink.push(bytes);
    const { kernels, defects } = sink.end();
    expect(defects).toEqual([]);
    return kernels![0]!;
  });
}
const trace = (fault: string, more?: Partial<ClusterSpec>): K.RankKernels =>
  traces(fault, more)[0]!;

const rows = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const callsOf = ({ calls }: K.RankKernels, kind: number): number[] =>
  rows(calls.count).filter((i) => calls.kind[i] === kind);
const hostOf = ({ hostEvents }: K.RankKernels, kind: number): number[] =>
  rows(hostEvents.count).filter((i) => hostEvents.kind[i] === kind);
const total = (of: Float64Array, which: readonly number[]): number =>
  which.reduce((sum, i) => sum + of[i]!, 0);
const sorted = (values: readonly number[]): number[] => values.toSorted((a, b) => a - b);
/** Milliseconds from launch to start, ascending. */
const latencies = ({ gpu, calls }: K.RankKernels): number[] =>
  sorted(rows(gpu.count).map((i) => (gpu.startNs[i]! - calls.startNs[gpu.launch[i]!]!) / 1e6));
const stepNs = ({ steps }: K.RankKernels): number => steps.startNs[1]! - steps.startNs[0]!;
const isGemm = ({ names, gpu }: K.RankKernels, i: number): boolean =>
  /nvjet|gemm/.test(names[gpu.name[i]!]!);

/** Products with the vocabulary: the program gives them a time of their own (LOSS_LAYERS). */
const isLoss = (...dims: readonly number[]): boolean =>
  dims.includes(32_000) || dims.includes(8000);

/** Kernels outside the instrumented set (FLARE §5.2.2) over the step; nothing overlaps without gradients in flight. */
function minorityShare(one: K.RankKernels): number {
  const { gpu, names, steps } = one;
  const small = rows(gpu.count).filter(
    (i) => gpu.kind[i] === K.COMPUTE && !/nvjet|gemm|flash::/.test(names[gpu.name[i]!]!),
  );
  return total(gpu.durNs, small) / (steps.startNs[1]! + steps.durNs[1]! - steps.startNs[0]!);
}

describe("a healthy trace", () => {
  test("has the CPU run ahead: latencies spread over the step (FLARE §6.4)", () => {
    const one = trace("");
    const ms = latencies(one);
    expect(ms.at(-1)).toBeGreaterThan((0.5 * stepNs(one)) / 1e6);
    expect(ms[Math.floor(ms.length / 2)]).toBeGreaterThan((0.2 * stepNs(one)) / 1e6);
  });

  test("has long launches where the queue is full, and no longer latencies than it allows", () => {
    const held = trace("", { launchQueue: 12 });
    const long = callsOf(held, K.LAUNCH).filter((i) => held.calls.durNs[i]! > 1e6);
    expect(long.length).toBeGreaterThan(4);
    const { startNs, durNs, thread } = held.calls;
    const free = new Map<number, number>();
    for (const i of rows(held.calls.count)) {
      expect(startNs[i]).toBeGreaterThanOrEqual(free.get(thread[i]!) ?? 0);
      free.set(thread[i]!, startNs[i]! + durNs[i]!);
    }
    expect(latencies(held).at(-1)).toBeLessThan(0.6 * latencies(trace("")).at(-1)!);
    expect(stepNs(held) / stepNs(trace(""))).toBeCloseTo(1, 6);
  });

  test("has Python functions only where stacks are recorded, as long as what they hold", () => {
    expect(hostOf(trace(""), K.PYTHON_FUNCTION)).toEqual([]);
    const one = trace("", { pythonStacks: true });
    const names = hostOf(one, K.PYTHON_FUNCTION).map((i) => one.names[one.hostEvents.name[i]!]!);
    expect(names.some((name) => name.endsWith("train_step"))).toBe(true);
    expect(names.some((name) => name.endsWith("forward_step"))).toBe(true);
  });

  test("of embeddings in host memory has nothing on the GPU while they are looked up", () => {
    const lookup = { embeddingNs: 2e7, model: "recommendation", tp: 1, dp: 8 } as const;
    const [slow, plain] = [trace("", lookup), trace("", { ...lookup, embeddingNs: 0 })];
    expect(stepNs(slow) - stepNs(plain)).toBeGreaterThan(1e7);
    expect(slow.names.some((name) => name.includes("flash"))).toBe(false);
  });

  test("of images of many sizes has shapes that follow, and the same FLOPS whatever the size", () => {
    const [a, b] = traces(
      "",
      { ...SHARDED, model: "vision", imbalance: 0.6, microBatches: 4 },
      [0, 1],
    );
    const speeds: number[] = [];
    const tokens = new Set<number>();
    for (const one of [a!, b!]) {
      for (const i of rows(one.gpu.count).filter((row) => one.gpu.matrixOp[row]! >= 0)) {
        if (!isGemm(one, i)) continue;
        const { dims } = one.shapes[one.matrixOps.shape[one.gpu.matrixOp[i]!]!]!;
        const [[m, k], [, n]] = dims as [[number, number], [number, number]];
        if (isLoss(m, k, n)) continue;
        if (k === 4096) tokens.add(m);
        speeds.push((2 * m * k * n) / one.gpu.durNs[i]!);
      }
    }
    expect(tokens.size).toBeGreaterThan(2);
    expect(sorted(speeds).at(-1)! / sorted(speeds)[0]!).toBeLessThan(1.15);
  });
});

describe("a regression in a trace", () => {
  test("synchronization: a wait a pass or a layer, and issue latencies collapse", () => {
    const healthy = latencies(trace(""));
    const middle = (ms: readonly number[]): number => ms[Math.floor(ms.length / 2)]!;
    for (const [how, perStep] of [
      ["micro-batch", 4],
      ["layer", 4],
    ] as const) {
      const one = trace(`synchronization:how=${how}:cost=0.0266`);
      // One more at the end of each step, as in health.
      expect(callsOf(one, K.SYNCHRONIZE)).toHaveLength(2 * (perStep + 1));
      expect(middle(latencies(one))).toBeLessThan(0.6 * middle(healthy));
      expect(stepNs(one) / stepNs(trace(""))).toBeCloseTo(1.0266, 3);
    }
  });

  test("garbage-collection: now and then, on each rank at another time, for long", () => {
    const both = traces(
      "garbage-collection:how=now-and-then:cost=0.4",
      { iterations: 3 },
      [0, 1, 2, 3],
    );
    const starts = both.flatMap((one) => {
      const pauses = hostOf(one, K.GARBAGE_COLLECTION);
      expect(pauses.length).toBeLessThan(14);
      for (const i of pauses) expect(one.hostEvents.durNs[i]).toBeGreaterThan(5e6);
      return pauses.map((i) => one.hostEvents.startNs[i]! - one.steps.startNs[0]!);
    });
    expect(starts.length).toBeGreaterThan(4);
    expect(new Set(starts.map((ns) => Math.round(ns / 1e6))).size).toBeGreaterThan(3);
  });

  test("memory-management: blocks are freed and allocated, the first free waits for the GPU", () => {
    expect(callsOf(trace(""), K.ALLOCATE)).toEqual([]);
    const one = trace("memory-management:how=micro-batch:cost=0.2346");
    expect(callsOf(one, K.ALLOCATE)).toHaveLength(2 * 4 * 4);
    expect(callsOf(one, K.FREE)).toHaveLength(2 * 4 * 5);
    expect(stepNs(one) / stepNs(trace(""))).toBeCloseTo(1.2346, 2);
  });

  test("user-program: package checks in every layer, named where stacks are recorded", () => {
    const fault = "user-program:how=package-check:cost=0.4286";
    const one = trace(fault, { pythonStacks: true });
    const checks = hostOf(one, K.PYTHON_FUNCTION).filter((i) =>
      one.names[one.hostEvents.name[i]!]!.startsWith("importlib/metadata"),
    );
    expect(checks).toHaveLength(2 * 4 * 2);
    expect(stepNs(trace(fault)) / stepNs(trace(""))).toBeCloseTo(1.4286, 2);
  });

  test("dataloader: fetches hold the first kernels up, with the mask's function in them", () => {
    const one = trace("dataloader:how=mask:cost=0.695", { pythonStacks: true });
    const loads = hostOf(one, K.DATA_LOADER);
    expect(total(one.hostEvents.durNs, loads)).toBeGreaterThan(0.5 * stepNs(one));
    expect(one.names.some((name) => name.includes("get_ltor_masks"))).toBe(true);
    expect(stepNs(one) / stepNs(trace(""))).toBeCloseTo(1.695, 2);
  });

  test("gemm-layout: only the products with the odd width are slow (FLARE §7.3.2)", () => {
    const one = trace("gemm-layout:severity=2.88", { tp: 4 });
    const speeds = { odd: [] as number[], even: [] as number[] };
    for (const i of rows(one.gpu.count).filter((row) => isGemm(one, row))) {
      const { dims } = one.shapes[one.matrixOps.shape[one.gpu.matrixOp[i]!]!]!;
      const [[m, k], [, n]] = dims as [[number, number], [number, number]];
      if (isLoss(m, k, n)) continue;
      const isOdd = [m, k, n].includes(8484);
      speeds[isOdd ? "odd" : "even"].push((2 * m * k * n) / one.gpu.durNs[i]!);
    }
    const [slowest, fastest] = [sorted(speeds.even)[0]!, sorted(speeds.odd).at(-1)!];
    expect(fastest / slowest).toBeLessThan(0.5);
    // The kernels' FLOPS decline by 65.3 % at this severity.
    expect(1 - sorted(speeds.odd)[0]! / sorted(speeds.even).at(-1)!).toBeCloseTo(0.653, 1);
  });

  test("minority-kernels: V_minority rises by Table 5's steps, and the large kernels stay", () => {
    const costs = { "": 0, pe: 0.0581, "pe-act": 0.0706, "pe-act-norm": 0.2639 };
    const measured = Object.entries(costs).map(([how, cost]) => {
      const one = trace(how === "" ? "" : `minority-kernels:how=${how}:cost=${cost}`);
      const gemms = total(
        one.gpu.durNs,
        rows(one.gpu.count).filter((i) => isGemm(one, i)),
      );
      return { share: 100 * minorityShare(one), gemms };
    });
    const table = [9, 14, 15, 28];
    measured.forEach(({ share, gemms }, i) => {
      expect(Math.abs(share - table[i]!)).toBeLessThan(2);
      expect(gemms / measured[0]!.gemms).toBeCloseTo(1, 2);
    });
  });
});
