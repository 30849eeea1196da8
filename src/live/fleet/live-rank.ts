/** A rank of a rehearsal: a process, two rings, and what is played into them. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { LiveRing } from "./live-ring.ts";
import type { PlayedJob } from "./played-job.ts";
import type { RankGroup } from "./rank-groups.ts";
import { CALL_NAMES, PRODUCT_NAMES, RankTape } from "./rank-tape.ts";
import { nextOf, sentOf } from "./sent-on-wire.ts";
import type { StageOperators } from "./stage-operators.ts";

/** Iterations that a native ring holds at least. */
const ITERATIONS = 32;
const PYTHON_RECORDS = 4096;
const MOST_RECORDS = 65_536;

export interface LiveRankOptions {
  readonly played: PlayedJob;
  readonly rank: number;
  readonly layout: StageOperators;
  readonly groups: readonly RankGroup[];
  readonly job: string;
  readonly run: string;
  /** The same on all ranks of the run, and another at each start: what communicators' ids are made of. */
  readonly runNumber: number;
  readonly folder: string;
  readonly clocks: { readonly realtimeNs: bigint; readonly monotonicNs: bigint };
}

export interface LiveRank {
  readonly rank: number;
  readonly process: RankProcess;
  readonly tape: RankTape;
  readonly rings: readonly LiveRing[];
  /** Whether its fate has been carried out. */
  isStruck: boolean;
}

export async function startRank(options: LiveRankOptions): Promise<LiveRank> {
  const { played, rank, layout, groups, job, run, runNumber, folder, clocks } = options;
  const { simulation } = played;
  const { spec, topology, lanes } = simulation;
  const host = topology.machineName(topology.machineOf(rank));
  const process = await RankProcess.start({
    FAULTLINE_JOB: job,
    FAULTLINE_RUN: run,
    RANK: String(rank),
    WORLD_SIZE: String(spec.gpus),
  });
  const rings: LiveRing[] = [];
  const open = (writer: "native" | "python", records: number): LiveRing => {
    const ring = new LiveRing({
      path: join(folder, `${job}.r${rank}.${process.pid}.${writer}.ring`),
      writer,
      rank,
      worldSize: spec.gpus,
      pid: process.pid,
      startTicks: process.startTicks,
      gpu: topology.gpuOf(rank),
      host,
      job,
      ...(writer === "python" ? { library: "Python 3.12.3 torch 2.11.0", source: "python" } : {}),
      madeAtNs: clocks.realtimeNs,
      monotonicNs: clocks.monotonicNs,
      records,
      names: writer === "python" ? CALL_NAMES : PRODUCT_NAMES,
      communicators:
        writer === "python"
          ? []
          : groups.map((group) => ({
              id: (BigInt(runNumber) << 32n) | BigInt(group.index + 1),
              rank: group.groupRank,
              size: group.size,
              name: group.desc,
              next: nextOf(simulation, group, rank),
            })),
    });
    rings.push(ring);
    return ring;
  };
  try {
    // And room for traced products.
    const wanted = 2 ** Math.ceil(Math.log2(1.5 * layout.count * ITERATIONS));
    const native = open("native", Math.min(MOST_RECORDS, wanted));
    const python = open("python", PYTHON_RECORDS);
    const commOf = new Map(groups.map(({ role }, comm) => [role, comm]));
    const tape = new RankTape({
      rank,
      lanes: lanes.lanes,
      layout,
      commOf,
      sentMsOf(iteration) {
        const sentNs = sentOf(played, layout, groups, rank, iteration);
        return (place) => (sentNs(place) * played.scale) / 1e6;
      },
      native,
      python,
    });
    return { rank, process, tape, rings, isStruck: false };
  } catch (error) {
    for (const ring of rings) ring.close();
    await process.close();
    throw error;
  }
}

/**
 * A process for a simulated rank: it does nothing, and can be stopped and killed as a real one. It reads a pipe that
 * nobody writes to, so that it ends by itself when we are gone, however we went.
 */
class RankProcess {
  readonly pid: number;
  /** When it began, ticks since boot: tells it from another that gets its number later. */
  readonly startTicks: number;
  readonly #child: ChildProcess;
  #warden: ChildProcess | null = null;

  private constructor(child: ChildProcess, pid: number) {
    this.#child = child;
    this.pid = pid;
    this.startTicks = startTicksOf(pid);
  }

  static async start(words: Readonly<Record<string, string>>): Promise<RankProcess> {
    const child = spawn("cat", [], {
      stdio: ["pipe", "ignore", "ignore"],
      // Ctrl-C is for us: ranks that died of it would look like a crash.
      detached: true,
      env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin", ...words },
    });
    child.stdin?.on("error", () => undefined);
    await once(child, "spawn");
    return new RankProcess(child, child.pid!);
  }

  get isGone(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  kill(): void {
    if (!this.isGone) this.#child.kill("SIGKILL");
  }

  stop(): void {
    if (this.isGone || this.#warden !== null) return;
    // One that is stopped does not see the end of its pipe: somebody has to end it for us if we are killed.
    this.#warden = spawn("sh", ["-c", 'cat >/dev/null; kill -9 "$0"', String(this.pid)], {
      stdio: ["pipe", "ignore", "ignore"],
      detached: true,
    });
    this.#warden.on("error", () => undefined);
    this.#warden.stdin?.on("error", () => undefined);
    this.#child.kill("SIGSTOP");
  }

  /** Ends it, and waits until it has. */
  async close(): Promise<void> {
    this.#warden?.kill("SIGKILL");
    if (this.isGone) return;
    const gone = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await gone;
  }
}

/** Field 22 of /proc/<pid>/stat; 0 where there is none. */
function startTicksOf(pid: number): number {
  try {
    const line = readFileSync(`/proc/${pid}/stat`, "latin1");
    return Number(line.slice(line.lastIndexOf(")") + 2).split(" ")[19]) || 0;
  } catch {
    return 0;
  }
}
