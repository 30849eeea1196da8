/**
 * Follows all rings of this machine and says when something happens to a job: a process that is gone or stopped, or a
 * hang. Each incident is told once.
 */
import { getOrInsert } from "../../base/group-by.ts";
import { HEADER } from "../../ingest/probe-ring/layout.ts";
import { discover, isAlive, type FoundRing, type Run } from "./rings/discover.ts";
import { RingFollower, type FollowOptions } from "./rings/follow-ring.ts";
import { hasFailed, openWords, silence, whoIs, type WatchedRing } from "./run-health.ts";
import { isForeign, stateOf, type Machine } from "./process-state.ts";
import { openingError } from "./rings/ring-file.ts";

/** New rings are looked for once in so many ticks: they come with a job's start. */
const LOOK_EVERY = 5;
const MOST_TOLD = 10_000;
/** Stopped at so many ticks in a row: a debugger or a checkpoint of the whole machine stops processes for a moment. */
const STOPPED_TICKS = 2;
/** A run without a living process is let go after so many looks. */
const LOOKS_OVER = 3;

export interface WatchOptions extends FollowOptions {
  /** Operators open and nothing new for so long is a hang. */
  readonly hangNs: number;
  readonly machine: Machine;
  /** Null where a ring may be followed, else why not: memory is not endless. */
  refuse?(this: void, ring: FoundRing): string | null;
}

export interface RunProblem {
  readonly kind: "hang" | "gone" | "stopped";
  readonly run: Run;
  /** Names the run as long as it is watched. */
  readonly key: string;
  readonly ranks: readonly number[];
  /** One line. */
  readonly says: string;
}

/** A run that is watched, with the rings that are followed. */
export interface WatchedRun {
  readonly key: string;
  readonly run: Run;
  readonly isHung: boolean;
  readonly watched: readonly WatchedRing[];
}

export interface Tick {
  readonly problems: readonly RunProblem[];
  /** Files that cannot be read, each told once. */
  readonly troubles: readonly string[];
}

interface RunStatus {
  run: Run;
  isHung: boolean;
  hasLost: boolean;
  readonly stopped: Set<number>;
  /** How often it was found with no process that lives. */
  looksOver: number;
}

export class RunWatcher {
  readonly #folder: string;
  readonly #options: WatchOptions;
  readonly #watched = new Map<string, WatchedRing>();
  readonly #runs = new Map<string, RunStatus>();
  readonly #told = new Set<string>();
  #ticks = 0;
  /** Of rings that were let go. */
  #past = { rings: 0, records: 0, lost: 0 };

  constructor(folder: string, options: WatchOptions) {
    this.#folder = folder;
    this.#options = options;
  }

