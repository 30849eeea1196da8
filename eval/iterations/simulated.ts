/** A simulated job through our own writers and readers, without a disk. */
import type { TrackedSeries } from "../../src/model/series.ts";
import { DEFAULT_SPEC, type ClusterSpec } from "../../src/simulate/cluster/spec.ts";
import { memoryOutput } from "../../test/support/simulate/memory-output.ts";
import { runSimulation } from "../../src/simulate/run.ts";
import { jobOf } from "../../test/support/in-memory.ts";

export interface SimulatedJob {
  /** Milliseconds of every iteration, the first at 0. */
  readonly iterationMs: readonly number[];
  readonly tracked: readonly TrackedSeries[];
}

export function simulatedJob(
  changes: Readonly<Record<string, unknown>>,
  emit: string,
): SimulatedJob {
  const given = changes as Partial<ClusterSpec>;
  const { tp = 2, pp = 2, dp = 4, cp = 1 } = given;
  const spec: ClusterSpec = { ...DEFAULT_SPEC, ...given, gpus: tp * pp * dp * cp };
  const output = memoryOutput();
  const { iterationMs } = runSimulation(spec, [emit], output);
  const files = [...output.bytes].map(([name, bytes]) => ({ name, bytes }));
  return { iterationMs, tracked: jobOf(files).iterations };
}
