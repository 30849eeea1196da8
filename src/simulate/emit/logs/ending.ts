/**
 * What the ranks print when the job stops. A process that dies closes its connections, and its partners see
 * that at once (recording oom2); one that merely does not answer is noticed only when operators time out
 * (recording hang3). Either way one rank calls for dumps, and everybody who is alive answers.
 */
import type { IterationTimes, Simulation } from "../../cluster/times.ts";
import type { FaultSpec } from "../../cluster/fault-spec.ts";
import { faultRanks, isEnding } from "../../cluster/faults.ts";
import type { ClusterGroups } from "../../cluster/groups.ts";
import { STREAM, uniform, hash } from "../../cluster/noise.ts";
import { EMBEDDING, WORLD } from "../../cluster/program.ts";
import { frontiers, type Frontier, type FrontierOf, type Pending } from "./frontier.ts";
import type { KernelLogs } from "./kernel-log.ts";
import { membershipsOf, type Membership } from "./memberships.ts";
import { writeOwnError } from "./own-errors.ts";
import type { RankFile } from "./rank-file.ts";
import { TIMEOUT_MS } from "./startup.ts";
import {
  writeBackendError,
  writeDump,
  writeRemoteError,
  writeTermination,
  writeTimeout,
} from "./watchdog-text.ts";

/** The process is there but prints nothing more, nor does it answer a call for dumps. */
const STOPPED: readonly string[] = ["process-stopped"];
/** The process stays, its GPU or network or its main thread does not go on. */
const STUCK: readonly string[] = ["gpu-hang", "network-hang", "cpu-stall"];
/** kWatchdogThreadSleepMillis. */
const POLL_NS = 1e8;

interface Ending {
  readonly fault: FaultSpec;
  readonly ranks: readonly number[];
}

export function endingsAt({ spec, topology }: Simulation, { iteration }: IterationTimes): Ending[] {
  return spec.faults
    .filter((fault) => isEnding(fault, iteration))
    .map((fault) => ({ fault, ranks: faultRanks(spec, topology, fault) }));
}

/** When each rank notices, and in which of its groups. */
interface Notice {
  readonly pending: Pending;
  readonly atNs: number;
}

export function writeEnding(
  simulation: Simulation,
  groups: ClusterGroups,
  times: IterationTimes,
  files: ReadonlyMap<number, RankFile>,
  kernels: KernelLogs,
  usualNs: number,
): void {
  const { spec } = simulation;
  const frontierOf = frontiers(simulation, times);
  const dead = new Map<number, number>();
  const stopped = new Set<number>();
  for (const { fault, ranks } of endingsAt(simulation, times)) {
    for (const rank of ranks) {
      if (STOPPED.includes(fault.cause)) stopped.add(rank);
      if (STOPPED.includes(fault.cause) || STUCK.includes(fault.cause)) continue;
      // A loss that is not a number is found at the end of the iteration, everything else on the way.
      const atNs = Math.max(
        frontierOf(rank).lastIssueNs + 2e7,
        fault.cause === "numerical" ? times.startNs + usualNs + 5e6 : 0,
      );
      dead.set(rank, atNs);
      const file = files.get(rank);
      if (file) writeOwnError(file, fault, times.iteration, spec.seed, atNs);
    }
    const first = ranks.length > 0 ? frontierOf(ranks[0]!).lastIssueNs : times.startNs;
    kernels.add(fault, first, true);
  }
  const isCrash = dead.size > 0;
  const silent = (rank: number): boolean => dead.has(rank) || stopped.has(rank);
  const noticesOf = (rank: number, frontier: Frontier): Notice[] =>
    isCrash
      ? closedConnections(spec.seed, groups, dead, rank, frontier)
      : timeouts(spec.seed, rank, frontier);
  const call = firstCall(spec.gpus, silent, frontierOf, noticesOf);
  if (call === null) return;
  for (const file of files.values()) {
    if (silent(file.rank)) continue;
    const frontier = frontierOf(file.rank);
    writeLastWords(
      simulation,
      file,
      membershipsOf(groups, file.rank),
      frontier,
      noticesOf(file.rank, frontier),
      call,
      dead,
    );
  }
}

interface Call {
  readonly rank: number;
  readonly atNs: number;
}

