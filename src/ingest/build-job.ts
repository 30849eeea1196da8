/**
 * Puts the readings of many files together into one job: which rank wrote which dump, which groups
 * there are, which machine a rank runs on. What does not fit is said in `missing`, never dropped.
 */
import { groupBy } from "../base/group-by.ts";
import { largest } from "../base/numbers.ts";
import { rankWords } from "../base/text.ts";
import { MAX_RANKS, type Rank } from "../model/ids.ts";
import type { Group, Job, RankDump, RankInfo } from "../model/job.ts";
import type { NcclProcess, RankLog } from "../model/log.ts";
import type { FlightDump } from "../model/operators.ts";
import type { ProbeProcess } from "../model/probe.ts";
import type { Reading } from "../model/reading.ts";
import type { StackDump } from "../model/stacks.ts";
import { placeOnFabric } from "./fabric/place-ranks.ts";
import { GroupTable } from "./group-table.ts";
import type { JobFile } from "./job-file.ts";
import { withKernelRanks } from "./kernel-ranks.ts";
import { dumpsOfOtherRuns } from "./other-runs.ts";
import { joinRings } from "./probe-ring/join-rings.ts";
import { hasCompute, withMembers } from "./probe-ring/kernels.ts";
import { resolveOwnGroups } from "./probe-ring/own-groups.ts";

/** A metric a file makes dozens of files that all lack the same: more of them are one sentence. */
const MOST_ALIKE = 3;

function defectWords(readings: readonly Reading[]): string[] {
  const defects = readings.flatMap((reading) => reading.defects);
  return [...groupBy(defects, ({ what }) => what).values()].flatMap((alike) => {
    if (alike.length > MOST_ALIKE)
      return [`${alike.length} files, for example ${alike[0]!.file}: ${alike[0]!.what}`];
    return alike.map(
      ({ file, line, what }) => `${file}${line === undefined ? "" : `:${line}`}: ${what}`,
    );
  });
}

