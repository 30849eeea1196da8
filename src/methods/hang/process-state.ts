/**
 * hang/process: what the operating system knew of each process when its ring was copied. A process that is stopped or
 * gone needs no further explanation; one that the kernel holds, or whose probe has no heartbeat, may need none. Who
 * only waits sleeps in the kernel, too: sleeping is no evidence.
 */
import { largest } from "../../base/numbers.ts";
import { count } from "../../base/text.ts";
import type { Cause } from "../../model/cause.ts";
import { connectionsClosedFirst } from "../../model/connections.ts";
import type { Accusation, NewFinding } from "../../model/finding.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { Method } from "../../model/method.ts";
import { COMPLETED } from "../../model/operators.ts";
import type { ProbeProcess } from "../../model/probe.ts";
import { staleness } from "../../model/staleness.ts";

export const processState: Method = {
  id: "hang/process",
  applies: (job) => (job.probes ?? []).some(({ rank }) => rank !== null),
  *run(job) {
    const processes = byRank(job);
    const gone = processes.filter(({ process }) => isGone(process));
    const stopped = processes.filter(({ process }) => isStopped(process));
    // A job that ended, or was suspended as a whole, says nothing of who was first.
    if (gone.length * 2 <= processes.length) for (const one of gone) yield goneFinding(one);
    if (stopped.length * 2 <= processes.length)
      for (const one of stopped) yield stoppedFinding(one);
    else if (stopped.length > 0) yield suspended(stopped.length, processes.length);
    if (!mayHang(job)) return;
    const alive = processes.filter(({ process }) => !isGone(process) && !isStopped(process));
    for (const one of alive) if (one.process.state === "D") yield* kernelFinding(one);
    yield* withoutHeartbeat(job, alive);
  },
};

interface Known {
  readonly rank: Rank;
  readonly process: ProbeProcess;
}

/** Ranks whose process is stopped or gone. */
export function haltedRanks(job: Job): ReadonlySet<Rank> {
  const halted = (job.probes ?? []).filter((probe) => isHalted(job, probe));
  return new Set(halted.flatMap(({ rank }) => rank ?? []));
}

/** Ranks whose process somebody stopped; not by a debugger, who may have come to look why nothing moves. */
export function stoppedRanks(job: Job): Rank[] {
  const stopped = byRank(job).filter(({ process }) => process.state === "T");
  return stopped.map(({ rank }) => rank);
}

/** Whether its proxies and threads cannot move, whatever its ring says that they do. */
export function isHalted(job: Job, process: ProbeProcess): boolean {
  if (isGone(process) || isStopped(process)) return true;
  return lateBeats(job).has(process) || haltedProcesses(job).has(processKey(process));
}

const haltedOf = new WeakMap<Job, ReadonlySet<string>>();

/** A process has several rings, and not all say that it is stopped or gone. */
function haltedProcesses(job: Job): ReadonlySet<string> {
  let known = haltedOf.get(job);
  if (!known) {
    const halted = (job.probes ?? []).filter((probe) => isGone(probe) || isStopped(probe));
    known = new Set(halted.map(processKey));
    haltedOf.set(job, known);
  }
  return known;
}

function processKey({ host, pid }: ProbeProcess): string {
  return `${pid} ${host}`;
}

function isStopped({ state }: ProbeProcess): boolean {
  return state === "T" || state === "t";
}

function isGone({ state }: ProbeProcess): boolean {
  return state === "X" || state === "Z";
}

/** One a rank: its two rings tell of the same process. */
function byRank(job: Job): Known[] {
  const known = new Map<Rank, ProbeProcess>();
  for (const process of job.probes ?? []) {
    if (process.rank === null) continue;
    const other = known.get(process.rank);
    // The one that somebody looked at; the native one, whose heart beats without Python.
    if (!other || (process.state !== "" && (other.state === "" || process.writer === "native")))
      known.set(process.rank, process);
  }
  return [...known].map(([rank, process]) => ({ rank, process })).sort((a, b) => a.rank - b.rank);
}

/** Something is pending, and for longer than a step of a job that runs; without operators nothing speaks against it. */
function mayHang(job: Job): boolean {
  if (staleness(job) === "fresh") return false;
  if (job.dumps.size === 0) return !(job.probes ?? []).some(({ ended }) => ended !== null);
  return [...job.dumps.values()].some(({ dump }) => dump.ops.state.some((s) => s !== COMPLETED));
}

function goneFinding({ rank, process }: Known): NewFinding {
  const { ended, words } = process;
  const how =
    ended === null
      ? "without an error, as if it was killed"
      : ended.how === "exit"
        ? `normally, with exit code ${ended.code}, while others continue`
        : ended.how === "exception"
          ? `by an exception${words === "" ? "" : `: ${words.trim().split("\n").at(-1)!.slice(0, 160)}`}`
          : `by signal ${ended.code}`;
  const weight = ended === null ? 0.93 : ended.how === "exit" ? 0.7 : 0.85;
  return finding(
    rank,
    process,
    "process-gone",
    weight,
    `the process of rank ${rank} is gone: it ended ${how}`,
  );
}