/** A living rank: its watchdogs' reports, its dump, its end. */
function writeLastWords(
  simulation: Simulation,
  file: RankFile,
  joined: readonly Membership[],
  frontier: Frontier,
  notices: readonly Notice[],
  call: Call,
  dead: ReadonlyMap<number, number>,
): void {
  const { seed } = simulation.spec;
  const world = joined[0]!;
  const heardNs = call.atNs + 2e8 + 1e9 * uniform(seed ^ STREAM.logs, file.rank, 11, 0);
  const ownNs = (notices[0]?.atNs ?? Infinity) + 9e8;
  const own = ownNs <= heardNs || file.rank === call.rank;
  const dumpNs = own ? ownNs : heardNs;
  const report = ({ pending, atNs }: Notice, isFirst: boolean): Told => {
    const membership = joined.find(({ role }) => role === pending.role)!;
    const at = { membership, pending, atNs, isFirst: isFirst && own };
    const message =
      dead.size > 0
        ? writeRemoteError(simulation, file, at, deadPeer(simulation, membership, pending, dead))
        : writeTimeout(simulation, file, at);
    return { membership, message };
  };
  const early = notices.filter(({ atNs }) => atNs <= dumpNs);
  const late = notices.slice(early.length);
  const told = early.map((notice, i) => report(notice, i === 0));
  const counters = frontier.counters.get(WORLD) ?? NOTHING;
  writeDump(file, world, counters, own ? file.rank : call.rank, dumpNs);
  for (const notice of late) told.push(report(notice, false));
  writeTermination(file, world, Math.max(dumpNs, notices.at(-1)?.atNs ?? 0));
  if (told[0]) writeBackendError(file, told[0].membership, told[0].message);
}

interface Told {
  readonly membership: Membership;
  readonly message: string;
}

const NOTHING = { enqueued: 0, completed: 0 };

/** Every group's watchdog finds its first stuck operator at the poll after its time is over. */
function timeouts(seed: number, rank: number, { pending }: Frontier): Notice[] {
  return pending
    .map((op) => ({
      pending: op,
      atNs:
        op.issuedNs + TIMEOUT_MS * 1e6 + POLL_NS * uniform(seed ^ STREAM.logs, rank, op.role, 12),
    }))
    .sort((a, b) => a.atNs - b.atNs);
}

/** Only operators that need a dead process fail early; NCCL's error is found at the next poll. */
function closedConnections(
  seed: number,
  groups: ClusterGroups,
  dead: ReadonlyMap<number, number>,
  rank: number,
  { pending }: Frontier,
): Notice[] {
  const notices: Notice[] = [];
  for (const op of pending) {
    const index = groups.groupOf(rank, op.role);
    let closedNs = Infinity;
    for (const [other, atNs] of dead) {
      const needed =
        op.peer >= 0
          ? other === op.peer
          : groups.groupOf(other, op.role) === index &&
            (op.role !== EMBEDDING || groups.groups[index]!.ranks.includes(other));
      if (needed) closedNs = Math.min(closedNs, atNs);
    }
    if (closedNs === Infinity) continue;
    const wait = 5e7 + 2 * POLL_NS * uniform(seed ^ STREAM.logs, rank, op.role, 13);
    notices.push({ pending: op, atNs: Math.max(closedNs, op.issuedNs) + wait });
  }
  return notices.sort((a, b) => a.atNs - b.atNs);
}

/** The rank whose call for dumps reaches the others first. */
function firstCall(
  gpus: number,
  silent: (rank: number) => boolean,
  frontierOf: FrontierOf,
  noticesOf: (rank: number, frontier: Frontier) => Notice[],
): Call | null {
  let first: Call | null = null;
  for (let rank = 0; rank < gpus; rank++) {
    if (silent(rank)) continue;
    const atNs = noticesOf(rank, frontierOf(rank))[0]?.atNs ?? Infinity;
    if (atNs < (first?.atNs ?? Infinity)) first = { rank, atNs };
  }
  return first;
}

/** "node001<43946>": the machine of the process that is gone, and a port. */
function deadPeer(
  { spec: { seed }, topology }: Simulation,
  { group }: Membership,
  { peer }: Pending,
  dead: ReadonlyMap<number, number>,
): string {
  const gone = peer >= 0 ? peer : (group.ranks.find((rank) => dead.has(rank)) ?? 0);
  const port = 32_768 + (hash(seed ^ STREAM.logs, gone, group.index, 14) % 28_000);
  return `${topology.machineName(topology.machineOf(gone))}<${port}>`;
}
