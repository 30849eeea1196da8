/** The rings on this machine, and which of them belong together: one start of one job is a run. */
import { readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { getOrInsert } from "../../../base/group-by.ts";
import { UserError } from "../../../base/errors.ts";
import { isSameClock, lookAt, type Machine, type ProcessLook } from "../process-state.ts";
import { inspectRing, type RingFile } from "./ring-file.ts";

const RING = /\.ring$/;
/** A folder with more than this is not one of ours. */
const MOST_RINGS = 4096;
/** Ranks of one start come up together; a start that is so much later is another one. */
const ONE_START_TICKS = 600 * 100;

export interface FoundRing extends RingFile {
  readonly process: ProcessLook;
}

export interface Run {
  readonly job: string;
  readonly address: string;
  /** In the order of ranks, then processes, then writers. */
  readonly rings: readonly FoundRing[];
  /** Milliseconds since 1970 when its first ring was made. */
  readonly startedMs: number;
  /** Whether any of its processes lives, or might. */
  readonly isLive: boolean;
}

export interface Found {
  readonly runs: readonly Run[];
  /** "name: why", for each file that looks like a ring and cannot be read. */
  readonly troubles: readonly string[];
}

export function defaultFolder(environment: NodeJS.ProcessEnv): string {
  return environment["FAULTLINE_DIR"] || `/dev/shm/faultline-${process.getuid?.() ?? 0}`;
}

export function discover(folder: string, machine: Machine): Found {
  const troubles: string[] = [];
  const rings: FoundRing[] = [];
  const look = ({ header, progress }: RingFile): ProcessLook =>
    lookAt(header, progress.heartbeatNs, machine);
  const names = namesIn(folder);
  if (names.length > MOST_RINGS) troubles.push(`${names.length - MOST_RINGS} more rings: not read`);
  for (const name of names.slice(0, MOST_RINGS)) {
    const ring = inspectRing(join(folder, name));
    if (typeof ring === "string") troubles.push(`${name}: ${ring}`);
    else rings.push({ ...ring, process: look(ring) });
  }
  // One that was looked at before we knew whose numbers these are is looked at again.
  const known = rings.map((ring) =>
    ring.process.state === "" ? { ...ring, process: look(ring) } : ring,
  );
  return { runs: runsOf(known), troubles };
}

function namesIn(folder: string): string[] {
  try {
    if (!statSync(folder).isDirectory())
      throw new UserError(`${folder}: is not a folder`, "give --dir the folder with the rings", 3);
    return readdirSync(folder)
      .filter((name) => RING.test(name))
      .sort();
  } catch (error) {
    if (error instanceof UserError) throw error;
    const code = (error as NodeJS.ErrnoException).code;
    const hint =
      "start the job with the probe (docs/guides/agent.md), or give --dir its FAULTLINE_DIR";
    if (code === "ENOENT")
      throw new UserError(
        `${folder}: there is no such folder, so no job here writes rings`,
        othersBeside(folder) ?? hint,
        3,
      );
    if (code === "EACCES")
      throw new UserError(`${folder}: may not be read`, "run as the job's user or as root", 3);
    throw new UserError(`${folder}: ${(error as Error).message}`, hint, 3);
  }
}

/** Root looks into its own folder by default, and jobs are other users'. */
function othersBeside(folder: string): string | null {
  try {
    const others = readdirSync(dirname(folder)).filter((name) => /^faultline-\d+$/.test(name));
    if (others.length === 0) return null;
    return `there is ${others.map((name) => join(dirname(folder), name)).join(", ")}: give it as --dir`;
  } catch {
    return null;
  }
}

/**
 * Splits the rings of each job (name and address of its master) into runs. Processes are taken in the order of their
 * starts; one whose rank is already there begins a new run, unless it is a child of a process of this run (a fork gets a
 * ring of its own) or the two lived at once under one master's address.
 */
export function runsOf(rings: readonly FoundRing[]): Run[] {
  const jobs = new Map<string, FoundRing[]>();
  for (const ring of rings) {
    const key = `${ring.header.job} ${ring.header.address}`;
    jobs.set(key, [...(jobs.get(key) ?? []), ring]);
  }
  const runs = [...jobs.values()].flatMap((those) => startsOf(those).map(asRun));
  return runs.sort((a, b) => b.startedMs - a.startedMs || (a.job < b.job ? -1 : 1));
}

interface OneProcess {
  readonly rank: number;
  readonly pid: number;
  readonly startTicks: number;
  readonly rings: FoundRing[];
}

function startsOf(rings: readonly FoundRing[]): FoundRing[][] {
  const processes = new Map<string, OneProcess>();
  for (const ring of rings) {
    const { pid, startTicks, rank } = ring.header;
    const key = `${pid} ${startTicks}`;
    getOrInsert(processes, key, () => ({ pid, startTicks, rank, rings: [] })).rings.push(ring);
  }
  const sorted = [...processes.values()].sort(
    (a, b) => a.startTicks - b.startTicks || a.pid - b.pid,
  );
  const starts: OneProcess[][] = [];
  for (const one of sorted) {
    const home = starts.findLast((start) => belongs(one, start));
    if (home) home.push(one);
    else starts.push([one]);
  }
  return starts.map((start) => start.flatMap(({ rings: own }) => own));
}

function belongs(one: OneProcess, start: readonly OneProcess[]): boolean {
  const parent = one.rings[0]!.process.parent;
  if (
    parent > 0 &&
    start.some(({ rings }) => rings[0]!.process.pid === parent && isAlive(rings[0]!))
  )
    return true;
  const last = start.at(-1)!;
  if (isOtherBoot(one.rings[0]!, last.rings[0]!)) return false;
  if (one.startTicks - last.startTicks > ONE_START_TICKS) return false;
  const same = start.find(({ rank }) => rank >= 0 && rank === one.rank);
  return same === undefined || (one.rings[0]!.header.address !== "" && isAlive(same.rings[0]!));
}

/** Ticks and numbers of processes begin anew with every boot. */
function isOtherBoot({ header: a }: FoundRing, { header: b }: FoundRing): boolean {
  return a.host === b.host && !isSameClock(a.startOffsetNs, b.startOffsetNs);
}

export function isAlive(ring: FoundRing): boolean {
  return ring.process.state !== "X" && ring.process.state !== "Z";
}

function asRun(rings: readonly FoundRing[]): Run {
  const sorted = rings.toSorted(
    (a, b) =>
      a.header.rank - b.header.rank ||
      a.header.pid - b.header.pid ||
      (a.header.writer < b.header.writer ? -1 : 1),
  );
  const { job, address } = sorted[0]!.header;
  return {
    job,
    address,
    rings: sorted,
    startedMs: Math.min(...sorted.map(({ header }) => header.startedMs)),
    isLive: sorted.some(isAlive),
  };
}
