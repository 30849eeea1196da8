/** What Linux tells of a process: its state, what it waits in, its environment (proc(5)). */
import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import type { SlowStorage } from "./evidence/slow-storage.ts";

/** A process that says so itself this recently is alive, whatever its number means in our namespace. */
const FRESH_HEARTBEAT_NS = 5_000_000_000n;
/** Realtime less monotonic, of one boot of one machine: drift changes it by less. */
const SAME_CLOCK_NS = 10_000_000_000n;
const MOST_ENVIRONMENT = 1 << 20;

/** This machine, as far as rings are concerned: its clocks and its processes. */
export interface Machine {
  /** CLOCK_MONOTONIC, which process.hrtime is on Linux (libuv's uv_hrtime). */
  monotonicNs(): bigint;
  /** CLOCK_REALTIME, to the millisecond. */
  realtimeNs(): bigint;
  /** As rings of this machine name their host. */
  readonly host: string;
  /** Where proc(5) is mounted. */
  readonly proc: string;
  /** Whether the numbers in rings are those that we see: in containers they need not be. Learnt by meeting one. */
  sharesNumbers: boolean;
}

/** The number of the first namespace of processes, the same on every Linux (include/linux/proc_ns.h). */
const FIRST_NAMESPACE = "pid:[4026531836]";

export function thisMachine(): Machine {
  return {
    monotonicNs: () => process.hrtime.bigint(),
    realtimeNs: () => BigInt(Date.now()) * 1_000_000n,
    host: hostname(),
    proc: "/proc",
    sharesNumbers: link("/proc/self/ns/pid") === FIRST_NAMESPACE,
  };
}

/** Both clocks at one moment: Node tells realtime in milliseconds, so it is read when it has just changed. */
export function moment(machine: Machine): { realtimeNs: bigint; monotonicNs: bigint } {
  const before = machine.realtimeNs();
  const began = machine.monotonicNs();
  for (;;) {
    const realtimeNs = machine.realtimeNs();
    const monotonicNs = machine.monotonicNs();
    if (realtimeNs !== before || monotonicNs - began > 2_000_000n)
      return { realtimeNs, monotonicNs };
  }
}

export interface ProcessLook {
  /** R S D T t Z; X where it is gone; "" where that cannot be told from here. */
  readonly state: string;
  /** "" where unknown. */
  readonly waitsIn: string;
  readonly parent: number;
  /** Its number in our namespace; 0 where it is not seen. */
  readonly pid: number;
}

interface Known {
  readonly pid: number;
  readonly host: string;
  readonly startTicks: number;
  readonly clockOffsetNs: bigint;
}

/** Of another machine, of an earlier boot of this one, or of before the time of day was stepped. */
export function isOtherClock(
  { clockOffsetNs }: Pick<Known, "clockOffsetNs">,
  machine: Machine,
): boolean {
  return !isSameClock(clockOffsetNs, machine.realtimeNs() - machine.monotonicNs());
}

export function isSameClock(offsetNs: bigint, otherNs: bigint): boolean {
  const apart = offsetNs > otherNs ? offsetNs - otherNs : otherNs - offsetNs;
  return apart <= SAME_CLOCK_NS;
}

/** Monotonic times in it mean nothing here: by its clock it is foreign, and no process of ours is seen to write it. */
export function isForeign(
  { header, process: look }: { readonly header: Known; readonly process: ProcessLook },
  machine: Machine,
): boolean {
  return look.pid === 0 && isOtherClock(header, machine);
}

/**
 * A ring from another machine (a shared folder), or one from inside a container whose numbers we do not share, must not
 * be called gone only because its number is nobody's here. One of this host by another clock is from before a reboot, or
 * from before the time of day was stepped (a stopped or dead process does not refresh its pair of clocks): there the
 * process decides, by its number and start.
 */
export function lookAt(ring: Known, heartbeatNs: bigint, machine: Machine): ProcessLook {
  const look = stateOf(ring, heartbeatNs, machine);
  return { ...look, waitsIn: look.pid > 0 ? waitsIn(look.pid, machine.proc) : "" };
}

/** The same without what it waits in, for whoever looks every second. */
export function stateOf(
  ring: Known,
  heartbeatNs: bigint,
  machine: Machine,
): Omit<ProcessLook, "waitsIn"> {
  const unknown = { state: "", parent: 0, pid: 0 };
  if (isOtherClock(ring, machine) && ring.host !== machine.host) return unknown;
  const stat = statOf(ring.pid, machine.proc);
  if (stat !== null && (ring.startTicks === 0 || stat.startTicks === ring.startTicks)) {
    if (ring.startTicks > 0) machine.sharesNumbers = true;
    return lookOf(stat, ring.pid);
  }
  const age = machine.monotonicNs() - heartbeatNs;
  const speaks = heartbeatNs > 0n && age >= 0n && age < FRESH_HEARTBEAT_NS;
  if (!speaks) return { ...unknown, state: "X" };
  const inside = insideContainer(ring, machine.proc);
  if (inside !== null) return inside;
  return machine.sharesNumbers ? { ...unknown, state: "X" } : unknown;
}

