import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { StageOperations } from "../../../model/stage-operations.ts";
import { largest, mean } from "../../../base/numbers.ts";
import { dependenciesOf } from "./dependencies.ts";
import { idealDurations, ownDurations } from "./durations.ts";
import { gridOf } from "./grid.ts";
import { planOf, replay } from "./replay.ts";
import type { TestJob } from "../../../../eval/what-if/schedule.ts";
import { testTrace } from "../../../../eval/what-if/trace.ts";
import { whatIf, type WhatIf } from "./what-if.ts";
import { runs } from "../../../../test/support/cases.ts";

const of = (job: TestJob): WhatIf => whatIf([testTrace(job)])!;

const SQUARE = { replicas: 4, stages: 4, microBatches: 8, steps: 4 };
const JOBS = fc
  .record({
    replicas: fc.integer({ min: 1, max: 4 }),
    stages: fc.integer({ min: 1, max: 4 }),
    bunches: fc.integer({ min: 1, max: 3 }),
    chunks: fc.integer({ min: 1, max: 3 }),
    steps: fc.integer({ min: 1, max: 3 }),
    seed: fc.nat(1e6),
    noise: fc.constantFrom(0, 0.02, 0.3),
    fromLastArrival: fc.boolean(),
    overlaps: fc.boolean(),
    dropsFirst: fc.boolean(),
  })
  .map(({ bunches, chunks, ...job }): TestJob => ({
    ...job,
    // Interleaving takes micro-batches in bunches as large as the pipeline, and a pipeline.
    chunks: job.stages > 1 ? chunks : 1,
    microBatches: job.stages > 1 && chunks > 1 ? bunches * job.stages : bunches * 2 - 1,
  }));

