/** One run of a job on this machine: its ranks, what a service is told of them, and the rings that are read for them. */
import { largest } from "../../base/numbers.ts";
import {
  LIMITS,
  type BeatReport,
  type JobReport,
  type RankReport,
  type Report,
} from "../wire/messages.ts";
import { hasFailed, silence, type WatchedRing } from "./run-health.ts";
import { jobName, runName, RUN_WORDS } from "./names.ts";
import { PointRows, type PointRow, RankTrack } from "./iterations/rank-track.ts";
import { environmentOf } from "./process-state.ts";
import { RankGroups } from "./rank-groups.ts";
import { rankProcesses, type RankProcess } from "./rank-processes.ts";
import { readProgress } from "./rings/ring-header.ts";
import { RunIterations } from "./iterations/run-iterations.ts";
import { RunEvents } from "./run-events.ts";
import type { RunProblem, WatchedRun } from "./run-watcher.ts";
import { RunShares } from "./shares/run-shares.ts";
import { StorageIo } from "./evidence/storage-io.ts";
import { WorkTally } from "./iterations/work-tally.ts";

/** Without a ring that tells of communicators nothing better than the launcher's words will come. */
const ALONE_MS = 10_000;

export interface RunContext {
  readonly machine: string;
  /** Of the machine's network cards: by GPU, or one for all. */
  readonly nics: readonly string[];
  readonly proc: string;
  /** Whether logs are followed, too. */
  readonly hasLogs: boolean;
}

export class RunTrack {
  readonly key: string;
  readonly job: string;
  readonly ranks = new Map<number, RankTrack>();
  readonly events: RunEvents;
  readonly #context: RunContext;
  #of: WatchedRun;
  readonly #rows = new PointRows();
  readonly #work = new WorkTally();
  readonly #iterations = new RunIterations();
  readonly #shares = new RunShares();
  #run: string | null = null;
  #told = "";
  #processes = new Map<number, RankProcess>();
  readonly #environments = new Map<number, ReadonlyMap<string, string> | null>();
  readonly #io: StorageIo;

  constructor(of: WatchedRun, context: RunContext) {
    this.key = of.key;
    this.job = jobName(of.run.job, of.run.address, context.machine);
    this.events = new RunEvents(this.job);
    this.#context = context;
    this.#of = of;
    this.#io = new StorageIo(context.proc);
  }

  /** Null while it is not known by which name all machines will know it. */
  get run(): string | null {
    return this.#run;
  }

  get watched(): WatchedRun {
    return this.#of;
  }

  get worldSize(): number {
    const size = largest(
      this.#of.run.rings.map(({ header }) => header.worldSize),
      0,
    );
    return size <= LIMITS.worldSize ? size : 0;
  }

  /** As it was found now; before anything else of a tick. */
  meet(of: WatchedRun): void {
    this.#of = of;
    this.#attach();
  }