function stoppedFinding({ rank, process }: Known): NewFinding {
  const by =
    process.state === "t"
      ? "a debugger holds it"
      : "it received SIGSTOP, from a person or its terminal";
  const why = `the process of rank ${rank} (pid ${process.pid}) is stopped: ${by}`;
  return finding(rank, process, "process-stopped", 0.95, why);
}

function suspended(stopped: number, all: number): NewFinding {
  return {
    says: `${stopped} of ${all} processes are stopped: the job was suspended as a whole`,
    weight: 0.5,
    at: [],
    data: { fact: "stopped-processes", stopped },
    accuses: [],
    clears: [],
  };
}

/** Names of kernel functions that wait for a file system or a disk, and for NVIDIA's driver. */
const STORAGE =
  /nfs|rpc_|ext4|xfs|btrfs|lustre|^ll_|cl_io|osc_|fuse|ceph|gpfs|mmfs|beegfs|cifs|smb|jbd2|io_schedule|folio_wait|wait_on_page|blk_|bio_|iomap|pipe_wait_write|request_wait/;
const DRIVER = /nvidia|uvm|^nv_|^os_|rm_/;

function* kernelFinding({ rank, process }: Known): Iterable<NewFinding> {
  const { waitsIn } = process;
  const [cause, what]: [Cause, string] = STORAGE.test(waitsIn)
    ? ["storage", "a file system or a disk"]
    : DRIVER.test(waitsIn)
      ? ["gpu-hang", "the GPU's driver"]
      : ["cpu-stall", "an unknown resource"];
  const where = waitsIn === "" ? "" : ` (${waitsIn})`;
  const why = `the process of rank ${rank} is held by the kernel${where}: it waits for ${what}, and cannot be killed`;
  // A moment's look: disk sleep comes and goes unless the function says more.
  yield finding(rank, process, cause, cause === "cpu-stall" ? 0.4 : 0.6, why);
}

/** The probe's own thread beats once a second. */
const BEATS_MS = 5_000;

/** Ages at the moment the ring was copied; where nobody said when, at the newest heartbeat of all. */
function beatAges(alive: readonly Known[]): number[] {
  const newestMs = largest(alive.map(beatMs), -Infinity);
  return alive.map(({ process }) => {
    const { copiedNs, heartbeatNs } = process;
    return Number.isFinite(copiedNs)
      ? (copiedNs - heartbeatNs) / 1e6
      : newestMs - beatMs({ process });
  });
}

const lateOf = new WeakMap<Job, ReadonlySet<ProbeProcess>>();

/** Processes that nobody looked at and whose native probe has no heartbeat while nearly all others' have. */
function lateBeats(job: Job): ReadonlySet<ProbeProcess> {
  const known = lateOf.get(job);
  if (known) return known;
  const beating = byRank(job).filter(({ process }) => process.writer === "native");
  const ages = beatAges(beating);
  const late = beating.filter((_, i) => ages[i]! > BEATS_MS).map(({ process }) => process);
  const isFew = late.length * 3 <= beating.length;
  const set = new Set(isFew ? late.filter(({ state }) => state === "") : []);
  lateOf.set(job, set);
  return set;
}

function* withoutHeartbeat(job: Job, alive: readonly Known[]): Iterable<NewFinding> {
  const ages = beatAges(alive);
  const late = alive.filter((_, i) => ages[i]! > BEATS_MS);
  if (late.length === 0 || late.length * 3 > alive.length) return;
  const others = ages.filter((age) => age <= BEATS_MS);
  for (const one of late) {
    const { rank, process } = one;
    const seconds = ages[alive.indexOf(one)]! / 1e3;
    // Where somebody looked, it is neither stopped nor gone: it lives, and its threads do not run.
    const [cause, what]: [Cause, string] =
      process.state !== ""
        ? [
            "cpu-stall",
            process.writer === "python"
              ? "something blocks the interpreter"
              : "its machine barely runs",
          ]
        : connectionsClosedFirst(job) === true
          ? ["process-gone", "it is gone (its peers report closed connections)"]
          : ["process-stopped", "it is stopped, or gone"];
    const why = `no probe thread has run in rank ${rank}'s process for ${seconds.toFixed(0)} s (at most ${(largest(others, 0) / 1e3).toFixed(0)} s in ${count(others.length, "other")}): ${what}`;
    // The native probe's thread needs no interpreter: only a process that does not run at all stops it.
    yield finding(rank, process, cause, lateBeats(job).has(process) ? 0.85 : 0.6, why);
  }
}

function beatMs({ process: { epochNs, heartbeatNs } }: Pick<Known, "process">): number {
  return Number.isFinite(heartbeatNs) ? Number(epochNs / 1_000_000n) + heartbeatNs / 1e6 : NaN;
}

function finding(
  rank: Rank,
  process: ProbeProcess,
  cause: Cause,
  weight: number,
  why: string,
): NewFinding {
  const accusation: Accusation = {
    kind: "hang",
    type: cause === "gpu-hang" ? "gpu" : "rank",
    ranks: [rank],
    link: null,
    cause,
    weight,
    why,
  };
  return {
    says: why,
    weight,
    at: [{ file: process.file }],
    data: {
      fact: "process-state",
      state: process.state,
      waitsIn: process.waitsIn,
      pid: process.pid,
    },
    accuses: [accusation],
    clears: [],
  };
}
