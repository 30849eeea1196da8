/** Who makes it slow and since when, from flight recorder dumps that hold slow iterations only, and logs. */
import { expect, it } from "vitest";
import { parseFault } from "../../simulate/cluster/fault-spec.ts";
import { completeSpec } from "../../simulate/cluster/spec.ts";
import { runSimulation } from "../../simulate/run.ts";
import { few } from "../../../test/support/cases.ts";
import { diagnoseFiles } from "../../../test/support/in-memory.ts";
import { memoryOutput } from "../../../test/support/simulate/memory-output.ts";

// Rank, severity, first slow iteration, seed. The dumps of 2,000 entries begin with iteration 14.
const CASES = [
  [17, 2, 6, 1],
  [12, 3, 10, 4],
  [5, 2, 6, 1],
  [29, 2, 8, 3],
  [0, 1.5, 7, 5],
  [22, 2, 5, 6],
] as const;

it.each(few(CASES, 1))(
  "accuses rank %i alone where its whole replica waits for it (severity %d), and dates it to iteration %i",
  async (rank, severity, from, seed) => {
    const output = memoryOutput();
    const fault = parseFault(`gpu-slow:rank=${rank}:from=${from}:severity=${severity}`);
    const spec = completeSpec({ gpus: 32, tp: 4, pp: 4, iterations: 20, seed, faults: [fault] });
    runSimulation(spec, ["flight-recorder", "logs"], output);
    const files = [...output.bytes].map(([name, bytes]) => ({ name, bytes }));
    const { kind, suspects, victims, when } = await diagnoseFiles(files);
    expect(kind).toBe("fail-slow");
    expect(suspects.map(({ ranks, cause }) => ({ ranks, cause }))).toEqual([
      { ranks: [rank], cause: "gpu-slow" },
    ]);
    expect(victims).toHaveLength(31);
    expect(when.iteration).toBe(from);
  },
);

it("accuses a rank that works longer than whole iterations took before, though its dump holds few slow ones alone", async () => {
  const output = memoryOutput();
  const fault = parseFault("dataloader:rank=5:from=20:severity=3");
  const spec = completeSpec({ gpus: 32, tp: 4, pp: 4, iterations: 40, seed: 3, faults: [fault] });
  runSimulation(spec, ["flight-recorder", "logs"], output);
  const files = [...output.bytes].map(([name, bytes]) => ({ name, bytes }));
  const { suspects, confidence, when } = await diagnoseFiles(files);
  expect(suspects.map(({ ranks, cause }) => ({ ranks, cause }))).toEqual([
    // What is usual at a place of an iteration the dump does not hold: that it is its data nothing tells.
    { ranks: [5], cause: "cpu-stall" },
  ]);
  expect(confidence).toBeGreaterThan(0.5);
  expect(when.iteration).toBe(20);
});
