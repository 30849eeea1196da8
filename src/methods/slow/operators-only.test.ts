/** Who makes it slow, from operators that no flight recorder wrote. */
import { describe, expect, test } from "vitest";
import { simulate } from "../../simulate/cluster/engine.ts";
import { parseFault } from "../../simulate/cluster/fault-spec.ts";
import { completeSpec, type ClusterSpec } from "../../simulate/cluster/spec.ts";
import { emitKineto } from "../../simulate/emit/kineto.ts";
import { memoryOutput } from "../../../test/support/simulate/memory-output.ts";
import { writeTruth } from "../../simulate/emit/truth.ts";
import { runSimulation } from "../../simulate/run.ts";
import { diagnoseFiles, jobOf } from "../../../test/support/in-memory.ts";
import { longTest } from "../../../test/support/cases.ts";

interface File {
  readonly name: string;
  readonly bytes: Uint8Array;
}

const SMALL: Partial<ClusterSpec> = { iterations: 20, layersPerStage: 1, microBatches: 4 };

/** operators.flop and job.json. */
function columns(shape: Partial<ClusterSpec>, ...faults: string[]): File[] {
  const output = memoryOutput();
  const spec = completeSpec({ ...SMALL, ...shape, faults: faults.map(parseFault) });
  runSimulation(spec, ["operators"], output);
  return [...output.bytes].map(([name, bytes]) => ({ name, bytes }));
}

/** Traces of all ranks, of the steps from one to another. */
function traces(
  shape: Partial<ClusterSpec>,
  [from, to]: readonly [number, number],
  fault: string,
): File[] {
  const output = memoryOutput();
  const spec = completeSpec({ ...SMALL, ...shape, faults: [parseFault(fault)] });
  const simulation = simulate(spec);
  const emitter = emitKineto(simulation, output, {
    ranks: Array.from({ length: spec.gpus }, (_, rank) => rank),
    steps: Array.from({ length: to - from + 1 }, (_, i) => from + i),
  });
  writeTruth(simulation, output);
  for (const times of simulation.iterations()) emitter.iteration(times);
  emitter.end();
  return [...output.bytes].map(([name, bytes]) => ({ name, bytes }));
}

describe("operator columns alone", () => {
  test.each([
    ["gpu-slow:rank=13:from=9:severity=2", "gpu-slow", 13],
    ["network-slow:rank=6:from=9:severity=6", "network-slow", 6],
  ])("%s: this rank and nobody else", async (fault, cause, rank) => {
    const verdict = await diagnoseFiles(columns({ gpus: 32, tp: 2, pp: 4 }, fault));
    expect(verdict.kind).toBe("fail-slow");
    expect(verdict.suspects.map(({ ranks, cause: said }) => [ranks, said])).toEqual([
      [[rank], cause],
    ]);
    expect(Math.abs(verdict.when.iteration! - 9)).toBeLessThanOrEqual(1);
  });

  longTest(
    "reach back further than dumps whose rings have forgotten the onset, and date it",
    async () => {
      const output = memoryOutput();
      const faults = [parseFault("gpu-slow:rank=13:from=6:severity=2")];
      const shape = { gpus: 32, tp: 4, pp: 4, iterations: 16, faults };
      runSimulation(completeSpec(shape), ["flight-recorder", "operators"], output);
      const files = [...output.bytes].map(([name, bytes]) => ({ name, bytes }));
      const { suspects, when } = await diagnoseFiles(files);
      expect(suspects.map(({ ranks }) => ranks)).toEqual([[13]]);
      expect(when.iteration).toBe(6);
    },
  );

  test("of a healthy job accuse nobody", async () => {
    const { suspects } = await diagnoseFiles(columns({ gpus: 32, tp: 2, pp: 4 }));
    expect(suspects).toEqual([]);
  });
});

describe("traces alone", () => {
  const files = traces({ gpus: 8, tp: 2, pp: 2 }, [7, 16], "gpu-slow:rank=5:from=11:severity=2");

  test("give every rank's operators with the job's groups and the log's iteration numbers", () => {
    const job = jobOf(files);
    expect(job.rankOperators.ranks).toHaveLength(8);
    for (const rank of job.rankOperators.ranks) {
      const { iteration, hasSequence, groupIds } = job.rankOperators.fetch(rank)!;
      expect(hasSequence).toBe(true);
      for (const id of groupIds) expect(job.groups[id]!.ranks).toContain(rank);
      expect([iteration[0], iteration.at(-1)]).toEqual([8, 15]);
    }
  });

  longTest("name the slow rank and nobody else", async () => {
    const verdict = await diagnoseFiles(files);
    expect(verdict.kind).toBe("fail-slow");
    expect(verdict.suspects.map(({ ranks, cause }) => [ranks, cause])).toEqual([[[5], "gpu-slow"]]);
  });
});