describe("what if nobody straggled", () => {
  it("replays steps to the very times that they took, whatever the layout", () => {
    fc.assert(
      fc.property(JOBS, (job) => {
        const { recordedMs, actualMs, steps } = of(job);
        expect(steps.length).toBe(job.steps);
        const errors = recordedMs.map((ms, step) => Math.abs(ms - actualMs[step]!));
        expect(largest(errors, 0)).toBeLessThan(1e-6);
      }),
      { seed: 4, numRuns: runs(30, 120) },
    );
  });

  it("finds nothing to gain in a job whose operations are all alike", () => {
    fc.assert(
      fc.property(JOBS, (job) => {
        const { slowdown, byStage, byReplica, byKind } = of({ ...job, noise: 0 });
        for (const s of [slowdown, ...byStage, ...byReplica, ...byKind.map((k) => k.slowdown)]) {
          expect(s).toBeCloseTo(1, 9);
        }
      }),
      { seed: 5, numRuns: runs(20, 50) },
    );
  });

  it("tells of each replica what replaying it alone among ideal ones would", () => {
    fc.assert(
      fc.property(JOBS, (job) => {
        const operations = [testTrace(job)];
        const grid = gridOf(operations)!;
        const dependencies = dependenciesOf(grid);
        const plan = planOf(grid, dependencies)!;
        const own = ownDurations(grid, dependencies);
        const ideal = idealDurations(grid, own);
        const best = mean(replay(plan, ideal));
        whatIf(operations)!.byReplica.forEach((slowdown, replica) => {
          const mix = ideal.map((ms, i) => (i % grid.replicas === replica ? own[i]! : ms));
          expect(slowdown).toBeCloseTo(mean(replay(plan, mix)) / best, 12);
        });
      }),
      { seed: 7, numRuns: runs(20, 50) },
    );
  });

  it("does not care in which order rows come, or in how many files", () => {
    const job = { replicas: 3, stages: 2, microBatches: 4, steps: 3, noise: 0.1 };
    const whole = testTrace(job);
    const parts = [0, 1, 2, 3, 4, 5].map((rank) => picked(whole, (i) => whole.rank[i] === rank));
    const { share: _, ...expected } = whatIf([whole])!;
    const { share: __, ...found } = whatIf(parts.reverse())!;
    expect(found).toEqual(expected);
  });

  it("gives one slow worker the whole of what it causes", () => {
    const { slowdown, workers, workerShare, stageShares, passCorrelation } = of({
      ...SQUARE,
      factor: ({ replica, stage }) => (replica === 2 && stage === 1 ? 2.5 : 1),
    });
    expect(slowdown).toBeGreaterThan(1.5);
    expect(workers[0]).toMatchObject({ rank: 6, replica: 2, stage: 1 });
    expect(workerShare).toBeGreaterThan(0.95);
    expect(stageShares[3]).toBeLessThan(0.05);
    expect(Math.abs(passCorrelation)).toBeLessThan(0.2);
  });

  it("gives a long last stage to the stage, not to its workers", () => {
    const { slowdown, workerShare, stageShares, evenPassesShare, evenStagesShare } = of({
      ...SQUARE,
      factor: ({ stage }) => (stage === 3 ? 1.7 : 1),
    });
    expect(slowdown).toBeGreaterThan(1.2);
    expect(workerShare).toBeLessThan(0.1);
    expect(stageShares[3]).toBeGreaterThan(0.95);
    expect(evenStagesShare).toBeGreaterThan(0.9);
    expect(evenPassesShare).toBeLessThan(0.1);
  });

  it("gives sequences of different lengths to the micro-batches", () => {
    const { slowdown, workerShare, stageShares, passCorrelation, evenPassesShare } = of({
      ...SQUARE,
      factor: ({ step, replica, microBatch }) => length(step, replica, microBatch),
    });
    expect(slowdown).toBeGreaterThan(1.2);
    expect(passCorrelation).toBeGreaterThan(0.95);
    expect(evenPassesShare).toBeGreaterThan(0.8);
    expect(workerShare).toBeLessThan(0.2);
    expect(stageShares[3]).toBeLessThan(0.5);
  });

  it("does not take noise of devices for lengths of sequences", () => {
    const job = { ...SQUARE, noise: 0.2 };
    expect(Math.abs(of(job).passCorrelation)).toBeLessThan(0.2);
    // Slow workers and stages are slow both ways, and still no sequences.
    const slow = of({
      ...job,
      factor: ({ stage, replica }) => 1 + stage + (replica === 0 ? 1 : 0),
    });
    expect(Math.abs(slow.passCorrelation)).toBeLessThan(0.2);
  });

  it("leaves out steps in which operations are missing, and tells how many", () => {
    const trace = testTrace({ replicas: 2, stages: 2, microBatches: 3, steps: 4, noise: 0.1 });
    const row = trace.step.lastIndexOf(11);
    const { steps, incompleteSteps } = whatIf([picked(trace, (i) => i !== row)])!;
    expect([...steps]).toEqual([10, 12, 13]);
    expect(incompleteSteps).toBe(1);
  });

  it("says nothing of stages that nothing ties together, or of one that left no rows", () => {
    const trace = testTrace({ replicas: 2, stages: 3, microBatches: 3, steps: 2 });
    const isP2p = (i: number): boolean => /send|recv/.test(trace.kinds[trace.kind[i]!]!);
    expect(whatIf([picked(trace, (i) => !isP2p(i))])).toBeNull();
    expect(whatIf([picked(trace, (i) => trace.stage[i] !== 1)])).toBeNull();
    expect(whatIf([])).toBeNull();
  });

  it("never throws, whatever rows are missing", () => {
    const trace = testTrace({ replicas: 2, stages: 2, microBatches: 2, steps: 2, chunks: 2 });
    fc.assert(
      fc.property(fc.array(fc.nat(trace.step.length - 1), { maxLength: 200 }), (missing) => {
        const gone = new Set(missing);
        const result = whatIf([picked(trace, (i) => !gone.has(i))]);
        expect(result === null || result.slowdown > 0).toBe(true);
      }),
      { seed: 6, numRuns: runs(80, 200) },
    );
  });
});

/** Between 0.6 and 2, the same for both passes and all stages of a micro-batch. */
function length(step: number, replica: number, microBatch: number): number {
  const hash = Math.imul(step * 131 + replica * 17 + microBatch + 1, 2654435761) >>> 0;
  return 0.6 + 1.4 * (hash / 2 ** 32);
}

function picked(from: StageOperations, isKept: (row: number) => boolean): StageOperations {
  const rows = [...from.step.keys()].filter(isKept);
  const columns = ["rank", "replica", "stage", "step", "microBatch", "chunk", "seq"] as const;
  return {
    ...from,
    ...Object.fromEntries(
      columns.map((name) => [name, Int32Array.from(rows, (i) => from[name][i]!)]),
    ),
    kind: Uint8Array.from(rows, (i) => from.kind[i]!),
    startMs: Float64Array.from(rows, (i) => from.startMs[i]!),
    durationMs: Float64Array.from(rows, (i) => from.durationMs[i]!),
  };
}
