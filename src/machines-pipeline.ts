/** From paths, or from a monitoring server, to the answer about machines. */
import { UserError } from "./base/errors.ts";
import type { Fleet } from "./model/fleet.ts";
import type { Env } from "./model/job.ts";
import type { MachineReport } from "./model/machine-report.ts";
import { findMachines, jobFleet, machinePictures } from "./methods/methods.ts";
import { readJob } from "./pipeline.ts";
import type { MachinePicture } from "./model/machine-picture.ts";

export interface MachinesOptions {
  readonly jobFile?: string;
  readonly method: "peers" | "minder";
  readonly continuityS?: number;
}

export interface MachinesAnswer {
  readonly report: MachineReport;
  readonly pictures: readonly MachinePicture[];
  /** Files that no reader recognised. */
  readonly unrecognised: readonly string[];
}

const WHAT_WE_READ =
  "give it OpenMetrics text, CSV or Parquet tables, saved Prometheus answers, or --prometheus URL";

export async function machinesFromFiles(
  paths: readonly string[],
  options: MachinesOptions,
  env: Env,
): Promise<MachinesAnswer> {
  const { jobFile } = options;
  const { job, unrecognised } = await readJob(
    jobFile === undefined ? { paths } : { paths, jobFile },
    env,
  );
  const fleet = jobFleet(job);
  if (!fleet || fleet.grids.length === 0) {
    const why = job.missing[0] === undefined ? "" : ` (${job.missing[0]})`;
    throw new UserError(`no monitoring metrics in ${paths.join(" ")}${why}`, WHAT_WE_READ, 3);
  }
  const answer = askFleet(fleet, options);
  const report = { ...answer.report, missing: [...job.missing, ...answer.report.missing] };
  return { ...answer, report, unrecognised };
}

export function askFleet(
  fleet: Fleet,
  options: MachinesOptions,
): { report: MachineReport; pictures: MachinePicture[] } {
  const { continuityS } = options;
  const report = findMachines(fleet, continuityS === undefined ? {} : { continuityS });
  return { report, pictures: machinePictures(fleet, report) };
}
