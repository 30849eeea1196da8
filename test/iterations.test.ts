/** When did it become slow? From files to the answer: recorded jobs, simulated jobs, and the command's two forms. */
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import type { TrackedSeries } from "../src/model/series.ts";
import { diagnose } from "../src/pipeline/diagnose.ts";
import { parseFault } from "../src/simulate/cluster/fault-spec.ts";
import { completeSpec, type ClusterSpec } from "../src/simulate/cluster/spec.ts";
import { memoryOutput } from "./support/simulate/memory-output.ts";
import { runSimulation } from "../src/simulate/run.ts";
import { diagnoseFiles, jobOf, quietEnv } from "./support/in-memory.ts";
import { few } from "./support/cases.ts";

const folder = fileURLToPath(new URL("../fixtures/recordings/", import.meta.url));

function meanMs({ series }: TrackedSeries): number {
  const times = [...series.durationMs].filter((time, i) => series.iteration[i]! > 2 && time > 0);
  return times.reduce((sum, time) => sum + time, 0) / times.length;
}

/** Several tests ask about the same recording: read once. */
const known = new Map<string, ReturnType<typeof diagnose>>();
function diagnosed(name: string): ReturnType<typeof diagnose> {
  const found = known.get(name) ?? diagnose({ paths: [`${folder}${name}.tar.gz`] }, quietEnv);
  known.set(name, found);
  return found;
}
afterAll(() => known.clear());

describe("a recorded job", () => {
  const RECORDINGS = ["slow-none", "slow-none-pp4", "slow-cpu3", "slow-gpu5", "slow-gpu3-pp4"];

  it.each(few(RECORDINGS, 1))(
    "%s: its operators alone give the log's iteration times",
    async (name) => {
      const { job } = await diagnosed(name);
      const told = job.iterations.filter(({ series }) => series.basis === "reported");
      expect(told.length).toBeGreaterThanOrEqual(2);
      for (const one of told) {
        const found = job.iterations.find(
          ({ series }) => series.basis === "operators" && series.rank === one.series.rank,
        )!;
        expect(Math.abs(meanMs(found) / meanMs(one) - 1)).toBeLessThan(0.01);
        expect(found.series.iteration.at(-1)).toBeGreaterThanOrEqual(59);
        expect(found.series.iteration.at(-1)).toBeLessThanOrEqual(60);
      }
    },
  );

  const CULPRITS: readonly [string, number, string][] = [
    ["slow-gpu3-pp4", 3, "gpu-slow"],
    ["slow-gpu5", 5, "gpu-slow"],
    ["slow-cpu3", 3, "cpu-stall"],
    ["slow-gpu2-tp4", 2, "gpu-slow"],
    ["slow-data1", 1, "dataloader"],
    ["slow-cpu6-pp4", 6, "cpu-stall"],
  ];
  it.each(few(CULPRITS, 2))(
    "%s is slow since iteration 31 because of rank %i (%s), and nobody else",
    async (name, rank, cause) => {
      const { verdict } = await diagnosed(name);
      expect(verdict.kind).toBe("fail-slow");
      expect(verdict.suspects.map(({ ranks, cause: said }) => [ranks, said])).toEqual([
        [[rank], cause],
      ]);
      expect(Math.abs(verdict.when.iteration! - 31)).toBeLessThanOrEqual(1);
      expect(verdict.when.from).toMatch(/^2026-11-15T/);
      expect(verdict.victims).toHaveLength(7);
    },
  );

  it.each([
    ["slow-two", [1, 6], 31],
    ["slow-gpuspike6", [6], 15],
    ["slow-gpu0-start", [0], 1],
  ])("%s: ranks %j, since iteration %i", async (name, ranks, iteration) => {
    const { verdict } = await diagnosed(name);
    const blamed = verdict.suspects.flatMap((suspect) => suspect.ranks).sort((a, b) => a - b);
    expect([verdict.kind, blamed, verdict.when.iteration]).toEqual(["fail-slow", ranks, iteration]);
    for (const { cause } of verdict.suspects) expect(cause).toBe("gpu-slow");
  });

  it.each(few(["slow-none", "slow-none-pp4", "slow-none-tp4"], 1))(
    "%s is healthy, noisy as it is",
    async (name) => {
      const { verdict } = await diagnosed(name);
      expect(verdict.kind).toBe("healthy");
      expect(verdict.summary).toContain("no lasting slowdown in 60 iterations");
    },
  );
});

