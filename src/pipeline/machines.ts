/** From paths, or from a monitoring server, to the answer about machines. */
import { UserError } from "../base/errors.ts";
import { buildJob } from "../ingest/build-job.ts";
import { NO_JOB_FILE, readJobFile } from "../ingest/job-file.ts";
import {
  type LatestValue,
  type PullOptions,
  type Server,
  availableNames,
  labelledMachines,
  latestValues,
  pull,
} from "../ingest/prometheus/prometheus.ts";
import { alignFleet } from "../methods/machines/align.ts";
import { explainMachine } from "../methods/machines/explain.ts";
import { extendFleet, mergeMetrics } from "../methods/machines/merge-fleets.ts";
import { findMachines } from "../methods/machines/find-machines.ts";
import { jobFleet, jobHints, nameHints } from "../methods/machines/job-fleet.ts";
import { machineFindings } from "../methods/machines/machine-method.ts";
import { machinePictures } from "../methods/machines/pictures.ts";
import { runMinder } from "../methods/machines/minder/minder.ts";
import { joinNames } from "../methods/machines/names/join-names.ts";
import { shippedModels } from "../methods/methods.ts";
import type { MinderModels } from "../methods/machines/minder/model-file.ts";
import type { Fleet } from "../model/fleet.ts";
import type { Env, Job } from "../model/job.ts";
import { shortName } from "../model/machine-names.ts";
import type { MachineExplanation } from "../model/machine-explanation.ts";
import type { MachinePicture } from "../model/machine-picture.ts";
import type { SiteMetrics } from "../model/machine-labels.ts";
import type { MachineReport } from "../model/machine-report.ts";
import { CATALOG, type MetricSource, catalogMetric } from "../model/metric-catalog.ts";
import type { Verdict } from "../model/verdict.ts";
import { readJob } from "./diagnose.ts";
import type { PlacedRank } from "./machines-by-job.ts";
import { fuse } from "../verdict/fuse.ts";
import { type Suspected, plainMetrics } from "../verdict/story/plain-metrics.ts";

export interface MachinesOptions {
  readonly jobFile?: string;
  readonly method: "peers" | "minder";
  readonly continuityS?: number;
  /** Of --method minder; the shipped ones where it is not given. */
  readonly models?: MinderModels;
  /** What the site's labels taught of its metrics. */
  readonly site?: SiteMetrics;
  /** A machine, by any of its names, of which everything is wanted. */
  readonly explain?: string;
}

export interface MachinesAnswer {
  readonly report: MachineReport;
  readonly pictures: readonly MachinePicture[];
  /** Where it was asked for. */
  readonly explanation?: MachineExplanation;
  /** On the machine that comes first, where there is one: what is wrong with it, and what to do. */
  readonly first?: Verdict;
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
  const { fleet, missing, unrecognised } = await fleetFromFiles(paths, options.jobFile, env);
  const answer = await askFleet(fleet, options);
  const report = { ...answer.report, missing: [...missing, ...answer.report.missing] };
  return { ...answer, report, unrecognised };
}

export async function fleetFromFiles(
  paths: readonly string[],
  jobFile: string | undefined,
  env: Env,
): Promise<{ fleet: Fleet; missing: readonly string[]; unrecognised: readonly string[] }> {
  const asked = jobFile === undefined ? { paths } : { paths, jobFile };
  const { job, unrecognised } = await readJob(asked, env);
  const fleet = jobFleet(job);
  if (!fleet || fleet.grids.length === 0) {
    const why = job.missing[0] === undefined ? "" : ` (${job.missing[0]})`;
    throw new UserError(`no monitoring metrics in ${paths.join(" ")}${why}`, WHAT_WE_READ, 3);
  }
  return { fleet, missing: job.missing, unrecognised };
}

export async function askFleet(
  fleet: Fleet,
  options: MachinesOptions,
): Promise<{
  report: MachineReport;
  pictures: MachinePicture[];
  explanation?: MachineExplanation;
  first?: Verdict;
}> {
  const { continuityS, method, explain } = options;
  const asked = continuityS === undefined ? {} : { continuityS };
  const { order = [], scores = {}, sigmas = {} } = options.site ?? {};
  if (method === "minder") checkPriorities(fleet, order);
  const learnt = order.length === 0 ? {} : { metrics: order, scores };
  const report =
    method === "minder"
      ? runMinder(fleet, options.models ?? (await shippedModels()), { ...asked, ...learnt })
      : findMachines(fleet, { ...asked, sigmas });
  const [worst] = report.faulty;
  const answer = {
    report,
    pictures: machinePictures(fleet, report),
    ...(worst ? { first: verdictOn(report, worst.machine, []) } : {}),
  };
  if (explain === undefined) return answer;
  const explanation = explainMachine(fleet, report, explain);
  if (!explanation) {
    const some = fleet.machines.slice(0, 4).join(", ");
    throw new UserError(
      `no machine of the job is called ${explain}`,
      `its ${fleet.machines.length} machines are ${some}${fleet.machines.length > 4 ? ", …" : ""}`,
      2,
    );
  }
  return { ...answer, explanation };
}