export function buildJob(given: readonly Reading[], jobFile: JobFile | null): Job {
  const missing = defectWords(given);
  const readings = joinRings(given, missing);
  const chosen = chooseDumps(readings, missing);
  const ofOthers = leaveOutOtherRuns(chosen, missing);
  const { dumps: dumpByRank, unknown } = resolveOwnGroups(
    chosen,
    jobFile?.worldSize ?? ranksTold(readings, chosen),
    missing,
  );
  const mixesRuns = nameOldDumps(dumpByRank, missing) || ofOthers;
  const groups = new GroupTable();
  const dumps = new Map<Rank, RankDump>();
  for (const [rank, dump] of sortedEntries(dumpByRank)) {
    dumps.set(rank, { rank, dump, groupIds: groups.map(rank, dump) });
  }
  groups.markUnknown(unknown);
  const operators = readings.flatMap((reading) => reading.operators ?? []);
  groups.markP2p([
    ...[...dumps.values()].map(({ dump, groupIds }) => ({ ops: dump.ops, groupIds })),
    ...operators.map((log) => ({ ops: log.ops, groupIds: groups.mapKnown(log) })),
  ]);
  groups.addFromLogs(readings.flatMap((reading) => reading.logGroups ?? []));

  const probes = readings.flatMap((reading) => reading.probes ?? []);
  const processes = new Map<string, Rank>();
  const machines = readProcesses(readings, processes);
  const probed = probedProcesses(probes, processes);
  const stacks = new Map<Rank, StackDump>();
  const strayStacks: StackDump[] = [];
  for (const reading of readings) {
    for (const dump of reading.stacks ?? []) {
      const rank = reading.rank ?? rankOfPid(processes, dump.pid);
      if (rank === null) strayStacks.push(dump);
      else stacks.set(rank, dump);
    }
  }
  const logs = new Map<Rank, RankLog>();
  const strayLogs: RankLog[] = [];
  for (const log of readings.flatMap((reading) => reading.rankLogs ?? [])) {
    if (log.rank === null) strayLogs.push(log);
    if (log.rank === null) continue;
    const known = logs.get(log.rank);
    if (!known || log.lines > known.lines) logs.set(log.rank, log);
  }
  const told = readings.flatMap((reading) => reading.failures ?? []);
  const watchdog = readings.flatMap((reading) => reading.watchdog ?? []);
  const torchrun = readings.flatMap((reading) => reading.torchrun ?? []);

  const seen = new Set<Rank>([...dumps.keys(), ...stacks.keys(), ...logs.keys(), ...probed.keys()]);
  for (const { rank } of [...told, ...operators]) if (rank !== null) seen.add(rank);
  for (const failure of torchrun) seen.add(failure.rank);
  for (const group of groups.groups) for (const rank of group.ranks) seen.add(rank);
  const worldSize = Math.min(
    MAX_RANKS,
    jobFile?.worldSize ??
      largest(
        readings.map((reading) => reading.worldSize ?? 0),
        largest(seen, -1) + 1,
      ),
  );
  const ranks = new Map<Rank, RankInfo>();
  const stages = stagesOfGroups(groups.groups);
  const pids = new Map<Rank, number | null>([
    ...torchrun.map(({ rank, pid }) => [rank, pid] as const),
    ...operators.flatMap(({ rank, pid }) => (rank === null ? [] : [[rank, pid] as const])),
    ...[...stacks].map(([rank, { pid }]) => [rank, pid] as const),
  ]);
  for (let rank = 0; rank < worldSize; rank++) {
    const process = machines.get(rank);
    const probe = probed.get(rank);
    const place = jobFile?.ranks.get(rank);
    ranks.set(rank, {
      rank,
      machine: place?.machine ?? process?.hostId ?? (probe?.host || null),
      gpu: place?.gpu ?? process?.gpu ?? probe?.gpu ?? null,
      pid: process?.pid ?? probe?.pid ?? pids.get(rank) ?? null,
      nic: place?.nic ?? null,
      leaf: jobFile?.leaves.get(place?.nic ?? "") ?? null,
      stage: jobFile?.stageOf(rank) ?? stages.get(rank) ?? null,
    });
  }
  const fabric = readings.flatMap((reading) => reading.fabric ?? []);
  placeOnFabric(ranks, [...fabric, ...(jobFile?.fabric ?? [])], missing);
  const isRings =
    probes.length > 0 &&
    !readings.some(({ dumps, format }) => dumps && format === "flight-recorder");
  if (isRings) nameAbsent("ring", probed, worldSize, missing);
  else nameAbsent("flight-recorder dump", dumps, worldSize, missing);
  if (logs.size >= worldSize / 2) nameAbsent("log", logs, worldSize, missing);

  return {
    name: jobFile?.name ?? "",
    microBatches: jobFile?.microBatches ?? null,
    ...(jobFile?.incidents ? { incidents: jobFile.incidents } : {}),
    ...(jobFile?.machineNames ? { machineNames: jobFile.machineNames } : {}),
    worldSize,
    ranks,
    groups: groups.groups,
    dumps,
    stacks,
    strayStacks,
    ras: readings.flatMap((reading) => (reading.ras ? [reading.ras] : [])),
    failures: withKernelRanks(told, ranks.values(), machines),
    watchdog,
    torchrun,
    logs,
    strayLogs,
    series: readings.flatMap((reading) => reading.series ?? []),
    operators,
    kernels: readings
      .flatMap((reading) => reading.kernels ?? [])
      .filter(hasCompute)
      .map((kernels) => withMembers(kernels, dumps)),
    metrics: readings.flatMap((reading) => (reading.metrics ? [reading.metrics] : [])),
    probes,
    validations: readings.flatMap((reading) => reading.validations ?? []),
    iterations: [],
    rankOperators: { ranks: [], fetch: () => null },
    processes,
    inputs: readings.map(({ file, format, rank, records }) => ({
      path: file,
      format,
      rank,
      records,
    })),
    missing,
    mixesRuns,
    places: new Map([...dumps].map(([rank, { dump }]) => [rank, { file: dump.file }])),
  };
}

