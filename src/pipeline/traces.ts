/** Kernel timelines: bytes → traces → profile of the run, and the profiles of healthy runs beside it. */
import { UserError } from "../base/errors.ts";
import { buildJob } from "../ingest/build-job.ts";
import { ingest } from "../ingest/ingest.ts";
import { joinRings } from "../ingest/probe-ring/join-rings.ts";
import { withMembers } from "../ingest/probe-ring/kernels.ts";
import { profileRun } from "../methods/traces/profile-run.ts";
import type { Env } from "../model/job.ts";
import type { RankKernels } from "../model/kernels.ts";
import type { Defect, Reading } from "../model/reading.ts";
import type { RunProfile } from "../model/trace-profile.ts";

export interface ReadRun {
  readonly run: RunProfile;
  /** What it was made from, for pictures. */
  readonly kernels: readonly RankKernels[];
  /** What was broken, missing or odd, a sentence each. */
  readonly missing: readonly string[];
  readonly unrecognised: readonly string[];
}

/** Everything under the paths as one run. */
export async function readRun(paths: readonly string[], env: Env): Promise<ReadRun> {
  const { kernels, defects, unrecognised } = await readTraces(paths, env);
  const run = profileRun(kernels, paths.join(" "));
  if (!run) throw noTraces(paths, kernels, defects);
  const missing = defects.map(
    ({ file, what, line }) => `${file}${line === undefined ? "" : `:${line}`}: ${what}`,
  );
  for (const { file } of kernels.filter(({ gpu }) => gpu.count === 0))
    missing.push(`${file}: no GPU events in it, so nothing of its timeline is known`);
  const stray = kernels.filter(({ rank, gpu }) => rank === null && gpu.count > 0);
  if (stray.length > 0)
    missing.push(`${stray[0]!.file}: its rank is unknown; it got the first free number`);
  for (const { rank, files } of run.ranks)
    if (files.length > 1)
      missing.push(
        `rank ${rank} has ${files.length} traces (${files.join(", ")}): taken for different steps of one run`,
      );
  return { run, kernels, missing, unrecognised };
}

/**
 * Healthy runs: every folder or archive is one. Single files of different ranks that are given side by side (a shell's
 * rank*.json.gz) are one run together, because its collectives are matched across ranks.
 */
export async function readHealthyRuns(paths: readonly string[], env: Env): Promise<RunProfile[]> {
  const runs: { paths: string[]; kernels: RankKernels[]; isLoose: boolean }[] = [];
  for (const path of paths) {
    const { kernels, defects } = await readTraces([path], env);
    if (!kernels.some(({ gpu }) => gpu.count > 0)) throw noTraces([path], kernels, defects);
    const rank = kernels.length === 1 ? kernels[0]!.rank : null;
    const joins = runs.find(
      (run) => rank !== null && run.isLoose && !run.kernels.some((other) => other.rank === rank),
    );
    if (joins) {
      joins.paths.push(path);
      joins.kernels.push(...kernels);
    } else runs.push({ paths: [path], kernels: [...kernels], isLoose: rank !== null });
  }
  return runs.flatMap((run) => profileRun(run.kernels, run.paths.join(" ")) ?? []);
}

interface Traces {
  readonly kernels: readonly RankKernels[];
  readonly defects: readonly Defect[];
  readonly unrecognised: readonly string[];
}

async function readTraces(paths: readonly string[], env: Env): Promise<Traces> {
  const { readings, unrecognised } = await ingest(paths, env);
  // Rings of one process belong together, and know the members of their groups only when all are read.
  const isRings = readings.some(({ probes }) => probes !== undefined);
  const kernels = isRings
    ? ringKernels(readings)
    : readings.flatMap((reading) => reading.kernels ?? []);
  return {
    kernels,
    defects: readings.flatMap(({ defects }) => defects),
    unrecognised,
  };
}

/** Also of rings that timed communication alone: its bandwidth and issue latencies, and what Python did, are in them. */
function ringKernels(readings: readonly Reading[]): RankKernels[] {
  const { dumps } = buildJob(readings, null);
  return joinRings(readings, [])
    .flatMap((reading) => reading.kernels ?? [])
    .map((kernels) => withMembers(kernels, dumps));
}

function noTraces(
  paths: readonly string[],
  kernels: readonly RankKernels[],
  defects: readonly Defect[],
): UserError {
  const where = paths.join(" ");
  const odd = defects[0] === undefined ? "" : ` (${defects[0].what})`;
  const what =
    kernels.length === 0
      ? `no profiler trace in ${where}${odd}`
      : `${kernels[0]!.file}: no GPU event in it${odd}`;
  return new UserError(what, HOW_TO_TRACE, 3);
}

const HOW_TO_TRACE =
  "give it traces of torch.profiler with CUDA activities (export_chrome_trace), one file per rank, .json or .json.gz";