function lookOf(stat: Stat, pid: number): Omit<ProcessLook, "waitsIn"> {
  // Idle and parked kernel threads have letters of their own; a training process has none of them.
  return { state: /^[RSDTtZX]$/.test(stat.state) ? stat.state : "S", parent: stat.parent, pid };
}

/** The process that began at the same tick and has the ring's number in its own namespace (NSpid). */
function insideContainer(ring: Known, proc: string): Omit<ProcessLook, "waitsIn"> | null {
  if (ring.startTicks === 0) return null;
  for (const pid of numbersIn(proc)) {
    const stat = statOf(pid, proc);
    if (stat?.startTicks !== ring.startTicks) continue;
    const numbers = /^NSpid:\s*(.*)$/m.exec(read(join(proc, String(pid), "status")) ?? "")?.[1];
    if (Number(numbers?.split(/\s+/).at(-1)) === ring.pid) return lookOf(stat, pid);
  }
  return null;
}

interface Stat {
  readonly state: string;
  readonly parent: number;
  readonly startTicks: number;
}

/** Fields 3, 4 and 22 of /proc/<pid>/stat; the name in field 2 may hold anything, also brackets. */
function statOf(pid: number, proc: string): Stat | null {
  const line = read(join(proc, String(pid), "stat"));
  if (line === null) return null;
  const fields = line.slice(line.lastIndexOf(")") + 2).split(" ");
  return { state: fields[0] ?? "", parent: Number(fields[1]), startTicks: Number(fields[19]) };
}

/** The process that started it; 0 where that cannot be seen. */
export function parentOf(pid: number, proc: string): number {
  return statOf(pid, proc)?.parent ?? 0;
}

function waitsIn(pid: number, proc: string): string {
  const name = read(join(proc, String(pid), "wchan"))?.trim() ?? "";
  return name === "0" ? "" : name;
}

/** Null where we may not see it. */
export function environmentOf(pid: number, proc = "/proc"): ReadonlyMap<string, string> | null {
  return environment(read(join(proc, String(pid), "environ")));
}

/** The same of a process that may hang: the kernel then may not give its memory out. */
export async function readEnvironment(
  pid: number,
  storage: SlowStorage,
  proc = "/proc",
): Promise<ReadonlyMap<string, string> | null> {
  const path = join(proc, String(pid), "environ");
  const all = await storage.read(path, () => readFile(path, "latin1")).catch(() => null);
  return environment(all);
}

function environment(all: string | null): ReadonlyMap<string, string> | null {
  if (all === null) return null;
  const words = all.slice(0, MOST_ENVIRONMENT).split("\0");
  return new Map(
    words.flatMap((word): [string, string][] => {
      const at = word.indexOf("=");
      return at > 0 ? [[word.slice(0, at), word.slice(at + 1)]] : [];
    }),
  );
}

/** Python processes of ours (of everybody's for root), which may run a job without our probe. */
export function pythonProcesses(proc = "/proc"): number[] {
  const own = process.getuid?.() ?? 0;
  return numbersIn(proc).filter((pid) => {
    const comm = read(join(proc, String(pid), "comm"));
    // Workers may be renamed: PyTorch calls its own pt_main_thread.
    if (comm === null || !/^(python|pt_)/.test(comm)) return false;
    try {
      return own === 0 || statSync(join(proc, String(pid))).uid === own;
    } catch {
      return false;
    }
  });
}

function numbersIn(proc: string): number[] {
  try {
    return readdirSync(proc).flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
  } catch {
    return [];
  }
}

/** A path as a process means it: relative to its folder, below its root where it lives in a container. */
export function pathOfProcess(pid: number, path: string, proc = "/proc"): string {
  const absolute = path.startsWith("/")
    ? path
    : join(link(join(proc, String(pid), "cwd")) || "/", path);
  const root = join(proc, String(pid), "root");
  return sameFolder(root) ? absolute : join(root, absolute);
}

function link(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

function sameFolder(root: string): boolean {
  try {
    const [a, b] = [statSync(root), statSync("/")];
    return a.ino === b.ino && a.dev === b.dev;
  } catch {
    return true;
  }
}

function read(path: string): string | null {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return null;
  }
}
