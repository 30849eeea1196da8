import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { UserError } from "../../base/errors.ts";
import { quietIterationNs, severitiesFromCosts } from "./costs.ts";
import { simulate } from "./engine.ts";
import { parseFault } from "./fault-spec.ts";
import { ALL_GATHER, COMPUTE, REDUCE_SCATTER } from "./program.ts";
import { completeSpec, type ClusterSpec } from "./spec.ts";

const SMALL = {
  gpus: 16,
  tp: 2,
  pp: 2,
  iterations: 4,
  microBatches: 4,
  layersPerStage: 2,
  hidden: 8192,
  issueNs: 60_000,
} as const;
const SHARDED = { gpus: 16, tp: 1, pp: 1, dp: 16, fullyShard: true, layersPerStage: 3 } as const;

/** The times of all operators of a job, as one number. */
function digest(given: Partial<ClusterSpec>): string {
  const sum = createHash("sha256");
  for (const { stages } of simulate(completeSpec(given)).iterations())
    for (const { issueNs, startNs, endNs } of stages)
      for (const column of [issueNs, startNs, endNs]) sum.update(new Uint8Array(column.buffer));
  return sum.digest("hex").slice(0, 16);
}

describe("what is there for traces of regressions", () => {
  test("leaves every other job as it was, to the bit", () => {
    const jobs = [
      { gpus: 16, tp: 2, pp: 2, iterations: 4, microBatches: 2, layersPerStage: 2 },
      { gpus: 16, tp: 1, pp: 2, ep: 8, overlapGradients: false, iterations: 4, layersPerStage: 2 },
    ];
    expect(jobs.map(digest)).toEqual(DIGESTS);
  });

  test("Python stacks and kinds of models change no time", () => {
    const plain = digest(SMALL);
    expect(digest({ ...SMALL, pythonStacks: true, model: "vision" })).toBe(plain);
    expect(digest({ ...SMALL, imbalance: 0.5 })).not.toBe(plain);
  });

  test("other machines are a little faster or slower, the same from step to step", () => {
    const stepsOf = (seed: number): number[] => {
      const spec = completeSpec({ ...SMALL, noise: 0, placement: 1, seed, iterations: 9 });
      return [...simulate(spec).iterations()].map(({ startNs, endNs }) => endNs - startNs);
    };
    // Now and then the allocator has to ask for memory.
    const usual = (steps: readonly number[]): number => Math.min(...steps.slice(1));
    const steps = stepsOf(1);
    expect(steps.filter((ns) => ns < 1.0001 * usual(steps)).length).toBeGreaterThan(3);
    const ratio = usual(stepsOf(2)) / usual(steps);
    expect(ratio).not.toBe(1);
    expect(Math.abs(ratio - 1)).toBeLessThan(0.04);
  });
});

const DIGESTS: readonly string[] = ["de4e906cd1548da7", "ccaa9e8ffcb3a435"];

describe("cost=", () => {
  test.each([
    "synchronization:how=layer:cost=0.0266",
    "synchronization:how=micro-batch:cost=0.0266",
    "garbage-collection:how=now-and-then:cost=0.111",
    "user-program:how=package-check:cost=0.4286",
    "memory-management:cost=0.2346",
    "dataloader:cost=0.695",
    "minority-kernels:how=pe-act-norm:cost=0.264",
    "gemm-layout:cost=0.333",
    "network-slow:cost=0.15",
  ])("%s makes a step that much longer", (text) => {
    const spec = completeSpec({ ...SMALL, faults: [parseFault(text)] });
    const { faults } = severitiesFromCosts(spec);
    const cost = quietIterationNs(spec, faults) / quietIterationNs(spec, []) - 1;
    expect(Math.abs(cost / faults[0]!.cost - 1)).toBeLessThan(0.02);
  });

  test("is refused where the fault cannot cost so little, or so much", () => {
    const settle = (text: string, job: Partial<ClusterSpec>) => () =>
      severitiesFromCosts(completeSpec({ ...job, faults: [parseFault(text)] }));
    expect(settle("synchronization:how=layer:cost=0.001", SHARDED)).toThrow(UserError);
    expect(() => parseFault("gpu-slow:cost=0.1:severity=2")).toThrow(UserError);
    expect(() => parseFault("gpu-slow:how=layer")).toThrow(UserError);
  });

  test("a program that checks its packages goes on; one that fails does not", () => {
    const iterations = (text: string): number =>
      [...simulate(completeSpec({ ...SMALL, faults: [parseFault(text)] })).iterations()].length;
    expect(iterations("user-program:how=package-check:severity=3")).toBe(4);
    expect(iterations("user-program:from=2")).toBe(2);
  });
});

describe("a fully sharded job", () => {
  const simulation = simulate(
    completeSpec({ ...SHARDED, iterations: 1, microBatches: 2, noise: 0 }),
  );
  const program = simulation.programs[0]!;
  const ops = Array.from({ length: program.count }, (_, op) => op);

  test("gathers each layer before it computes it, while another computes", () => {
    const { lanes } = simulation.lanes;
    const [times] = [...simulation.iterations()];
    const { startNs, endNs } = times!.stages[0]!;
    const waiting = ops.filter((op) => program.waitsFor[op]! >= 0);
    // All layers forward, all but the last backward, twice.
    expect(waiting).toHaveLength(2 * (3 + 2));
    for (const op of waiting) {
      const gather = program.waitsFor[op]!;
      expect(program.kind[gather]).toBe(ALL_GATHER);
      expect(program.layer[gather]).toBe(program.layer[op]);
      const begins = startNs[op * lanes]! - program.computeNs[op]!;
      expect(begins).toBeGreaterThanOrEqual(endNs[gather * lanes]! - 1e-3);
    }
    const overlaps = waiting.filter((op) => {
      const next = ops.find((later) => later > op && program.kind[later] === ALL_GATHER);
      return next !== undefined && startNs[(op - 1) * lanes]! < startNs[op * lanes]!;
    });
    expect(overlaps.length).toBeGreaterThan(4);
  });

  test("scatters the gradients of every layer and micro-batch", () => {
    expect(ops.filter((op) => program.kind[op] === REDUCE_SCATTER)).toHaveLength(2 * 3);
    expect(
      ops.filter((op) => program.kind[op] === COMPUTE && program.layer[op]! >= 0),
    ).toHaveLength(12);
  });

  test("is data parallel only", () => {
    expect(() => completeSpec({ gpus: 16, tp: 2, fullyShard: true })).toThrow(UserError);
  });
});

describe("the launch queue", () => {
  test("holds the CPU back and never the GPU", () => {
    const run = (launchQueue: number) => {
      const simulation = simulate(completeSpec({ ...SMALL, iterations: 1, noise: 0, launchQueue }));
      const [times] = [...simulation.iterations()];
      return { ...times!.stages[0]!, endOfAll: times!.endNs, lanes: simulation.lanes.lanes };
    };
    const [free, held] = [run(0), run(24)];
    expect(held.endOfAll).toBeCloseTo(free.endOfAll, 3);
    for (let at = 24 * held.lanes; at < held.issueNs.length; at++)
      expect(held.issueNs[at]).toBeGreaterThanOrEqual(held.startNs[at - 24 * held.lanes]!);
    expect(Math.max(...held.issueNs)).toBeGreaterThan(Math.max(...free.issueNs));
  });
});