function files(shape: Partial<ClusterSpec>, emit: string, ...faults: string[]) {
  const output = memoryOutput();
  runSimulation(completeSpec({ ...shape, faults: faults.map(parseFault) }), [emit], output);
  return [...output.bytes].map(([name, bytes]) => ({ name, bytes }));
}

describe("a simulated job", () => {
  const shape = { gpus: 16, iterations: 120, layersPerStage: 2 };

  it.each(few([1, 2, 3], 1))(
    "is slow from the iteration of the fault to its end (seed %i)",
    async (seed) => {
      const made = files({ ...shape, seed }, "logs", "gpu-slow:rank=5:from=41:to=80:severity=3");
      const [tracked] = jobOf(made).iterations;
      expect(tracked!.changePoints.map(({ iteration }) => iteration)).toEqual([41, 81]);
      const verdict = await diagnoseFiles(made);
      expect(verdict).toMatchObject({ kind: "fail-slow", when: { iteration: 41 } });
      expect(verdict.when.to).not.toBeNull();
    },
  );

  it("that fluctuates has a fluctuation of seven iterations, no change", () => {
    const made = files(shape, "logs", "gpu-slow:rank=5:from=1:severity=2.5:shape=fluctuation");
    const [tracked] = jobOf(made).iterations;
    expect(tracked!.changePoints).toEqual([]);
    const [beat] = tracked!.episodes.filter(({ type }) => type === "fluctuation");
    expect(beat!.period).toBeCloseTo(7, 0);
  });

  it.each(few([1, 2, 3, 4], 1))("without a fault has no change (seed %i)", (seed) => {
    for (const emit of ["logs", "operators"]) {
      const { iterations } = jobOf(files({ ...shape, seed, noise: 2 }, emit));
      expect(iterations.length).toBeGreaterThan(0);
      expect(iterations.flatMap(({ changePoints }) => changePoints)).toEqual([]);
    }
  });

  const LAYOUTS: readonly [string, Partial<ClusterSpec>][] = [
    ["tensor parallel only", { gpus: 4, tp: 4, pp: 1 }],
    ["pipeline only", { gpus: 4, tp: 1, pp: 4 }],
    ["data parallel only", { gpus: 4, tp: 1, pp: 1 }],
    ["interleaved", { gpus: 16, tp: 2, pp: 4, schedule: "interleaved" }],
    ["gpipe", { gpus: 8, tp: 1, pp: 4, schedule: "gpipe" }],
    ["experts", { gpus: 16, tp: 2, pp: 2, ep: 4 }],
    ["context", { gpus: 16, tp: 2, pp: 2, cp: 2 }],
    ["32 micro-batches", { gpus: 8, microBatches: 32 }],
  ];

  it.each(few(LAYOUTS, 2))(
    "%s: operators alone give iteration times within 1.2 %%",
    (_, layout) => {
      for (const emit of ["flight-recorder", "operators"]) {
        const spec = completeSpec({ iterations: 24, layersPerStage: 2, ...layout });
        const output = memoryOutput();
        const { iterationMs } = runSimulation(spec, [emit], output);
        const made = [...output.bytes].map(([name, bytes]) => ({ name, bytes }));
        const { iterations } = jobOf(made);
        expect(iterations.length).toBeGreaterThan(0);
        for (const { series } of iterations) {
          const numbers = [...series.iteration].filter((n) => n > 2);
          expect(numbers.length).toBeGreaterThanOrEqual(1);
          const truth = numbers.reduce((sum, n) => sum + iterationMs[n - 1]!, 0);
          const found = numbers.reduce(
            (sum, n) => sum + series.durationMs[series.iteration.indexOf(n)]!,
            0,
          );
          expect(Math.abs(found / truth - 1)).toBeLessThan(0.012);
        }
      }
    },
  );
});
