/** `faultline simulate`: a job with chosen faults, in the real formats, with its ground truth. */
import { UserError } from "../base/errors.ts";
import { count, thousands } from "../base/text.ts";
import { parseFault } from "../simulate/cluster/fault-spec.ts";
import { completeSpec, type ScheduleName } from "../simulate/cluster/spec.ts";
import { EMITTERS } from "../simulate/emit/emitters.ts";
import { runSimulation } from "../simulate/run.ts";
import { folderOutput } from "./folder-output.ts";
import { makeProgress } from "./progress.ts";
import type { Io } from "./io.ts";

export interface SimulateFlags {
  readonly out?: string;
  readonly gpus?: number;
  readonly tp?: number;
  readonly pp?: number;
  readonly dp?: number;
  readonly ep?: number;
  readonly cp?: number;
  readonly microBatches?: number;
  readonly schedule?: string;
  readonly layers?: number;
  readonly iterations?: number;
  readonly gpusPerMachine?: number;
  readonly noise?: number;
  readonly lost?: number;
  readonly seed?: number;
  readonly fault?: readonly string[];
  readonly emit?: string;
  readonly json?: boolean;
  readonly quiet?: boolean;
}

export function runSimulate(io: Io, flags: SimulateFlags): number {
  if (flags.out === undefined)
    throw new UserError("--out DIR is missing", "for example --out /tmp/job", 2);
  const emit = (flags.emit ?? "flight-recorder,logs")
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
  for (const name of emit) {
    if (!(name in EMITTERS)) {
      throw new UserError(
        `--emit ${name} is unknown`,
        `allowed: ${Object.keys(EMITTERS).join(", ")}`,
        2,
      );
    }
  }
  const spec = completeSpec({
    ...flags,
    schedule: flags.schedule as ScheduleName,
    layersPerStage: flags.layers,
    faults: (flags.fault ?? []).map(parseFault),
  } as Parameters<typeof completeSpec>[0]);
  const progress = makeProgress(io.err, flags.quiet === true, () => performance.now());
  const summary = runSimulation(spec, emit, folderOutput(flags.out), ({ iteration }) =>
    progress.update("simulating", iteration, spec.iterations),
  );
  progress.end();
  const { iterations, operators, iterationMs, stopped } = summary;
  if (flags.json) {
    io.out.write(
      `${JSON.stringify({ schema: "faultline.simulation/1", out: flags.out, gpus: spec.gpus, iterations, operators, iterationMs, stopped })}\n`,
    );
    return 0;
  }
  const sorted = [...iterationMs].sort((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)];
  const layout = `tp ${spec.tp} × cp ${spec.cp} × dp ${spec.dp} × pp ${spec.pp}`;
  io.out.write(
    `${flags.out}: ${count(iterations, "iteration")} of ${count(spec.gpus, "GPU")} (${layout}), ` +
      `${thousands(operators)} operators each${median === undefined ? "" : `, median ${median.toFixed(1)} ms`}` +
      `${stopped ? `; the job stopped in iteration ${iterations}` : ""}\n` +
      `truth: ${flags.out}/truth.json\n`,
  );
  return 0;
}
