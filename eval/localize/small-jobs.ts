/** Jobs small enough to read whole, for tests. */
import { parseFault } from "../../src/simulate/cluster/fault-spec.ts";
import { ITERATIONS } from "./cases.ts";
import { completeSpec, type ClusterSpec } from "../../src/simulate/cluster/spec.ts";

export function drawSmallCase(gpus: number, fault: string, seed: number): ClusterSpec {
  return completeSpec({
    gpus,
    tp: 4,
    pp: gpus >= 128 ? 4 : 2,
    machinesPerLeaf: 4,
    microBatches: 8,
    layersPerStage: 2,
    hidden: 8192,
    iterations: ITERATIONS,
    seed,
    faults: fault === "" ? [] : [parseFault(fault)],
  });
}