const MOST_NAMES = 8;

/** Priorities of metrics that nobody measures leave nothing to compare: they are of another site, or misspelt. */
function checkPriorities({ grids }: Fleet, order: readonly string[]): void {
  const measured = new Set(grids.map(({ metric }) => metric));
  if (order.length === 0 || order.some((metric) => measured.has(metric))) return;
  const some = (names: readonly string[]): string =>
    `${names.slice(0, MOST_NAMES).join(", ")}${names.length > MOST_NAMES ? ", …" : ""}`;
  throw new UserError(
    `the metrics of --priorities are not among the data: ${some(order)}`,
    `the data have ${some([...measured])}`,
    2,
  );
}

/** For the report of a diagnosis. */
export async function machinesOfJob(
  job: Job,
): Promise<{ report: MachineReport; pictures: MachinePicture[] } | null> {
  const fleet = jobFleet(job);
  return fleet && fleet.grids.length > 0 ? await askFleet(fleet, { method: "peers" }) : null;
}

/** What the live service tells of a fleet: the report, and a verdict on one machine of it. */
export async function machineVerdict(
  fleet: Fleet,
  ranksOn: (machine: string) => readonly PlacedRank[],
  site: SiteMetrics | null = null,
): Promise<{
  report: MachineReport;
  pictures: readonly MachinePicture[];
  verdictOf(this: void, machine: string): Verdict;
}> {
  const { report, pictures } = await askFleet(fleet, {
    method: "peers",
    ...(site ? { site } : {}),
  });
  return {
    report,
    pictures,
    verdictOf: (machine) => verdictOn(report, machine, ranksOn(machine)),
  };
}

function verdictOn(report: MachineReport, machine: string, placed: readonly PlacedRank[]): Verdict {
  const ranks = placed.map((one) => ({ ...one, machine, nic: null }));
  const job = buildJob([], {
    ...NO_JOB_FILE,
    worldSize: ranks.reduce((size, { rank }) => Math.max(size, rank + 1), 0),
    ranks: new Map(ranks.map((one) => [one.rank, one])),
  });
  const one = report.faulty.filter((faulty) => faulty.machine === machine);
  const findings = machineFindings(job, { ...report, faulty: one }).map((finding, k) => ({
    ...finding,
    id: `f${k + 1}`,
    method: "machines/peers" as const,
  }));
  return fuse(job, findings, []);
}

/**
 * Metrics of machines beside their peers': those that deviate, else those that what is suspected is seen in, without a
 * time in which they were unlike. Names as a job says them. A suspect that is on no one machine (a link, a switch)
 * counts for all that no other is on.
 */
export function suspectPictures(
  fleet: Fleet,
  report: MachineReport,
  machines: readonly string[],
  sinceS: number,
  suspects: readonly Suspected[] = [],
): MachinePicture[] {
  const asked = new Set(machines.map(shortName));
  const there = new Set(fleet.grids.map(({ metric }) => metric));
  const on = (machine: string | null): readonly Suspected[] =>
    suspects.filter((one) => (one.machine && shortName(one.machine)) === machine);
  const plain = new Set<string>();
  const faulty = fleet.machines
    .filter((name) => asked.has(shortName(name)))
    .map((machine) => {
      const known = report.faulty.find((one) => one.machine === machine);
      if (known) return known;
      plain.add(machine);
      const own = on(shortName(machine));
      const metrics = plainMetrics(own.length > 0 ? own : on(null), there);
      const deviations = metrics.map(([metric, direction]) => ({
        metric,
        direction,
        device: null,
        fromS: report.toS,
        toS: report.toS,
        value: NaN,
        peers: NaN,
        sigmas: 0,
      }));
      const said = { score: 0, untilS: null, role: "", order: 0, why: "" };
      return { machine, metric: metrics[0]?.[0] ?? "", sinceS, deviations, ...said };
    });
  return machinePictures(fleet, { ...report, faulty }).map((picture) =>
    plain.has(picture.machine) ? atLast(picture) : picture,
  );
}

/** Unlike its peers for no time; figures in words are of the last sample. */
function atLast(picture: MachinePicture): MachinePicture {
  const { timeS, value } = picture;
  const lastS = timeS[value.findLastIndex((one) => one !== null)] ?? timeS.at(-1) ?? picture.toS;
  return { ...picture, fromS: lastS, toS: lastS };
}

/** The GPUs' temperatures now, where the server has them. */
export async function gpuTemperatures(server: Server, match: string): Promise<LatestValue[]> {
  const names = catalogMetric("gpu-temperature")?.sources.flatMap((source) => source.names) ?? [];
  return await latestValues(server, names, match);
}

