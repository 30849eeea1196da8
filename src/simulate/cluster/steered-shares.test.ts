/** Uneven micro-batches against independent arithmetic, and against jobs that have so many for good. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseFault } from "./fault-spec.ts";
import { COMPUTE, FLOPS_PER_NS, GRADIENTS, lossNs, OPTIMIZER } from "./program.ts";
import { stagePasses } from "./schedule.ts";
import { runOf } from "./shares.ts";
import { completeSpec, type ClusterSpec } from "./spec.ts";
import { jobs, programOf, run, type Run } from "../../../test/support/simulate/jobs.ts";

const QUIET = { noise: 0, iterations: 1, overlapGradients: false, layersPerStage: 2 } as const;

/** When each stage of a pipeline has ended its last pass: passes one after the other, transfers over NVLink. */
function pipelineEndsNs(spec: ClusterSpec, factorOf: (stage: number) => number): number[] {
  const { hidden, sequence, layersPerStage, pp } = spec;
  const layerNs = ((24 * hidden * hidden + 4 * hidden * sequence) * sequence) / FLOPS_PER_NS;
  const transferNs = 8_000 + (sequence * hidden * 2) / 360;
  const firstNs = 2e5 + spec.issueNs;
  const orders = Array.from({ length: pp }, (_, stage) => stagePasses(spec, stage));
  const next = Array.from({ length: pp }, () => 0);
  const free = Array.from({ length: pp }, (_, stage) => (stage === 0 ? firstNs : spec.issueNs));
  const done = new Map<string, number>();
  for (let moved = true; moved;) {
    moved = false;
    for (let stage = 0; stage < pp; stage++) {
      const pass = orders[stage]![next[stage]!];
      if (!pass) continue;
      const { backward, microBatch } = pass;
      const from = backward ? stage + 1 : stage - 1;
      if (from >= 0 && from < pp) {
        const sent = done.get(`${backward}/${microBatch}/${from}`);
        if (sent === undefined) continue;
        free[stage] = Math.max(free[stage]!, sent) + transferNs;
      }
      const loss = stage === pp - 1 ? lossNs(spec) / 2 : 0;
      const passNs = layersPerStage * layerNs * (backward ? 2 : 1) + loss;
      const endNs = free[stage]! + passNs * factorOf(stage);
      free[stage] = endNs;
      done.set(`${backward}/${microBatch}/${stage}`, endNs);
      next[stage]!++;
      moved = true;
    }
  }
  return free;
}

/** When a rank begins what comes behind its last pass. */
function passesEndNs(job: Run, rank: number): number {
  const { phase } = programOf(job, rank);
  return job.kept[0]!.start[rank]![phase.indexOf(GRADIENTS)]!;
}