/** A rank's place in its pipeline group is its stage. */
function stagesOfGroups(groups: readonly Group[]): Map<Rank, number> {
  const stages = new Map<Rank, number>();
  for (const { role, ranks } of groups) {
    if (!/^(PIPELINE_(MODEL_)?PARALLEL|mesh_pp$)/i.test(role)) continue;
    ranks.forEach((rank, stage) => stages.set(rank, stage));
  }
  return stages;
}

function sortedEntries<T>(map: ReadonlyMap<Rank, T>): [Rank, T][] {
  return [...map].sort((a, b) => a[0] - b[0]);
}

function nameAbsent(
  what: string,
  have: ReadonlyMap<Rank, unknown>,
  worldSize: number,
  missing: string[],
): void {
  if (have.size === 0 || have.size >= worldSize) return;
  const absent: Rank[] = [];
  for (let rank = 0; rank < worldSize; rank++) if (!have.has(rank)) absent.push(rank);
  missing.push(`${rankWords(absent)} left no ${what}`);
}

/**
 * One dump a rank. A folder may hold several sets (a dump at the end and one at the timeout, two
 * incidents): the newest set wins, and older sets only fill in ranks that it lacks. Of a job that stands still two sets
 * end in the same operator: the more complete one wins, because the other may hold pending operators only.
 */
function chooseDumps(readings: readonly Reading[], missing: string[]): Map<Rank, FlightDump> {
  const sets = new Map<
    string,
    { newestNs: bigint; operators: number; dumps: [Rank, FlightDump][] }
  >();
  for (const reading of readings) {
    for (const read of reading.dumps ?? []) {
      // A file that was cut off lost its newest entries, the ones that matter: only its counters count.
      const dump = read.isCut ? { ...read, ops: { ...read.ops, count: 0 } } : read;
      if (dump.isCut && dump.groups.every((group) => group.enqueued < 0)) continue;
      const rank = rankOfDump(reading.rank, dump);
      if (rank === null) {
        missing.push(`${dump.file}: its rank is unknown; put the rank into its file name`);
        continue;
      }
      if (reading.rank !== null && reading.rank !== rank) {
        missing.push(
          `${dump.file}: its groups show that this is rank ${rank}, not ${reading.rank} as in its name`,
        );
      }
      // The set's name: the path with the rank's number taken out.
      const key = dump.file.replace(/\d+(?=\D*$)/, "");
      const set = sets.get(key) ?? { newestNs: 0n, operators: 0, dumps: [] };
      const newest = newestNs(dump);
      set.operators += dump.ops.count;
      if (newest > set.newestNs) set.newestNs = newest;
      set.dumps.push([rank, dump]);
      sets.set(key, set);
    }
  }
  const ordered = [...sets.values()].sort((a, b) =>
    a.newestNs === b.newestNs ? b.operators - a.operators : a.newestNs < b.newestNs ? 1 : -1,
  );
  const chosen = new Map<Rank, FlightDump>();
  const twice: Rank[] = [];
  for (const set of ordered) {
    for (const [rank, dump] of set.dumps) {
      const known = chosen.get(rank);
      if (known) twice.push(rank);
      if (!known || (set.dumps.some(([, d]) => d === known) && newestNs(dump) > newestNs(known))) {
        chosen.set(rank, dump);
      }
    }
  }
  if (twice.length > 0) {
    const what = twice.length === 1 ? "has more than one dump" : "have more than one dump";
    const isTie = ordered.length > 1 && ordered[0]!.newestNs === ordered[1]!.newestNs;
    const used = isTie ? "the most complete set was used" : "the newest set was used";
    missing.push(`${rankWords([...new Set(twice)])} ${what}; ${used}`);
  }
  return chosen;
}

/** What another run did tells nothing of this one: its ranks left no dump. */
function leaveOutOtherRuns(dumps: Map<Rank, FlightDump>, missing: string[]): boolean {
  const ranks = dumpsOfOtherRuns(dumps);
  for (const rank of ranks) dumps.delete(rank);
  if (ranks.length > 0)
    missing.push(
      `the dumps of ${rankWords(ranks)} were left out: they are from another run, because they show the same operators at another time than most of the dumps`,
    );
  return ranks.length > 0;
}

