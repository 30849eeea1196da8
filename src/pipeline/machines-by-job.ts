/**
 * A site's machines, split by the jobs that run on them: machines are alike only within one job (Minder §3.1), within a
 * pipeline stage of it and within one kind of hardware. Machines of no job, of several jobs or of a job too small to
 * compare are kept apart: nobody knows what they should be doing, so only counters that name a physical fault count.
 */
import { groupBy } from "../base/group-by.ts";
import type { Fleet, MetricGrid } from "../model/fleet.ts";
import { healthCounter } from "../model/health-counters.ts";
import type { Rank } from "../model/ids.ts";
import { shortName } from "../model/machine-names.ts";
import { ALL_MACHINES } from "../methods/machines/roles.ts";

/** Where a job runs, as its agents report it. */
export interface PlacedJob {
  readonly job: string;
  readonly run: string;
  /** Earlier samples are of whatever ran there before. */
  readonly startedMs: number;
  /** By machine, as the job names it. */
  readonly machines: ReadonlyMap<string, PlacedMachine>;
}

export interface PlacedMachine {
  /** "stage 2", "stages 0–1"; null where unknown. */
  readonly stage: string | null;
  /** Empty where another service watches the job. */
  readonly ranks: readonly PlacedRank[];
}

export interface PlacedRank {
  readonly rank: Rank;
  readonly gpu: number | null;
}

export interface FleetPart {
  /** null: the machines that are kept apart. */
  readonly job: PlacedJob | null;
  readonly fleet: Fleet;
}

/** Fewer machines have no middle to be compared with. */
const LEAST_PEERS = 3;

export function fleetByJob(fleet: Fleet, jobs: readonly PlacedJob[]): FleetPart[] {
  const rows = new Map(fleet.machines.map((name, m) => [shortName(name), m]));
  const jobsOn = new Map<number, PlacedJob[]>();
  for (const job of jobs)
    for (const name of job.machines.keys()) {
      const m = rows.get(shortName(name));
      if (m !== undefined) jobsOn.set(m, [...(jobsOn.get(m) ?? []), job]);
    }
  const all = [...fleet.machines.keys()];
  const own = all.filter((m) => jobsOn.get(m)?.length === 1);
  const members = groupBy(own, (m) => jobsOn.get(m)![0]!);
  const parts: FleetPart[] = [];
  const isCompared = new Uint8Array(all.length);
  for (const [job, list] of members) {
    if (list.length < LEAST_PEERS) continue;
    for (const m of list) isCompared[m] = 1;
    const shared = job.machines.size - list.length;
    const missing =
      shared > 0
        ? [`${shared} of the ${job.machines.size} machines of job ${job.job} are not compared`]
        : [];
    parts.push({ job, fleet: jobPart(fleet, job, list, missing) });
  }
  const rest = all.filter((m) => isCompared[m] === 0);
  if (rest.length > 0) parts.push({ job: null, fleet: rowsOf(fleet, rest) });
  return parts;
}

/** The metrics that name a physical fault by themselves, whatever a machine is doing. */
export function hardCountersOf(fleet: Fleet): Fleet {
  return { ...fleet, grids: fleet.grids.filter(({ metric }) => isHardCounter(metric)) };
}

/** Also a GPU or a NIC that is no longer there. A whole machine of no job may be switched off. */
export function isHardCounter(metric: string): boolean {
  return metric === "gpus" || metric === "nics" || healthCounter(metric)?.decides === true;
}

function jobPart(
  fleet: Fleet,
  job: PlacedJob,
  list: readonly number[],
  missing: readonly string[],
): Fleet {
  const part = since(rowsOf(fleet, list), job.startedMs / 1000);
  const stages = new Map([...job.machines].map(([name, one]) => [shortName(name), one.stage]));
  const hardware = list.map((m) => fleet.roles[fleet.role[m]!]!);
  const isMixed = new Set(hardware).size > 1;
  const names = part.machines.map((machine, k) => {
    const parts = [stages.get(shortName(machine)) ?? "", isMixed ? hardware[k]! : ""];
    return parts.filter((one) => one !== "").join(", ") || ALL_MACHINES;
  });
  const roles = [...new Set(names)].sort();
  const numberOf = new Map(roles.map((name, r) => [name, r]));
  const role = Int32Array.from(names, (name) => numberOf.get(name)!);
  return { ...part, role, roles, isJob: true, missing: [...part.missing, ...missing] };
}

/** These machines alone. */
function rowsOf(fleet: Fleet, list: readonly number[]): Fleet {
  const { lastSeenS } = fleet;
  return {
    ...fleet,
    machines: list.map((m) => fleet.machines[m]!),
    role: Int32Array.from(list, (m) => fleet.role[m]!),
    grids: fleet.grids.map((grid) => cut(grid, list, 0)),
    ...(lastSeenS ? { lastSeenS: Float64Array.from(list, (m) => lastSeenS[m]!) } : {}),
  };
}

function since(fleet: Fleet, fromS: number): Fleet {
  const { grids, lastSeenS } = fleet;
  const all = [...fleet.machines.keys()];
  return {
    ...fleet,
    grids: grids.flatMap((grid) => {
      const first = Math.max(0, Math.ceil((fromS - grid.startS) / grid.stepS));
      return first === 0 ? [grid] : first >= grid.ticks ? [] : [cut(grid, all, first)];
    }),
    // One that was silent before the job began is not known to have been seen in it.
    ...(lastSeenS ? { lastSeenS: lastSeenS.map((at) => (at < fromS ? -Infinity : at)) } : {}),
  };
}

/** Rows of some machines from a tick on; columns that are one array stay so. */
function cut(grid: MetricGrid, list: readonly number[], first: number): MetricGrid {
  const { ticks } = grid;
  const kept = ticks - first;
  function of<T extends Float32Array | Uint8Array>(column: T, empty: T): T {
    list.forEach((m, k) =>
      empty.set(column.subarray(m * ticks + first, (m + 1) * ticks), k * kept),
    );
    return empty;
  }
  const size = list.length * kept;
  const floats = (column: Float32Array): Float32Array => of(column, new Float32Array(size));
  const bytes = (column: Uint8Array | null): Uint8Array | null =>
    column && of(column, new Uint8Array(size));
  const mean = floats(grid.mean);
  let seen = 0;
  for (const value of mean) if (value === value) seen++;
  return {
    ...grid,
    startS: grid.startS + first * grid.stepS,
    ticks: kept,
    mean,
    low: grid.low === grid.mean ? mean : floats(grid.low),
    high: grid.high === grid.mean ? mean : floats(grid.high),
    lowDevice: bytes(grid.lowDevice),
    highDevice: bytes(grid.highDevice),
    reporting: bytes(grid.reporting),
    coverage: size === 0 ? 0 : seen / size,
  };
}