describe("replicas with 4 and 12 micro-batches", () => {
  test.each([
    { pp: 2, schedule: "1f1b" },
    { pp: 4, schedule: "1f1b" },
    { pp: 4, schedule: "gpipe" },
  ] as const)("take what arithmetic says ($schedule, pp $pp)", ({ pp, schedule }) => {
    const given = { ...QUIET, tp: 1, pp, dp: 2, microBatches: 8, schedule };
    for (const slowStage of [-1, 0, pp - 1]) {
      const faults = slowStage < 0 ? [] : [parseFault(`gpu-slow:rank=${2 * slowStage}:severity=3`)];
      const spec = completeSpec({ ...given, faults });
      const job = run(spec, { mostMicroBatches: 12 }, () => ({ microBatches: [4, 12] }));
      [4, 12].forEach((microBatches, replica) => {
        const factor = (stage: number): number => (replica === 0 && stage === slowStage ? 3 : 1);
        const expected = pipelineEndsNs({ ...spec, microBatches }, factor);
        expected.forEach((ns, stage) =>
          expect(passesEndNs(job, 2 * stage + replica) / ns).toBeCloseTo(1, 9),
        );
      });
    }
  });

  test("balance a GPU that is three times slower", () => {
    const faults = [parseFault("gpu-slow:rank=0:severity=3")];
    const spec = completeSpec({ ...QUIET, tp: 1, pp: 1, dp: 2, microBatches: 8, faults });
    const took = (microBatches: number[]): number =>
      run(spec, { mostMicroBatches: 12 }, () => ({ microBatches })).kept[0]!.endNs;
    expect(took([4, 12]) / took([8, 8])).toBeCloseTo(0.5, 2);
  });

  /** The job, and for each replica one of its own with as many micro-batches. */
  const apart = (given: Partial<ClusterSpec>) => {
    const spec = completeSpec({ ...QUIET, tp: 2, ...given, dp: 2, microBatches: 8 });
    const job = run(spec, { mostMicroBatches: 12 }, () => ({ microBatches: [4, 12] }));
    const own = [4, 12].map((microBatches) =>
      run(completeSpec({ ...QUIET, tp: 2, ...given, dp: 1, microBatches })),
    );
    return { job, own };
  };
  /** Rank of the joint job that does what a rank of a replica's own job does. */
  const sameRank = (rank: number, replica: number): number =>
    4 * Math.floor(rank / 2) + 2 * replica + (rank % 2);

  test.each([2, 4])("run to the nanosecond as jobs of their own would (pp %i)", (pp) => {
    const { job, own } = apart({ pp, gpusPerMachine: 16 });
    const times = (of: Run, rank: number, skipped: number): number[][] => {
      const program = programOf(of, rank);
      const ops = [...runOf(program, skipped).ops].filter(
        (op) => program.kind[op] !== COMPUTE && program.phase[op]! < GRADIENTS,
      );
      return [of.kept[0]!.start, of.kept[0]!.end].map((all) => ops.map((op) => all[rank]![op]!));
    };
    own.forEach((alone, replica) => {
      const skipped = 12 - alone.spec.microBatches;
      for (let rank = 0; rank < alone.spec.gpus; rank++)
        expect(times(job, sameRank(rank, replica), skipped)).toEqual(times(alone, rank, 0));
    });
  });

  test.each([2, 4])("share NICs with nobody but themselves (pp %i)", (pp) => {
    const given = { pp, gpusPerMachine: 2 };
    const { job, own } = apart(given);
    const { hidden, sequence, tp } = job.spec;
    // The gradients of one pass and the activations of another come to a NIC at the same moment. Who goes first is
    // decided by the order in which stages are worked off, and that by the programs' size.
    const transferNs = 20_000 + (sequence * hidden * 2) / tp / 46;
    const [few] = own as [Run, Run];
    for (let rank = 0; rank < few.spec.gpus; rank++) {
      const laterNs = passesEndNs(job, sameRank(rank, 0)) - passesEndNs(few, rank);
      expect(Math.abs(laterNs)).toBeLessThan(few.spec.microBatches * transferNs);
    }
    const all = run(completeSpec({ ...QUIET, tp: 2, ...given, dp: 2, microBatches: 12 }));
    for (let rank = 0; rank < few.spec.gpus; rank++)
      expect(passesEndNs(job, sameRank(rank, 1))).toBe(passesEndNs(all, sameRank(rank, 1)));
  });
});

