/** Simulated jobs seen through their machines' metrics alone: the verdict must be the truth. */
import { describe, expect, it } from "vitest";
import { parseFault } from "../src/simulate/cluster/fault-spec.ts";
import { completeSpec, type ClusterSpec } from "../src/simulate/cluster/spec.ts";
import { memoryOutput } from "./support/simulate/memory-output.ts";
import { runSimulation } from "../src/simulate/run.ts";
import { diagnoseFiles } from "./support/in-memory.ts";
import { few } from "./support/cases.ts";

/** Eight machines of two GPUs, in two stages; slow jobs run for a few minutes, stopped ones are watched as long. */
function filesOf(
  emit: string[],
  iterations: number,
  ...faults: string[]
): { name: string; bytes: Buffer }[] {
  const output = memoryOutput();
  const shape: Partial<ClusterSpec> = { gpus: 16, gpusPerMachine: 2, tp: 2, pp: 2, iterations };
  runSimulation(completeSpec({ ...shape, seed: 3, faults: faults.map(parseFault) }), emit, output);
  return [...output.bytes].map(([name, bytes]) => ({ name, bytes: Buffer.from(bytes) }));
}

describe("from metrics alone", () => {
  const cases: readonly [string, string, string, number[]][] = [
    ["process-gone:rank=5:from=200", "node002", "process-gone", [5]],
    ["gpu-error:rank=11:from=200:signature=card-drop", "node005", "gpu-error", [10, 11]],
    ["network-slow:rank=6:from=300:severity=4:signature=pcie", "node003", "network-slow", [6, 7]],
    ["gpu-slow:rank=9:from=300:severity=1.8", "node004", "gpu-slow", [8, 9]],
  ];
  it.each(few(cases, 2))("%s is found on %s as %s", async (fault, machine, cause, ranks) => {
    const iterations = /slow/.test(fault) ? 700 : 300;
    const verdict = await diagnoseFiles(filesOf(["metrics"], iterations, fault));
    expect(verdict.kind).toBe("faulty-machine");
    // Of one GPU that stands still while the others wait, its rank; else the whole machine.
    const type = ranks.length === 1 ? "rank" : "machine";
    expect(verdict.suspects).toMatchObject([{ type, machine, cause, ranks }]);
    expect(verdict.when.from).not.toBeNull();
    expect(verdict.actions.map((action) => action.do)).toContain("replace-machine");
  });

  it("a healthy job accuses nobody", async () => {
    const verdict = await diagnoseFiles(filesOf(["metrics"], 500));
    expect(verdict.kind).toBe("healthy");
    expect(verdict.suspects).toEqual([]);
  });
});

describe("with other evidence", () => {
  it("a hang stays a hang, of the rank, and its machine's metrics support it", async () => {
    const files = filesOf(["metrics", "flight-recorder"], 40, "process-stopped:rank=5:from=20");
    const verdict = await diagnoseFiles(files);
    expect(verdict.kind).toBe("hang");
    expect(verdict.suspects).toHaveLength(1);
    expect(verdict.suspects[0]).toMatchObject({ ranks: [5], machine: "node002" });
    const methods = verdict.findings
      .filter(({ id }) => verdict.suspects[0]!.evidence.includes(id))
      .map(({ method }) => method);
    expect(methods).toContain("machines/peers");
    expect(methods).toContain("hang/wait-graph");
  });
});