/** Dumps that end long before the others: of an earlier run, or of a machine whose clock is off. */
function nameOldDumps(dumps: ReadonlyMap<Rank, FlightDump>, missing: string[]): boolean {
  const times = [...dumps]
    .map(([rank, dump]) => ({ rank, at: newestNs(dump) }))
    .filter(({ at }) => at > 0n);
  const newest = times.reduce((latest, { at }) => (at > latest ? at : latest), 0n);
  const old = times.filter(({ at }) => newest - at > OLD_NS).map(({ rank }) => rank);
  if (old.length === 0) return false;
  missing.push(
    `the dumps of ${rankWords(old)} end more than 20 minutes before the others: they are from an earlier run, or a clock is off`,
  );
  return true;
}

const OLD_NS = 20n * 60n * 1_000_000_000n;
function newestNs(dump: FlightDump): bigint {
  let newest = -Infinity;
  const { createdNs, count } = dump.ops;
  for (let i = 0; i < count; i++) if (createdNs[i]! > newest) newest = createdNs[i]!;
  return Number.isFinite(newest) ? dump.epochNs + BigInt(Math.round(newest)) : 0n;
}

/**
 * A rank belongs to every group of its dump: their intersection names it without trusting the file's
 * name (host and local rank are put there as well as the global rank).
 */
function rankOfDump(named: Rank | null, dump: FlightDump): Rank | null {
  let common: Set<Rank> | null = null;
  const seen = new Set<readonly Rank[]>();
  for (const { ranks } of dump.groups) {
    if (!ranks || seen.has(ranks)) continue;
    seen.add(ranks);
    if (common === null) common = new Set(ranks);
    else if (common.size > 1) common = new Set(ranks.filter((rank) => common!.has(rank)));
  }
  if (!common || common.size === 0) return named;
  if (named !== null && common.has(named)) return named;
  return common.size === 1 ? [...common][0]! : null;
}

function readProcesses(
  readings: readonly Reading[],
  processes: Map<string, Rank>,
): Map<Rank, NcclProcess> {
  const all = readings.flatMap((reading) => reading.ncclProcesses ?? []);
  const world = largest(
    all.map((process) => process.commSize),
    0,
  );
  const byRank = new Map<Rank, NcclProcess>();
  for (const process of all) {
    // Only in the communicator of the whole job is the communicator's rank the global one.
    if (process.commSize !== world) continue;
    byRank.set(process.commRank, process);
    processes.set(`${process.host}:${process.pid}`, process.commRank);
    const pid = String(process.pid);
    const other = processes.get(pid);
    // A bare pid is of use only while it is unique among the hosts.
    processes.set(pid, other === undefined || other === process.commRank ? process.commRank : -1);
  }
  return byRank;
}

/** Processes as their rings introduce them; ranks that NCCL's log tells of stay as they are. */
function probedProcesses(
  probes: readonly ProbeProcess[],
  processes: Map<string, Rank>,
): Map<Rank, ProbeProcess> {
  const byRank = new Map<Rank, ProbeProcess>();
  for (const probe of probes) {
    const { rank, host, pid } = probe;
    if (rank === null) continue;
    // The native ring knows the GPU.
    if (!byRank.has(rank) || probe.writer === "native") byRank.set(rank, probe);
    processes.set(`${host}:${pid}`, rank);
    const other = processes.get(String(pid));
    processes.set(String(pid), other === undefined || other === rank ? rank : -1);
  }
  return byRank;
}

/** The largest number of ranks that anything tells of. */
function ranksTold(readings: readonly Reading[], dumps: ReadonlyMap<Rank, FlightDump>): number {
  const groups = [...dumps.values()].flatMap((dump) => dump.groups);
  return largest(
    [
      ...readings.map((reading) => reading.worldSize ?? 0),
      ...groups.map(({ own }) => own?.size ?? 0),
    ],
    largest(dumps.keys(), -1) + 1,
  );
}

function rankOfPid(processes: ReadonlyMap<string, Rank>, pid: number | null): Rank | null {
  const rank = pid === null ? undefined : processes.get(String(pid));
  return rank === undefined || rank < 0 ? null : rank;
}
