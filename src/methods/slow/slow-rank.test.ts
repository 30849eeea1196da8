/** Simulated jobs through the readers: who makes them slow? Recorded ones are in test/iterations.test.ts. */
import { describe, expect, test } from "vitest";
import { parseFault } from "../../simulate/cluster/fault-spec.ts";
import { completeSpec, type ClusterSpec } from "../../simulate/cluster/spec.ts";
import { memoryOutput } from "../../../test/support/simulate/memory-output.ts";
import { runSimulation } from "../../simulate/run.ts";
import { diagnoseFiles } from "../../../test/support/in-memory.ts";
import { few } from "../../../test/support/cases.ts";

async function verdictOf(shape: Partial<ClusterSpec>, ...faults: string[]) {
  const output = memoryOutput();
  const small = { iterations: 20, layersPerStage: 1, microBatches: 4 };
  const spec = completeSpec({ ...small, ...shape, faults: faults.map(parseFault) });
  runSimulation(spec, ["flight-recorder"], output);
  return await diagnoseFiles([...output.bytes].map(([name, bytes]) => ({ name, bytes })));
}

const LAYOUTS: readonly [string, Partial<ClusterSpec>][] = [
  ["tp 2 × dp 4 × pp 2", { gpus: 16 }],
  ["pp 4", { gpus: 32, tp: 2, pp: 4 }],
  ["pp 4, interleaved", { gpus: 32, tp: 2, pp: 4, schedule: "interleaved" }],
  ["experts", { gpus: 32, tp: 2, pp: 2, ep: 4 }],
  ["data parallel alone", { gpus: 8, tp: 1, pp: 1 }],
  ["tp 8 × pp 2", { gpus: 16, tp: 8, pp: 2 }],
];

const FAULTS: readonly [string, string, number[]][] = [
  ["gpu-slow:rank=5:from=9:severity=2", "gpu-slow", [5]],
  ["cpu-stall:rank=3:from=9:severity=4", "cpu-stall", [3]],
  ["gpu-slow:rank=4:from=5:severity=3:shape=fluctuation", "gpu-slow", [4]],
  ["gpu-slow:rank=1:severity=1.5", "gpu-slow", [1]],
  ["gpu-slow:rank=2,7:from=9:severity=1.6", "gpu-slow", [2, 7]],
];

const CASES = LAYOUTS.flatMap(([layout, shape]) =>
  FAULTS.map(([fault, cause, ranks]) => ({ layout, shape, fault, cause, ranks })),
);

describe("a slow job", () => {
  test.each(few(CASES, 2))("$layout, $fault: this rank and nobody else", async (one) => {
    const { shape, fault, cause, ranks } = one;
    const verdict = await verdictOf(shape, fault);
    const blamed = verdict.suspects.flatMap((suspect) => suspect.ranks).sort((a, b) => a - b);
    expect([verdict.kind, blamed]).toEqual(["fail-slow", ranks]);
    for (const suspect of verdict.suspects) expect(suspect.cause).toBe(cause);
    for (const rank of ranks) expect(verdict.victims).not.toContain(rank);
  });

  test.each(few(LAYOUTS, 1))("%s, healthy: nobody", async (_, shape) => {
    for (const seed of few([1, 2, 3], 1))
      expect(await verdictOf({ ...shape, seed })).toMatchObject({ kind: "healthy", suspects: [] });
  });
});
test("a slow NIC is named with whom it talks to, and no rank is said to compute slowly", async () => {
  const verdict = await verdictOf(
    { gpus: 32, tp: 2, pp: 4 },
    "network-slow:rank=6:from=9:severity=6",
  );
  expect(verdict.kind).toBe("fail-slow");
  expect(verdict.suspects).toHaveLength(1);
  expect(verdict.suspects[0]).toMatchObject({ cause: "network-slow", ranks: [6] });
});