export interface ServerQuery extends Pick<PullOptions, "match" | "startS" | "endS" | "via"> {
  /** Where machines stand in the job. */
  readonly job: Job | null;
}

export async function jobOfFile(jobFile: string | undefined): Promise<Job | null> {
  return jobFile === undefined ? null : buildJob([], await readJobFile(jobFile));
}

/** Metric by metric, so that the samples of one are gone before the next ones come. */
export async function fleetFromServer(
  server: Server,
  query: ServerQuery,
  env: Env,
): Promise<Fleet> {
  const { startS, endS, job } = query;
  const there = await availableNames(server, query.match, startS, endS);
  const wanted = CATALOG.flatMap(({ sources }) => {
    const source = sources.find(({ names }) => !there || names.every((name) => there.has(name)));
    return source ? [source] : [];
  });
  if (wanted.length === 0) throw nothingThere(server, query);
  const fleets: Fleet[] = [];
  const missing = new Set<string>();
  let done = 0;
  const groups = together(wanted);
  const begin = (i: number): ReturnType<typeof pull> | null =>
    i < groups.length
      ? pull(server, { ...query, names: groups[i]!.names, allowNothing: true })
      : null;
  // Every exporter has its own names: who is who is asked before anything is pulled.
  const asked = wanted.flatMap((source) => source.names);
  const labelled = await labelledMachines(server, { ...query, names: asked, there });
  const names = joinNames([labelled], job ? nameHints(job) : {});
  let failure: UserError | null = null;
  let next = begin(0);
  for (const [i, { count }] of groups.entries()) {
    env.progress("pulling metrics", done, wanted.length);
    let pulled: Awaited<ReturnType<typeof pull>> | null = null;
    try {
      pulled = await next!;
    } catch (error) {
      // A part that cannot be had is named; only where nothing can be had is it an error.
      if (!(error instanceof UserError) || error.exitCode !== 3) throw error;
      failure ??= error;
      missing.add(error.message);
    }
    // The server works on the next ones while these are aligned.
    next = begin(i + 1);
    // Should the alignment fail, nobody waits for them any more.
    next?.catch(() => undefined);
    done += count;
    if (!pulled) continue;
    for (const defect of pulled.defects) missing.add(defect);
    const hints = job ? jobHints(job, pulled.set.machines.map(names.nameOf)) : {};
    fleets.push(alignFleet([pulled.set], { names, ...hints, fromS: startS, toS: endS }));
  }
  env.progress("pulling metrics", wanted.length, wanted.length);
  const fleet = mergeMetrics(fleets);
  if (!fleet || fleet.grids.length === 0) throw failure ?? nothingThere(server, query);
  return { ...fleet, missing: [...missing, ...fleet.missing] };
}

/** Requests of a few names each: two run at a time, and neither waits for the other's metric to be worked off. */
function together(sources: readonly MetricSource[]): { names: string[]; count: number }[] {
  const groups: { names: string[]; count: number }[] = [];
  for (const { names } of sources) {
    const last = groups.at(-1);
    if (last && last.names.length + names.length <= NAMES_AT_ONCE) {
      last.names.push(...names);
      last.count++;
    } else groups.push({ names: [...names], count: 1 });
  }
  return groups;
}

const NAMES_AT_ONCE = 4;

function nothingThere(server: Server, { match }: ServerQuery): UserError {
  const under = match.trim() === "" ? "" : ` under ${match}`;
  return new UserError(
    `${server.url} has none of the metrics that Faultline compares${under} at this time`,
    "check --match and the time; dcgm-exporter and node_exporter give these metrics",
    3,
  );
}

/** For calls that follow each other: pulls what is new, keeps the rest. */
export class WatchedFleet {
  readonly #server: Server;
  readonly #query: Omit<ServerQuery, "startS" | "endS">;
  readonly #spanS: number;
  #fleet: Fleet | null = null;

  constructor(server: Server, query: Omit<ServerQuery, "startS" | "endS">, spanS: number) {
    this.#server = server;
    this.#query = query;
    this.#spanS = spanS;
  }

  async at(endS: number, env: Env): Promise<Fleet> {
    const grids = this.#fleet?.grids ?? [];
    const slowest = grids.reduce((step, grid) => Math.max(step, grid.stepS), 0);
    const seenS = grids.reduce(
      (end, grid) => Math.max(end, grid.startS + grid.ticks * grid.stepS),
      -Infinity,
    );
    // Some intervals of overlap: rates need the sample before, and late samples may have come since.
    const startS = Math.max(endS - this.#spanS, seenS - OVERLAP_STEPS * slowest);
    const fresh = await fleetFromServer(this.#server, { ...this.#query, startS, endS }, env);
    this.#fleet = this.#fleet ? extendFleet(this.#fleet, fresh, this.#spanS) : fresh;
    return this.#fleet;
  }
}

const OVERLAP_STEPS = 5;
