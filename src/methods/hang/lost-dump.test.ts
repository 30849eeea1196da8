/** The dump of the rank at fault is lost: its log must not make the answer worse. */
import { describe, expect, it } from "vitest";
import { few } from "../../../test/support/cases.ts";
import { diagnoseFiles } from "../../../test/support/in-memory.ts";
import { memoryOutput } from "../../../test/support/simulate/memory-output.ts";
import type { Verdict } from "../../model/verdict.ts";
import { parseFault } from "../../simulate/cluster/fault-spec.ts";
import { completeSpec } from "../../simulate/cluster/spec.ts";
import { runSimulation } from "../../simulate/run.ts";

/** Simulated once, told with and without some of its files. */
const simulated = new Map<string, { name: string; bytes: Buffer }[]>();

async function told(seed: number, shape: object, fault: string, lost: RegExp): Promise<Verdict> {
  const key = JSON.stringify([seed, shape, fault]);
  const files = simulated.get(key) ?? filesOf(seed, shape, fault);
  simulated.set(key, files);
  return await diagnoseFiles(files.filter(({ name }) => !lost.test(name)));
}

function filesOf(seed: number, shape: object, fault: string): { name: string; bytes: Buffer }[] {
  const output = memoryOutput();
  const faults = [parseFault(fault)];
  const spec = completeSpec({
    gpus: 16,
    iterations: 10,
    layersPerStage: 2,
    seed,
    ...shape,
    faults,
  });
  runSimulation(spec, ["flight-recorder", "logs"], output);
  return [...output.bytes].map(([name, bytes]) => ({ name, bytes }));
}

describe("a job that hangs, without the dump of the rank at fault", () => {
  const SHAPES = [
    { seed: 73, shape: { tp: 2, pp: 2 } },
    { seed: 74, shape: { tp: 4, pp: 1 } },
    { seed: 75, shape: { tp: 1, pp: 4 } },
  ];
  it.each(few(SHAPES, 1))(
    "names a stuck CPU by its log, which waits for nobody (seed $seed)",
    async ({ seed, shape }) => {
      const fault = "cpu-stall:rank=9:from=8:severity=inf";
      const verdict = await told(seed, shape, fault, /trace_rank_9$/);
      expect(verdict.suspects).toMatchObject([{ ranks: [9], cause: "cpu-stall" }]);
      const without = await told(seed, shape, fault, /trace_rank_9$|logs\//);
      expect(verdict.confidence).toBeGreaterThan(without.confidence);
    },
  );

  it("names a stuck GPU, though an operator timed out there too", async () => {
    const fault = "gpu-hang:rank=9:from=8";
    const verdict = await told(73, { tp: 2, pp: 2 }, fault, /trace_rank_9$/);
    expect(verdict.suspects).toMatchObject([{ ranks: [9], cause: "gpu-hang" }]);
    expect(verdict.confidence).toBeLessThan(0.7);
    expect(verdict.victims).not.toContain(9);
  });
});