describe("operators that are left out", () => {
  test("cost nothing: a program with room for more takes as long", () => {
    const spec = completeSpec({ tp: 2, pp: 2, dp: 2, noise: 0, iterations: 3, microBatches: 5 });
    const usual = run(spec).kept.map(({ endNs }) => endNs);
    expect(run(spec, { mostMicroBatches: 11 }).kept.map(({ endNs }) => endNs)).toEqual(usual);
  });

  test("have no times, and all others have", () => {
    const cases = fc.record({ spec: jobs, moves: fc.array(fc.nat(1000), { maxLength: 6 }) });
    fc.assert(
      fc.property(cases, ({ spec, moves }) => {
        const unit = spec.schedule === "interleaved" ? spec.pp : 1;
        const microBatches = Array.from({ length: spec.dp }, () => spec.microBatches);
        for (const move of spec.ep > 1 ? [] : moves) {
          const [from, to] = [move % spec.dp, Math.floor(move / spec.dp) % spec.dp];
          if (microBatches[from]! <= unit) continue;
          microBatches[from]! -= unit;
          microBatches[to]! += unit;
        }
        const most = Math.max(...microBatches) + unit;
        const job = run(
          { ...spec, launchQueue: moves.length * 8 },
          { mostMicroBatches: most },
          () => ({
            microBatches,
          }),
        );
        for (const { issue, start, end } of job.kept) {
          for (let rank = 0; rank < spec.gpus; rank++) {
            const { count, microBatch } = programOf(job, rank);
            const replica = Math.floor(rank / (spec.tp * spec.cp)) % spec.dp;
            const skipped = most - microBatches[replica]!;
            let issued = 0;
            for (let op = 0; op < count; op++) {
              const isOut = microBatch[op]! >= 0 && microBatch[op]! < skipped;
              for (const column of [issue, start, end])
                if (Number.isFinite(column[rank]![op]!) === isOut) expect.fail(`${rank} ${op}`);
              if (isOut) continue;
              if (!(issue[rank]![op]! > issued)) expect.fail(`${rank} ${op}`);
              issued = issue[rank]![op]!;
            }
          }
        }
      }),
      { seed: 4, numRuns: 60 },
    );
  });

  test("are no place for pauses or hangs", () => {
    const faults = [parseFault("gpu-hang:rank=1:from=2")];
    const spec = completeSpec({ tp: 1, pp: 1, dp: 2, microBatches: 8, iterations: 3, faults });
    for (let seed = 0; seed < 20; seed++) {
      const job = run({ ...spec, seed }, { mostMicroBatches: 15 }, () => ({
        microBatches: [15, 1],
      }));
      expect(job.kept.map(({ endNs }) => endNs === Infinity)).toEqual([false, true]);
      const { phase } = programOf(job, 1);
      const started = job.kept[1]!.start[1]!;
      // In the middle half of the few that it runs: after its first, and before its last.
      expect(started.filter((ns) => ns < Infinity).length).toBeGreaterThan(0);
      expect(started[phase.lastIndexOf(OPTIMIZER)]).toBe(Infinity);
    }
  });
});

describe("steering", () => {
  const spec = completeSpec({ tp: 2, pp: 2, dp: 2, noise: 0, iterations: 6, microBatches: 4 });
  const most = { mostMicroBatches: 6 };
  const took = (job: Run): number[] => job.kept.map(({ startNs, endNs }) => endNs - startNs);

  test("is asked before each iteration and stays in force until it is changed", () => {
    const asked: number[] = [];
    const job = run(spec, most, (iteration) => {
      asked.push(iteration);
      if (iteration === 3) return { microBatches: [2, 6] };
      return iteration === 5 ? { microBatches: [4, 4] } : null;
    });
    expect(asked).toEqual([1, 2, 3, 4, 5, 6]);
    const [, two, three, four, five, six] = took(job) as [number, ...number[]];
    expect(three! / two!).toBeGreaterThan(1.3);
    expect(four).toBeCloseTo(three!, 1);
    expect(five).toBeCloseTo(two!, 1);
    expect(six).toBeCloseTo(two!, 1);
  });

  test("a pause counts to its iteration and to no other", () => {
    const pauseNs = 3e9;
    const usual = took(run(spec));
    const paused = took(run(spec, {}, (iteration) => (iteration % 3 === 1 ? { pauseNs } : null)));
    usual.forEach((ns, i) => expect(paused[i]).toBeCloseTo(ns + (i % 3 === 0 ? pauseNs : 0), 1));
    expect(() => run(spec, {}, () => ({ pauseNs: -1 }))).toThrow(/pause of -1 ns/);
  });
});
