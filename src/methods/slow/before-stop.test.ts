/** A job that stopped: who was slow before has a fault of its own, and is not told to only wait. */
import { describe, expect, it } from "vitest";
import { parseFault } from "../../simulate/cluster/fault-spec.ts";
import { completeSpec } from "../../simulate/cluster/spec.ts";
import { runSimulation } from "../../simulate/run.ts";
import { diagnoseFiles } from "../../../test/support/in-memory.ts";
import { few } from "../../../test/support/cases.ts";
import { memoryOutput } from "../../../test/support/simulate/memory-output.ts";
import type { Verdict } from "../../model/verdict.ts";

async function told(seed: number, shape: object, ...faults: string[]): Promise<Verdict> {
  const output = memoryOutput();
  const spec = completeSpec({
    gpus: 16,
    iterations: 14,
    layersPerStage: 2,
    seed,
    ...shape,
    faults: faults.map(parseFault),
  });
  runSimulation(spec, ["flight-recorder", "logs"], output);
  return await diagnoseFiles([...output.bytes].map(([name, bytes]) => ({ name, bytes })));
}

const HANG = "gpu-hang:rank=9:from=12";

describe("a job that stopped", () => {
  const SHAPES = [
    { seed: 25, shape: { tp: 2, pp: 2 } },
    { seed: 3, shape: { tp: 1, pp: 4 } },
    { seed: 7, shape: { tp: 4, pp: 1 } },
  ];
  it.each(few(SHAPES, 1))(
    "does not list a rank that was slow before as only waiting (seed $seed)",
    async ({ seed, shape }) => {
      const verdict = await told(seed, shape, HANG, "gpu-slow:rank=6:from=4:severity=2");
      expect(verdict.kind).toBe("hang");
      expect(verdict.suspects.map(({ ranks }) => ranks)).toEqual([[9]]);
      expect(verdict.victims).not.toContain(6);
      expect(verdict.victims.length).toBeGreaterThanOrEqual(13);
      expect(verdict.summary).toContain("rank 6 was slow before that");
    },
  );

  it("lists a rank as only waiting that was slow and is as fast as the others again", async () => {
    const shape = { gpus: 8, tp: 1, pp: 1, iterations: 30 };
    const slow = "gpu-slow:rank=6:from=6:to=14:severity=2";
    const { victims, summary, findings } = await told(25, shape, "gpu-hang:rank=5:from=28", slow);
    expect(victims).toEqual([0, 1, 2, 3, 4, 6, 7]);
    expect(summary).not.toContain("slow before");
    const says = findings.map((finding) => finding.says).join("\n");
    expect(says).not.toContain("slow before");
    expect(says).not.toContain("still do at the end");
  });

  it.each(few([4, 5], 1))(
    "lists everybody else where nobody was slow before (seed %i)",
    async (seed) => {
      const { victims, summary } = await told(seed, { tp: 2, pp: 2 }, HANG);
      expect(victims).toHaveLength(15);
      expect(summary).not.toContain("slow before");
    },
  );
});
