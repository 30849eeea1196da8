/** The laws of the simulated cluster, over random layouts, schedules, noise and faults. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  jobs,
  operators,
  programOf,
  run,
  slowFault,
  type Run,
} from "../../../test/support/simulate/jobs.ts";
import * as P from "./program.ts";
import { completeSpec } from "./spec.ts";
import { parseFault } from "./fault-spec.ts";
import { runs as casesOf } from "../../../test/support/cases.ts";

const SEED = 20261115;
const RUNS = casesOf(12, 60);

/** Healthy for a third of the cases, else with one slow-down. */
const runs: fc.Arbitrary<Run> = fc
  .record({ spec: jobs, choice: fc.nat(26), place: fc.nat(1000) })
  .map(({ spec, choice, place }) => {
    const faults = choice < 18 ? [slowFault(spec, choice, place)] : [];
    return run({ ...spec, faults });
  });

function law(name: string, check: (job: Run) => void, numRuns = RUNS): void {
  test(name, () => fc.assert(fc.property(runs, check), { seed: SEED, numRuns }));
}

/** A million operators: one expect a violation, not one an operator. */
function holds(condition: boolean, ...what: unknown[]): void {
  if (!condition) expect.fail(what.join(" "));
}

describe("operators with several members", () => {
  law("end together, and not before each member has started", (job) => {
    for (const parts of operators(job)) {
      for (const { start, end, iteration } of job.kept) {
        const common = end[parts[0]!.rank]![parts[0]!.op]!;
        for (const { rank, op } of parts) {
          holds(end[rank]![op] === common, "iteration", iteration, "rank", rank, "op", op);
          holds(start[rank]![op]! <= common, "iteration", iteration, "rank", rank, "op", op);
        }
      }
    }
  });

  law("make the innocent wait for as long as the last is late", (job) => {
    for (const parts of operators(job)) {
      for (const { start, end } of job.kept) {
        const latest = Math.max(...parts.map(({ rank, op }) => start[rank]![op]!));
        const shortest = Math.min(
          ...parts.map(({ rank, op }) => end[rank]![op]! - start[rank]![op]!),
        );
        for (const { rank, op } of parts) {
          const waits = end[rank]![op]! - start[rank]![op]! - shortest;
          holds(Math.abs(waits - (latest - start[rank]![op]!)) < 1e-3, rank, op, waits);
        }
      }
    }
  });
});

describe("a rank", () => {
  law("runs its synchronous operators in program order, one after the other", (job) => {
    for (let rank = 0; rank < job.spec.gpus; rank++) {
      const { count, async } = programOf(job, rank);
      for (const { start, end } of job.kept) {
        let free = 0;
        for (let op = 0; op < count; op++) {
          holds(start[rank]![op]! >= free, "rank", rank, "op", op);
          if (async[op] === 0) free = end[rank]![op]!;
        }
      }
    }
  });

  law("reduces its gradients one bucket after the other, and before the norm needs them", (job) => {
    for (let rank = 0; rank < job.spec.gpus; rank++) {
      const { count, async, role } = programOf(job, rank);
      for (const { start, end } of job.kept) {
        let free = 0;
        for (let op = 0; op < count; op++) {
          const isBucket = role[op] === P.DP && async[op] === 1;
          if (isBucket || role[op] === P.WORLD) holds(start[rank]![op]! >= free, rank, op);
          if (isBucket) free = end[rank]![op]!;
        }
      }
    }
  });

  law("issues an operator before it starts it, and issues in program order", (job) => {
    for (let rank = 0; rank < job.spec.gpus; rank++) {
      let issued = 0;
      for (const { issue, start } of job.kept) {
        for (let op = 0; op < issue[rank]!.length; op++) {
          holds(issue[rank]![op]! > issued, "rank", rank, "op", op);
          holds(issue[rank]![op]! <= start[rank]![op]!, "rank", rank, "op", op);
          issued = issue[rank]![op]!;
        }
      }
    }
  });

  law("begins an iteration when it has ended the one before", (job) => {
    for (let at = 1; at < job.kept.length; at++) {
      const [before, now] = [job.kept[at - 1]!, job.kept[at]!];
      holds(now.startNs === before.endNs, "iteration", now.iteration);
      for (let rank = 0; rank < job.spec.gpus; rank++) {
        const { async } = programOf(job, rank);
        const done = Math.max(...before.end[rank]!.filter((_, op) => async[op] === 0));
        holds(now.issue[rank]![0]! >= done, "rank", rank);
      }
    }
  });
});

describe("random numbers", () => {
  const pairs = fc.record({ spec: jobs, choice: fc.nat(8), place: fc.nat(1000) });
  const options = { seed: SEED, numRuns: 40 };

  test("same seed, same times; another seed, other times", () => {
    fc.assert(
      fc.property(pairs, ({ spec }) => {
        const noisy = { ...spec, noise: 1 };
        const once = run(noisy).kept;
        expect(run(noisy).kept).toEqual(once);
        expect(run({ ...noisy, seed: spec.seed + 1 }).kept[0]!.end).not.toEqual(once[0]!.end);
      }),
      options,
    );
  });

  test("a fault changes nothing before its first iteration, and leaves nothing when removed", () => {
    fc.assert(
      fc.property(pairs, ({ spec, choice, place }) => {
        const healthy = run(spec).kept;
        const faulty = run({ ...spec, faults: [slowFault(spec, choice, place)] }).kept;
        expect(faulty[0]).toEqual(healthy[0]);
        expect(run({ ...spec, faults: [] }).kept).toEqual(healthy);
      }),
      options,
    );
  });

  test("a fault that has ended leaves the job as fast as it was", () => {
    const spec = completeSpec({ gpus: 16, noise: 0, iterations: 4 });
    const fault = parseFault("gpu-slow:rank=5:from=2:to=3:severity=2");
    const took = run({ ...spec, faults: [fault] }).kept.map((kept) => kept.endNs - kept.startNs);
    const healthy = run(spec).kept.map((kept) => kept.endNs - kept.startNs);
    expect(took[1]).toBeGreaterThan(1.3 * healthy[1]!);
    expect(took[3]).toBeCloseTo(healthy[3]!, 0);
  });
});

describe("every slow-down", () => {
  const spec = completeSpec({ gpus: 32, noise: 0, iterations: 2, microBatches: 4 });
  const healthyMs = run(spec).kept.map((kept) => (kept.endNs - kept.startNs) / 1e6);
  test.each([
    "gpu-slow:rank=3",
    "cpu-stall:rank=3:severity=100",
    "network-slow:rank=3",
    "network-slow:machine=node001",
    "network-slow:switch=leaf2",
    "network-slow:link=0-2:severity=4",
    "network-slow:link=node001-leaf2",
    "dataloader",
    "garbage-collection:rank=9",
    "synchronization",
    "minority-kernels",
    "gemm-layout",
    "slow-kernel",
  ])("%s makes the iteration longer from its first iteration on", (words) => {
    const kept = run({ ...spec, faults: [parseFault(`${words}:from=2`)] }).kept;
    const ms = kept.map((one) => (one.endNs - one.startNs) / 1e6);
    expect(ms[0]).toBe(healthyMs[0]);
    expect(ms[1]).toBeGreaterThan(1.005 * healthyMs[1]!);
  });
});