  /** What is new of it; `rowsOfLogs` are those of its ranks that logs told. */
  tick(
    problems: readonly RunProblem[],
    nowMs: number,
    rowsOfLogs: readonly PointRow[] = [],
  ): Report[] {
    this.#iterations.tick([...this.ranks.values()], nowMs);
    for (const track of this.ranks.values()) track.take((row) => this.#rows.add(row), this.#work);
    this.#shares.tick(this.ranks.values(), nowMs);
    for (const row of rowsOfLogs) {
      const track = this.ranks.get(row.rank);
      if (track === undefined || track.hasMarks) continue;
      this.#rows.add(row);
      track.lastIteration = row.iteration;
    }
    this.events.judge(this.#of, problems, nowMs);
    this.#missIterations(nowMs);
    this.#run ??= this.#name(nowMs, rowsOfLogs.length > 0);
    // Before it has a name nobody can be told; what little happens until then is kept.
    if (this.#run === null) return [];
    const reports: Report[] = [];
    const job = this.jobReport();
    const told = JSON.stringify(job);
    if (told !== this.#told) reports.push(job);
    this.#told = told;
    const run = this.#run;
    reports.push(...this.#rows.take(this.job, run));
    reports.push(...this.#shares.take(this.job, run));
    reports.push(...this.events.take(run));
    return reports;
  }

  jobReport(): JobReport {
    return {
      kind: "job",
      job: this.job,
      run: this.#run ?? "",
      startedMs: this.#of.run.startedMs,
      worldSize: this.worldSize,
      ranks: [...this.ranks.values()].map((track) => this.#rankReport(track)),
    };
  }

  beat(nowNs: number): BeatReport["jobs"][number] | null {
    if (this.#run === null) return null;
    const { watched } = this.#of;
    const chosen = [...this.#processes].map(
      ([rank, { python, native }]) => [rank, (native ?? python)!] as const,
    );
    const isIn = (states: RegExp): number[] =>
      chosen.flatMap(([rank, { state }]) => (states.test(state) ? [rank] : []));
    const work = this.#work.summary(nowNs / 1e6);
    return {
      ...(work ? { work } : {}),
      job: this.job,
      run: this.#run,
      alive: chosen.length - isIn(/^[XZ]$/).length,
      stopped: isIn(/^[Tt]$/),
      gone: chosen.flatMap(([rank, one]) => (hasFailed(one) ? [rank] : [])),
      silentMs: silence(watched, nowNs) / 1e6,
      openOperators: watched.reduce((sum, { follower }) => sum + follower.openOperators, 0),
      lastIteration: largest(
        [...this.ranks.values()].map(({ lastIteration }) => lastIteration),
        -1,
      ),
      ...this.#pause(chosen, nowNs),
    };
  }

  /** What the first rank that does something other than training does. */
  #pause(
    chosen: readonly (readonly [number, WatchedRing])[],
    nowNs: number,
  ): { readonly pause?: string } {
    let pause: string | null = null;
    const pids = new Set<number>();
    for (const [rank, { python, native }] of this.#processes) {
      const phase = [python, native]
        .flatMap((one) => (one ? readProgress(one.follower.header).phase : []))
        .find((one) => one !== null);
      if (phase !== undefined) pause ??= `rank ${rank} is in its phase "${phase}"`;
    }
    for (const [rank, { ring, state }] of chosen) {
      const { pid } = ring.process;
      if (pid <= 0 || /^[XZ]$/.test(state)) continue;
      pids.add(pid);
      const rate = this.#io.busy(pid, nowNs);
      if (rate !== null)
        pause ??= `rank ${rank} reads or writes ${Math.round(rate / 2 ** 20)} MiB/s of storage`;
    }
    this.#io.keep(pids);
    return pause === null ? {} : { pause };
  }

  /** Its rings on this machine, of some ranks or of all, those of forked children left out. */
  ringsOf(ranks: readonly number[] | null): WatchedRing[] {
    return [...this.#processes]
      .filter(([rank]) => ranks === null || ranks.includes(rank))
      .flatMap(([, { python, native }]) => [native, python].filter((one) => one !== null));
  }

  /** Rank of a process' local rank, for lines that name only that. */
  rankOfLocal(local: number): number | null {
    for (const { header } of this.#of.run.rings)
      if (header.localRank === local && header.rank >= 0) return header.rank;
    return null;
  }

  #attach(): void {
    const { watched } = this.#of;
    const chosen = rankProcesses(watched, this.#processes, (one) => this.#rankByGroup(one));
    const isNew = [...chosen.keys()].some((rank) => !this.ranks.has(rank));
    const before = new Map(this.ranks);
    // In the order of ranks, whichever came first.
    if (isNew || chosen.size < this.ranks.size) this.ranks.clear();
    for (const [rank, { python, native }] of chosen) {
      const track = before.get(rank) ?? new RankTrack(rank);
      this.ranks.set(rank, track);
      track.attach(python?.follower ?? null, native?.follower ?? null);
    }
    this.#processes = chosen;
  }

  /** Without RANK in its environment a process is what it is in the communicator of all. */
  #rankByGroup({ native }: RankProcess): number {
    const world = this.worldSize;
    if (native === null || world < 2) return -1;
    for (const { rank, native: follower } of this.ranks.values())
      if (follower === native.follower) return rank;
    const groups = new RankGroups();
    groups.look(native.follower);
    return groups.list.find(({ size }) => size === world)?.groupRank ?? -1;
  }

  #missIterations(nowMs: number): void {
    const ranks = [...this.ranks.values()];
    const hasNone = ranks.every(({ lastIteration }) => lastIteration < 0);
    const without = hasNone ? ranks.map(({ rank }) => rank) : [];
    this.events.missIterations(without, this.#context.hasLogs, nowMs);
  }

  #rankReport(track: RankTrack): RankReport {
    const one = this.#processes.get(track.rank);
    const headers = [one?.native, one?.python].flatMap((watched) =>
      watched ? [watched.ring.header] : [],
    );
    const gpu = largest(
      headers.map((header) => (header.gpu >= 0 ? header.gpu : header.localRank)),
      -1,
    );
    const { nics, machine } = this.#context;
    const nic = nics.length === 1 ? nics[0] : nics[gpu];
    return {
      rank: track.rank,
      gpu: gpu >= 0 && gpu < 4096 ? gpu : null,
      pid: one?.pid !== undefined && one.pid >= 0 ? one.pid : null,
      nic: nic === undefined ? null : `${machine}/${nic}`,
      leaf: null,
      stage: null,
      groups: track.groups.list,
    };
  }

  #name(nowMs: number, hasRows: boolean): string | null {
    const { run, watched, key, isHung } = this.#of;
    const tracks = [...this.ranks.values()];
    const world = this.worldSize;
    const hasNative = watched.some(({ ring }) => ring.header.writer === "native");
    // In the future, where the time of day was set back since.
    const isAlone = !hasNative && Math.abs(nowMs - run.startedMs) > ALONE_MS;
    return runName({
      job: run.job,
      address: run.address,
      worldSize: world,
      ranksHere: tracks.length,
      worldIds: tracks.flatMap(({ groups }) => groups.worldId(world) ?? []),
      firstProcess: key,
      machine: this.#context.machine,
      environment: this.#environment(watched[0]!),
      isLate:
        isAlone ||
        hasRows ||
        isHung ||
        !this.events.isEmpty ||
        tracks.some(({ hasMarks }) => hasMarks),
    });
  }

  #environment({ ring }: WatchedRing): ReadonlyMap<string, string> | null {
    const { pid } = ring.process;
    if (pid <= 0) return null;
    let known = this.#environments.get(pid);
    if (known === undefined) {
      const all = environmentOf(pid, this.#context.proc);
      // Environments hold secrets; only these words are ours to keep.
      known = all && new Map([...all].filter(([word]) => RUN_WORDS.has(word)));
      this.#environments.set(pid, known);
    }
    return known;
  }
}
