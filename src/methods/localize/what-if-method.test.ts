import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { seeded } from "../../base/random.ts";
import type { Accusation, NewFinding } from "../../model/finding.ts";
import type { Job } from "../../model/job.ts";
import type { Pass, TestJob } from "../../../eval/what-if/schedule.ts";
import { testTrace } from "../../../eval/what-if/trace.ts";
import { whatIfMethod } from "./what-if-method.ts";
import { runs } from "../../../test/support/cases.ts";

const LAYOUTS = fc.record({
  replicas: fc.integer({ min: 2, max: 4 }),
  stages: fc.integer({ min: 2, max: 4 }),
  microBatches: fc.integer({ min: 4, max: 10 }),
  seed: fc.nat(1e6),
  fromLastArrival: fc.boolean(),
});
const STEPS = 6;
const SQUARE = { replicas: 4, stages: 4, microBatches: 8, steps: STEPS };

function findings(job: TestJob): NewFinding[] {
  const asked = { stageOperations: [testTrace(job)] } as unknown as Job;
  expect(whatIfMethod.applies(asked)).toBe(true);
  const env = { signal: new AbortController().signal, progress: () => {} };
  return [...(whatIfMethod.run(asked, env) as Iterable<NewFinding>)];
}

const accused = (job: TestJob): readonly Accusation[] => findings(job)[0]!.accuses;

/** Log-normal lengths, the same for both passes and all stages of a micro-batch. */
function lengths(seed: number, spread: number): (pass: Pass) => number {
  const known = new Map<string, number>();
  const random = seeded(seed);
  return ({ step, replica, microBatch }) => {
    const key = `${step} ${replica} ${microBatch}`;
    const gauss = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    const length = known.get(key) ?? Math.exp(spread * gauss);
    known.set(key, length);
    return length;
  };
}

describe("localize/what-if", () => {
  it("accuses a slow worker and nobody else", () => {
    fc.assert(
      fc.property(
        LAYOUTS,
        fc.nat(15),
        fc.double({ min: 1.6, max: 4, noNaN: true }),
        (job, at, by) => {
          const [slowReplica, slowStage] = [at % job.replicas, at % job.stages];
          const accuses = accused({
            ...job,
            steps: STEPS,
            factor: ({ replica, stage }) =>
              replica === slowReplica && stage === slowStage ? by : 1,
          });
          expect(accuses).toHaveLength(1);
          expect(accuses[0]).toMatchObject({
            kind: "fail-slow",
            type: "rank",
            cause: "gpu-slow",
            ranks: [slowStage * job.replicas + slowReplica],
          });
        },
      ),
      { seed: 11, numRuns: runs(15, 40) },
    );
  });

  it("accuses a worker that turned slow on the way, not its stage", () => {
    const [accusation, ...others] = accused({
      ...SQUARE,
      factor: ({ step, replica, stage }) => (replica === 1 && stage === 3 && step >= 3 ? 2.5 : 1),
    });
    expect(accusation).toMatchObject({ kind: "fail-slow", type: "rank", ranks: [13] });
    expect(others).toEqual([]);
  });

  it("accuses a long last stage with all its ranks", () => {
    fc.assert(
      fc.property(LAYOUTS, fc.double({ min: 1.5, max: 3, noNaN: true }), (job, by) => {
        const last = job.stages - 1;
        const accuses = accused({
          ...job,
          steps: STEPS,
          factor: ({ stage }) => (stage === last ? by : 1),
        });
        expect(accuses).toHaveLength(1);
        expect(accuses[0]).toMatchObject({
          kind: "regression",
          type: "stage",
          cause: "stage-imbalance",
          ranks: Array.from({ length: job.replicas }, (_, r) => last * job.replicas + r),
        });
      }),
      { seed: 12, numRuns: runs(15, 40) },
    );
  });

  it("accuses the data, and no rank, where sequences differ in length", () => {
    fc.assert(
      fc.property(LAYOUTS, fc.double({ min: 0.35, max: 0.6, noNaN: true }), (job, spread) => {
        const accuses = accused({ ...job, steps: STEPS, factor: lengths(job.seed, spread) });
        expect(accuses[0]).toMatchObject({
          kind: "regression",
          type: "data",
          cause: "data-imbalance",
          ranks: [],
        });
        expect(accuses.some(({ type }) => type === "rank")).toBe(false);
      }),
      { seed: 13, numRuns: runs(15, 40) },
    );
  });

  it("names both where sequences differ and the last stage is long, the data first", () => {
    const length = lengths(3, 0.35);
    const accuses = accused({
      ...SQUARE,
      factor: (pass) => length(pass) * (pass.stage === 3 ? 1.8 : 1),
    });
    expect(accuses.map(({ cause }) => cause)).toEqual(["data-imbalance", "stage-imbalance"]);
    expect(accuses[0]!.weight).toBeGreaterThan(accuses[1]!.weight);
  });

  it("puts the stage first where sequences differ little", () => {
    const length = lengths(3, 0.1);
    const accuses = accused({
      ...SQUARE,
      factor: (pass) => length(pass) * (pass.stage === 3 ? 2 : 1),
    });
    expect(accuses[0]!.cause).toBe("stage-imbalance");
  });

  it("accuses all of several slow workers, though each hides the others", () => {
    const accuses = accused({
      replicas: 8,
      stages: 2,
      microBatches: 6,
      steps: STEPS,
      factor: ({ replica, stage }) => (stage === 0 && (replica === 1 || replica === 5) ? 2 : 1),
    });
    expect(accuses.flatMap(({ ranks }) => ranks).toSorted((a, b) => a - b)).toEqual([1, 5]);
    expect(accuses.every(({ cause }) => cause === "gpu-slow")).toBe(true);
  });

  it("is less sure where no other replica could tell a slow device from a long stage", () => {
    const job = { replicas: 1, stages: 4, microBatches: 8, steps: STEPS };
    const [middle] = accused({ ...job, factor: ({ stage }) => (stage === 1 ? 2 : 1) });
    expect(middle).toMatchObject({ type: "rank", ranks: [1], cause: "gpu-slow" });
    const [last] = accused({ ...job, factor: ({ stage }) => (stage === 3 ? 2 : 1) });
    expect(last).toMatchObject({ type: "stage", ranks: [3], cause: "stage-imbalance" });
    expect(Math.max(middle!.weight, last!.weight)).toBeLessThan(0.5);
  });

  it("accuses nobody of a healthy job, and clears nobody", () => {
    fc.assert(
      fc.property(LAYOUTS, fc.constantFrom(0, 0.01, 0.03), (job, noise) => {
        const [finding] = findings({ ...job, steps: STEPS, noise });
        expect(finding!.accuses).toEqual([]);
        expect(finding!.clears).toEqual([]);
        expect(finding!.says).toMatch(/^steps take 1\.0\d times as long/);
      }),
      { seed: 14, numRuns: runs(15, 40) },
    );
  });

  it("does not ask where nothing tells stages and replicas", () => {
    const trace = testTrace({ replicas: 1, stages: 1, microBatches: 1, steps: 1 });
    const unknown = { ...trace, stage: trace.stage.map(() => -1) };
    const none = { stageOperations: [] } as unknown as Job;
    expect(whatIfMethod.applies(none)).toBe(false);
    expect(whatIfMethod.applies({ ...none, stageOperations: [unknown] })).toBe(false);
  });
});
