import { describe, expect, it } from "vitest";
import { memoryOutput } from "../../../test/support/simulate/memory-output.ts";
import { completeSpec, type ClusterSpec } from "../../simulate/cluster/spec.ts";
import { runSimulation } from "../../simulate/run.ts";
import { buildJob } from "../../ingest/build-job.ts";
import { readFiles } from "../../../test/support/in-memory.ts";
import { EVALUATION } from "../../model/series.ts";
import { callTable, type Call } from "../../../test/support/methods/call-table.ts";
import { operatorSeries, seriesOf, type OperatorSeries } from "./operator-series.ts";
import { few } from "../../../test/support/cases.ts";

const tensor: Call = { group: 1, name: "all_reduce", elements: 131_072, ms: 1 };
const gradients: Call = { group: 2, name: "reduce_scatter", elements: 1e6, ms: 2 };
const norm: Call = { group: 0, name: "all_reduce", elements: 1, ms: 1 };
const parameters: Call = { group: 2, name: "all_gather", elements: 1e6, ms: 2 };
/** The optimizer lies in front of the first call. */
const pass = (count: number, call = tensor): Call[] => Array.from({ length: count }, () => call);
const repeat = (calls: readonly Call[], times: number): Call[] =>
  Array.from({ length: times }, () => calls).flat();
const step = [gradients, norm, parameters];
/** `micro` micro-batches of 8 calls and a step: 8 × micro + 25 ms with the pause in front. */
const iteration = (micro: number, call = tensor): Call[] => [
  { ...call, ms: 20 },
  ...pass(8 * micro - 1, call),
  ...step,
];

function read(calls: readonly Call[], firstRecord = 0): OperatorSeries {
  const found = seriesOf(callTable(calls, firstRecord));
  expect(found).not.toBeNull();
  return found!;
}

describe("iterations from operators", () => {
  it("begin with the second, number as a log does and last from one first call to the next", () => {
    const { series, periods } = read(repeat(iteration(4), 10));
    expect([...series.iteration]).toEqual([2, 3, 4, 5, 6, 7, 8, 9]);
    for (const ms of series.durationMs) expect(ms).toBeCloseTo(20 + 31 + 5, 6);
    expect(periods[0]).toBe(35);
    expect(series.basis).toBe("operators");
    expect(series.source).toBe("dump_3, rank 3");
    expect(series.endMs[1]! - series.endMs[0]!).toBeCloseTo(56, 3);
  });

  it("show the slow one", () => {
    const slow = iteration(4).map((call, i) => (i === 9 ? { ...call, ms: 100 } : call));
    const { series } = read([...repeat(iteration(4), 6), ...slow, ...repeat(iteration(4), 5)]);
    expect(series.iteration[series.durationMs.indexOf(Math.max(...series.durationMs))]).toBe(7);
  });

  it("do not begin with initialisation", () => {
    const broadcast = { group: 2, name: "broadcast", elements: 1e6, ms: 3 };
    const { series } = read([norm, ...repeat([broadcast], 40), ...repeat(iteration(2), 8)]);
    expect([...series.iteration]).toEqual([2, 3, 4, 5, 6, 7]);
  });

  it("are no evaluations, even long ones, which mark the iteration that they delay", () => {
    for (const passes of [6, 400]) {
      const evaluation = pass(passes * 4);
      const calls = [repeat(iteration(4), 6), evaluation, repeat(iteration(4), 7)].flat();
      const { series } = read(calls);
      expect([...series.iteration]).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
      const marked = series.between.findIndex((bits) => (bits & EVALUATION) !== 0);
      expect(series.iteration[marked]).toBe(7);
      expect(series.between.filter((bits) => bits !== 0).length).toBe(1);
    }
  });

  it("are not what lies between two regular evaluations, checkpoints or logs", () => {
    const gather = { group: 3, name: "all_gather", elements: 1e8, ms: 9 };
    const loss = { group: 2, name: "all_reduce", elements: 4, ms: 1 };
    for (const extra of [pass(40), [gather, gather], [loss]]) {
      const { series, periods } = read(repeat([...repeat(iteration(3), 10), ...extra], 5));
      expect(periods[0]).toBe(27);
      expect(series.iteration.at(-1)).toBe(50);
      expect(series.iteration.length).toBe(49);
    }
  });

  it("go on when accumulation or the size of the batch changes", () => {
    const fewer = read([...repeat(iteration(8), 6), ...repeat(iteration(3), 6)]).series;
    expect([...fewer.iteration]).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    expect([...fewer.between].some((bits) => bits !== 0)).toBe(false);
    expect(fewer.durationMs[0]! - fewer.durationMs[9]!).toBeCloseTo(40, 6);
    const larger = { ...tensor, elements: 262_144, ms: 2 };
    const sized = read([...repeat(iteration(4), 6), ...repeat(iteration(4, larger), 6)]).series;
    expect([...sized.iteration]).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
  });

  it("are the pipeline's, not its passes', without any gradients", () => {
    const p2p = (peer: number, isSend: boolean): Call => ({
      group: 3,
      name: isSend ? `send 1->${peer}` : `recv 1<-${peer}`,
      elements: 131_072,
      ms: 2,
      peer,
      isSend,
    });
    const forward = [p2p(0, false), p2p(2, true)];
    const backward = [p2p(2, false), p2p(0, true)];
    const schedule = [
      ...repeat(forward, 2),
      ...repeat([...forward, ...backward], 10),
      ...repeat(backward, 2),
    ];
    expect(read(repeat(schedule, 6)).periods[0]).toBe(48);
    expect(read(repeat([...schedule, norm], 6)).periods[0]).toBe(49);
  });

  it("are the inner level where only a small call marks the outer one of a sharded model", () => {
    const gather = (elements: number): Call => ({ group: 0, name: "all_gather", elements, ms: 1 });
    const scatter = (elements: number): Call => ({ ...gradients, group: 0, elements, ms: 1 });
    const layers = [5e6, ...pass(4).map(() => 1e6)];
    const micro = [...layers.map(gather), ...layers.map(gather), ...layers.map(scatter)];
    expect(read(repeat([...repeat(micro, 4), norm], 6)).periods).toEqual(
      expect.arrayContaining([15, 61]),
    );
    expect(read(repeat([...repeat(micro, 4), norm], 6)).periods[0]).toBe(15);
  });

  it("are the whole, not its layers, where replicas of a sharded model reduce what each rank has of it", () => {
    const [shard, ranks] = [200_000, 4];
    const gather = (size: number): Call => ({
      group: 1,
      name: "all_gather",
      elements: size,
      ms: 1,
    });
    const backward = (size: number): Call[] => [
      gather(size),
      { group: 1, name: "reduce_scatter", elements: size, ms: 1 },
      { group: 2, name: "all_reduce", elements: size, ms: 1 },
    ];
    const sizes = [130_000, ...pass(10).map(() => shard)];
    const step = [...sizes.map(gather), ...sizes.toReversed().flatMap(backward), norm];
    const source = callTable(repeat(step, 6), 0);
    const { name, names, inputNumel, outputNumel } = source.ops;
    for (const [i, id] of name.entries()) {
      if (names[id] === "all_gather") outputNumel[i]! *= ranks;
      if (names[id] === "reduce_scatter") inputNumel[i]! *= ranks;
    }
    expect(seriesOf(source)!.periods[0]).toBe(step.length);
  });

  it("repeat without their sizes, where every batch has its own", () => {
    const calls = Array.from({ length: 8 }, (_, i) =>
      iteration(4, { ...tensor, elements: 5000 + i }),
    );
    expect(read(calls.flat()).periods[0]).toBe(35);
  });

  it("are numbered by the groups' counters where the ring has lost the beginning", () => {
    const whole = repeat(iteration(4), 100);
    const kept = whole.length - 300;
    const { series } = read(whole, kept);
    expect(series.iteration.at(-1)).toBe(99);
    expect(series.iteration.length).toBe(7);
  });

  it("are not told where the record holds less than three, or nothing that repeats", () => {
    expect(seriesOf(callTable(repeat(iteration(16), 2), 0))).toBeNull();
    expect(seriesOf(callTable([], 0))).toBeNull();
    expect(seriesOf(callTable([norm, tensor], 0))).toBeNull();
  });
});