  get followers(): RingFollower[] {
    return [...this.#watched.values()].map(({ follower }) => follower);
  }

  /** All that was followed since the beginning. */
  get totals(): { readonly rings: number; readonly records: number; readonly lost: number } {
    return this.followers.reduce(
      (sum, { records, lost }) => ({
        rings: sum.rings + 1,
        records: sum.records + records,
        lost: sum.lost + lost,
      }),
      this.#past,
    );
  }

  /** Runs of which at least one ring is followed. */
  get watchedRuns(): WatchedRun[] {
    const byRun = new Map<string, WatchedRing[]>();
    for (const watched of this.#watched.values()) {
      getOrInsert(byRun, watched.runKey, () => []).push(watched);
    }
    return [...byRun].flatMap(([key, watched]) => {
      const state = this.#runs.get(key);
      return state ? [{ key, run: state.run, isHung: state.isHung, watched }] : [];
    });
  }

  /** As of the last look; also one that is over and no longer followed. */
  runOf(key: string): Run | null {
    return this.#runs.get(key)?.run ?? null;
  }

  /** The copy of a ring with what was kept of it. */
  extend(ring: FoundRing, copy: Buffer): Buffer {
    return this.#watched.get(ring.path)?.follower.extend(copy) ?? copy;
  }

  close(): void {
    for (const { follower } of this.#watched.values()) follower.close();
    this.#watched.clear();
  }

  /** One look at everything. UserError where the folder itself cannot be read. */
  tick(): Tick {
    const { machine } = this.#options;
    const troubles: string[] = [];
    if (this.#ticks++ % LOOK_EVERY === 0) this.#look(troubles);
    const nowNs = Number(machine.monotonicNs());
    // An operator is written before the iteration that it belongs to ends: read later, it cannot be missing.
    const order = [...this.#watched].sort(
      ([, a], [, b]) => writerOrder(a.ring) - writerOrder(b.ring),
    );
    for (const [path, watched] of order) {
      if (!poll(watched.follower, nowNs)) {
        this.#drop(path, watched.follower);
        continue;
      }
      const heartbeat = watched.follower.header.readBigUInt64LE(HEADER.heartbeatNs);
      watched.state = stateOf(watched.ring.header, heartbeat, machine).state;
      watched.stoppedTicks = /^[Tt]$/.test(watched.state) ? watched.stoppedTicks + 1 : 0;
    }
    const problems = [...this.#runs].flatMap(([key, state]) => this.#judge(key, state, nowNs));
    if (problems.length === 0) return { problems, troubles };
    // Whoever dumps wants to know how the processes are now.
    this.#look(troubles);
    const now = problems.map((one) => {
      const run = this.#runs.get(keyOf(one.run))?.run;
      return run === undefined ? one : { ...one, run };
    });
    return { problems: now, troubles };
  }

  #look(troubles: string[]): void {
    const { machine } = this.#options;
    const found = discover(this.#folder, machine);
    for (const line of found.troubles) this.#tell(line, troubles);
    const keys = new Set<string>();
    for (const run of found.runs) {
      const key = keyOf(run);
      keys.add(key);
      const known = this.#runs.get(key);
      if (known) {
        known.run = run;
        known.looksOver = run.isLive ? 0 : known.looksOver + 1;
      } else
        this.#runs.set(key, {
          run,
          isHung: false,
          hasLost: false,
          stopped: new Set(),
          looksOver: 0,
        });
      for (const ring of run.rings) {
        const watched = this.#watched.get(ring.path);
        if (watched) {
          watched.ring = ring;
          watched.runKey = key;
          continue;
        }
        // What was over before we came is for `dump`; following it would only cost memory.
        if (!run.isLive) continue;
        const refusal = this.#options.refuse?.(ring) ?? null;
        if (refusal !== null) {
          this.#tell(refusal, troubles);
          continue;
        }
        try {
          const follower = new RingFollower(ring, this.#options, isForeign(ring, machine));
          const wasAlive = isAlive(ring);
          const state = ring.process.state;
          this.#watched.set(ring.path, {
            follower,
            ring,
            runKey: key,
            state,
            stoppedTicks: 0,
            wasAlive,
          });
        } catch (error) {
          this.#tell(`${ring.name}: ${openingError(error)}`, troubles);
        }
      }
    }
    for (const key of this.#runs.keys()) if (!keys.has(key)) this.#runs.delete(key);
    this.#forget();
  }

  /** What was kept of a run that is over, or whose files were removed, is let go; not before its end was told and dumped. */
  #forget(): void {
    for (const [path, { follower, runKey }] of this.#watched) {
      const run = this.#runs.get(runKey);
      if (run !== undefined && run.looksOver < LOOKS_OVER) continue;
      this.#drop(path, follower);
    }
  }

  #drop(path: string, follower: RingFollower): void {
    const { rings, records, lost } = this.#past;
    this.#past = {
      rings: rings + 1,
      records: records + follower.records,
      lost: lost + follower.lost,
    };
    follower.close();
    this.#watched.delete(path);
  }

  #tell(line: string, troubles: string[]): void {
    if (this.#told.has(line)) return;
    // Rather once more after so many than ever more memory.
    if (this.#told.size >= MOST_TOLD) this.#told.clear();
    this.#told.add(line);
    troubles.push(line);
  }

  #judge(key: string, state: RunStatus, nowNs: number): RunProblem[] {
    const watched = [...this.#watched.values()].filter(({ runKey }) => runKey === key);
    if (watched.length === 0) return [];
    const problems: RunProblem[] = [];
    const say = (kind: RunProblem["kind"], of: readonly WatchedRing[], says: string): void => {
      const ranks = [...new Set(of.map(({ ring }) => ring.header.rank))].filter((r) => r >= 0);
      ranks.sort((a, b) => a - b);
      problems.push({ kind, key, run: state.run, ranks, says: `${state.run.job}: ${says}` });
    };
    const gone = watched.filter(hasFailed);
    // The first is the news; those that follow are killed by the launcher, or die of it.
    if (gone.length > 0 && !state.hasLost) {
      state.hasLost = true;
      say("gone", gone, `${whoIs(gone)} gone`);
    }
    const stopped = watched.filter(({ stoppedTicks }) => stoppedTicks >= STOPPED_TICKS);
    const news = stopped.filter(({ ring }) => !state.stopped.has(ring.header.pid));
    if (news.length > 0) say("stopped", news, `${whoIs(news)} stopped (state T)`);
    state.stopped.clear();
    for (const { ring } of stopped) state.stopped.add(ring.header.pid);
    const silentNs = silence(watched, nowNs);
    const isHung = silentNs >= this.#options.hangNs;
    if (isHung && !state.isHung)
      say(
        "hang",
        watched.filter(({ follower }) => follower.openOperators > 0),
        `nothing new for ${Math.round(silentNs / 1e9)} s, and ${openWords(watched)}`,
      );
    state.isHung = isHung;
    for (const one of watched) one.wasAlive ||= /^[RSDTt]$/.test(one.state);
    return problems;
  }
}

function writerOrder({ header }: FoundRing): number {
  return header.writer === "python" ? 0 : 1;
}

function poll(follower: RingFollower, nowNs: number): boolean {
  try {
    return follower.poll(nowNs);
  } catch {
    return false;
  }
}

/** A run is named by its first process, which stays its first as rings come and go. */
function keyOf({ job, address, rings }: Run): string {
  const [first] = rings.toSorted(
    (a, b) => a.header.startTicks - b.header.startTicks || a.header.pid - b.header.pid,
  );
  return `${job} ${address} ${first!.header.pid} ${first!.header.startTicks}`;
}
