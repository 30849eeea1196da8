/** A simulated job's profiler traces, read back and profiled: what `faultline trace` sees of it, without a disk. */
import { profileRun } from "../../src/methods/traces/profile-run.ts";
import type { RunProfile } from "../../src/model/trace-profile.ts";
import { simulate } from "../../src/simulate/cluster/engine.ts";
import { parseFault } from "../../src/simulate/cluster/fault-spec.ts";
import { type ClusterSpec, completeSpec } from "../../src/simulate/cluster/spec.ts";
import { emitKineto } from "../../src/simulate/emit/kineto.ts";
import { readFiles } from "./in-memory.ts";

const STEPS = [3, 4, 5, 6];

export function simulatedRun(
  faults: readonly string[],
  given: Partial<ClusterSpec> = {},
): RunProfile {
  const spec = completeSpec({
    gpus: 8,
    tp: 2,
    pp: 2,
    iterations: 6,
    microBatches: 4,
    layersPerStage: 2,
    ...given,
    faults: faults.map((text) => parseFault(text)),
  });
  const texts = new Map<string, string[]>();
  const simulation = simulate(spec);
  const ranks = Array.from({ length: spec.gpus }, (_, rank) => rank);
  const emitter = emitKineto(
    simulation,
    {
      open(path) {
        const chunks: string[] = [];
        texts.set(path, chunks);
        return { write: (chunk) => void chunks.push(String(chunk)), end: () => undefined };
      },
    },
    { ranks, steps: STEPS },
  );
  for (const times of simulation.iterations()) emitter.iteration(times);
  emitter.end();
  const files = [...texts].map(([name, chunks]) => ({ name, bytes: Buffer.from(chunks.join("")) }));
  const kernels = readFiles(files).flatMap((reading) => reading.kernels ?? []);
  return profileRun(kernels, faults.join(" ") || "healthy")!;
}