describe("iterations of simulated jobs", () => {
  const layouts: Partial<ClusterSpec>[] = [
    { tp: 1, pp: 1, dp: 4, microBatches: 2 },
    { tp: 2, pp: 1, dp: 1, microBatches: 4 },
    { tp: 1, pp: 4, dp: 1, microBatches: 8 },
    { tp: 2, pp: 4, dp: 1, microBatches: 4, schedule: "gpipe" },
    { tp: 1, pp: 2, dp: 2, microBatches: 1 },
    { tp: 2, pp: 2, dp: 2, microBatches: 16, schedule: "interleaved" },
    { tp: 2, pp: 2, dp: 2, microBatches: 8, sequenceParallel: false, overlapGradients: false },
    { tp: 1, pp: 2, dp: 4, ep: 2, microBatches: 4 },
    { tp: 2, pp: 1, dp: 1, cp: 2, microBatches: 4 },
    { tp: 1, pp: 2, dp: 1, cp: 2, microBatches: 32 },
  ];
  it.each(few(layouts, 4))("are within 1.2 %%: %j", (layout) => {
    const output = memoryOutput();
    const spec = completeSpec({ ...layout, iterations: 30, layersPerStage: 2, seed: 11 });
    const { iterationMs } = runSimulation(spec, ["flight-recorder"], output);
    const files = [...output.bytes].map(([name, bytes]) => ({ name, bytes }));
    const found = operatorSeries(buildJob(readFiles(files), null));
    expect(found.length).toBe(Math.min(16, spec.gpus));
    for (const { series } of found) {
      const truth = [...series.iteration].map((number) => iterationMs[number - 1]!);
      expect(Math.abs(mean(series.durationMs) / mean(truth) - 1)).toBeLessThan(0.012);
      expect(series.iteration.at(-1)).toBe(29);
    }
  });

  it("are read from sixteen ranks at most, some of every stage", () => {
    const output = memoryOutput();
    const spec = completeSpec({
      tp: 2,
      pp: 4,
      dp: 8,
      microBatches: 2,
      iterations: 8,
      layersPerStage: 1,
    });
    runSimulation(spec, ["flight-recorder"], output);
    const files = [...output.bytes].map(([name, bytes]) => ({ name, bytes }));
    const ranks = operatorSeries(buildJob(readFiles(files), null)).map(
      ({ series }) => series.rank!,
    );
    expect(ranks.length).toBe(16);
    expect(new Set(ranks.map((rank) => Math.floor(rank / 16))).size).toBe(4);
  });
});

function mean(values: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i]!;
  return sum / values.length;
}
