/** The ranks of this machine in front of an agent: the rings of their probes, their processes, and their logs. */
import { errorText, UserError } from "../../base/errors.ts";
import { cutText, harmless } from "../../base/text.ts";
import {
  type AgentReply,
  type AgentRequest,
  type EvidenceRequest,
  LIMITS,
  type PrepareTestsRequest,
  type ProfileRequest,
  type Report,
  type ValidateRequest,
} from "../wire/messages.ts";
import { answerOperators, type MemberOf, refused, type TrackOf } from "./rings/answer-operators.ts";
import { answerWire } from "./rings/answer-wire.ts";
import { collectEvidence } from "./evidence/evidence.ts";
import { LogFollower } from "./logs/log-follower.ts";
import { ranksOf, routeLogs, saysOf, LogJob } from "./logs/log-job.ts";
import { MemoryBudget } from "./rings/memory-budget.ts";
import type { Node } from "./node.ts";
import type { Machine } from "./process-state.ts";
import { canTest, readTests, requestTests } from "./evidence/request-tests.ts";
import { RunTrack } from "./run-track.ts";
import { type RunProblem, RunWatcher } from "./run-watcher.ts";
import { ringsOf } from "./select-run.ts";
import type { SlowStorage } from "./evidence/slow-storage.ts";

const HANG_NS = 30e9;
/** Runs that are over and whose rings may still be asked for. */
const MOST_PAST = 32;
/** Evidence that is being collected or waits for its turn. */
const MOST_ASKED = 4;
const SAYS = 400;
const UNDER_WAY = "tests or a profile are under way already";
const MOST_TOLD = 1000;

export interface RingNodeOptions {
  /** Where rings are: asked again at every tick, because jobs of other users bring folders of their own. */
  folders(this: void): readonly string[];
  /** Patterns of logs. */
  readonly logs: readonly string[];
  /** The job that logs belong to where no probe runs; null: logs are only read for jobs with probes. */
  readonly job: string | null;
  /** As the agent is called. */
  readonly machineName: string;
  readonly nics: readonly string[];
  readonly keepNs: number;
  readonly memoryBytes: number;
  readonly machine: Machine;
  /** Where logs and dumps are read. */
  readonly storage: SlowStorage;
  /** A line for whoever runs the agent; each once until it changes. */
  onTrouble(this: void, line: string): void;
  readonly stacksMs?: number;
}

interface Past {
  readonly watcher: RunWatcher;
  readonly key: string;
  readonly job: string;
  readonly run: string;
}

export function ringNode(options: RingNodeOptions): Node {
  return new RingNode(options);
}

class RingNode implements Node {
  readonly #options: RingNodeOptions;
  readonly #watchers = new Map<string, RunWatcher>();
  /** By folder and the watcher's key. */
  readonly #tracks = new Map<string, { readonly watcher: RunWatcher; readonly track: RunTrack }>();
  #past: Past[] = [];
  readonly #logs: LogFollower;
  readonly #logJob: LogJob | null;
  readonly #memory: MemoryBudget;
  readonly #told = new Set<string>();
  #asked = 0;
  readonly #testing = new Set<number>();
  #evidence: Promise<unknown> = Promise.resolve();

  constructor(options: RingNodeOptions) {
    this.#options = options;
    this.#logs = new LogFollower(options.logs, options.storage);
    this.#logJob = options.job === null ? null : new LogJob(options.job);
    this.#memory = new MemoryBudget(options.memoryBytes);
  }

  tick(nowMs: number): readonly Report[] {
    try {
      return this.#tick(nowMs);
    } catch (error) {
      this.#say(`cannot read this machine: ${errorText(error)}`);
      return [];
    }
  }

  introduce(): readonly Report[] {
    const reports: Report[] = this.#named.map((track) => track.jobReport());
    if (this.#logJob?.isKnown) reports.push(this.#logJob.report());
    return reports;
  }

  async answer(request: AgentRequest): Promise<AgentReply> {
    const track = this.#named.find(({ job, run }) => job === request.job && run === request.run);
    if (request.ask === "unknown")
      return refused(`this agent does not know how to answer "${harmless(request.word)}"`);
    if (request.ask === "evidence") return this.#collect(request, track ?? null);
    if (track === undefined) return refused(`no run ${request.run} of ${request.job} here`);
    if (request.ask === "prepare-tests") return this.#canTest(request, track);
    if (request.ask === "read-tests") {
      const ranks = request.group.filter((rank) => track.ranks.has(rank));
      const rings = track.ringsOf(ranks).map(({ ring }) => ring);
      return readTests(request, rings, this.#options.storage);
    }
    if (request.ask === "validate" || request.ask === "profile") return this.#test(request, track);
    const trackOf: TrackOf = (rank) => track.ranks.get(rank) ?? null;
    const memberOf = membersOf(track);
    switch (request.ask) {
      case "operators":
        return answerOperators(request, trackOf, memberOf);
      case "wire":
        return answerWire(request, trackOf, memberOf);
    }
  }

  #canTest(request: PrepareTestsRequest, track: RunTrack): AgentReply {
    const ranks = request.group.filter((rank) => track.ranks.has(rank));
    if (ranks.some((rank) => this.#testing.has(rank))) return refused(UNDER_WAY);
    const rings = track.ringsOf(ranks).map(({ ring }) => ring);
    return canTest(request, ranks, rings);
  }

  /** A rank does one thing at a time: the job waits for it. */
  async #test(request: ValidateRequest | ProfileRequest, track: RunTrack): Promise<AgentReply> {
    const asked = request.ask === "validate" ? request.group : request.ranks;
    const ranks = asked.filter((rank) => track.ranks.has(rank));
    if (ranks.some((rank) => this.#testing.has(rank))) return refused(UNDER_WAY);
    for (const rank of ranks) this.#testing.add(rank);
    try {
      return await requestTests(
        request,
        track.ringsOf(ranks).map(({ ring }) => ring),
        this.#options.storage,
      );
    } catch (error) {
      return refused(cutText(errorText(error), SAYS));
    } finally {
      for (const rank of ranks) this.#testing.delete(rank);
    }
  }

  close(): void {
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
    this.#tracks.clear();
    this.#logs.close();
  }

  get #named(): RunTrack[] {
    return [...this.#tracks.values()].flatMap(({ track }) => (track.run === null ? [] : [track]));
  }

  #tick(nowMs: number): Report[] {
    this.#memory.count([...this.#watchers.values()].flatMap(({ followers }) => followers));
    const { rows, failures, troubles } = this.#logs.take();
    // For the next look: nothing here waits for storage.
    void this.#logs.read(nowMs);
    for (const line of troubles) this.#say(line);
    const reports: Report[] = [];
    const present = new Set<string>();
    const due: { key: string; problems: readonly RunProblem[] }[] = [];
    for (const folder of this.#options.folders()) {
      const watcher = this.#watcherOf(folder);
      const problems = this.#watch(watcher, folder);
      for (const watched of watcher.watchedRuns) {
        const key = `${folder} ${watched.key}`;
        present.add(key);
        if (!this.#tracks.has(key))
          this.#tracks.set(key, { watcher, track: this.#newTrack(watched) });
        due.push({ key, problems: problems.filter((one) => one.key === watched.key) });
        this.#tracks.get(key)!.track.meet(watched);
      }
    }
    this.#forget(present);
    const tracks = [...this.#tracks.values()].map(({ track }) => track);
    const routed = routeLogs(rows, failures, tracks);
    for (const { key, problems } of due) {
      const { track } = this.#tracks.get(key)!;
      const own = routed.get(track);
      for (const failure of own?.failures ?? [])
        track.events.tell("log-failure", ranksOf(failure, track), nowMs, saysOf(failure));
      reports.push(...track.tick(problems, nowMs, own?.rows ?? []));
    }
    if (this.#logJob !== null) {
      const rest = routed.get(null);
      reports.push(...this.#logJob.tick(rest?.logRows ?? [], rest?.failures ?? [], saysOf, nowMs));
    }
    reports.push(this.#beat(nowMs));
    return reports;
  }

  #beat(nowMs: number): Report {
    const nowNs = Number(this.#options.machine.monotonicNs());
    const jobs = this.#named.flatMap((track) => track.beat(nowNs) ?? []);
    if (this.#logJob?.isKnown) jobs.push(this.#logJob.beat());
    return { kind: "beat", nowMs, jobs, dropped: { reports: 0, points: 0 } };
  }

  #newTrack(watched: ConstructorParameters<typeof RunTrack>[0]): RunTrack {
    const { machineName, nics, machine, logs } = this.#options;
    return new RunTrack(watched, {
      machine: machineName,
      nics,
      proc: machine.proc,
      hasLogs: logs.length > 0,
    });
  }

  #watcherOf(folder: string): RunWatcher {
    const known = this.#watchers.get(folder);
    if (known) return known;
    const memory = this.#memory;
    const watcher = new RunWatcher(folder, {
      keepNs: this.#options.keepNs,
      hangNs: HANG_NS,
      machine: this.#options.machine,
      get mostRecords() {
        return memory.mostRecords;
      },
      mayGrow: memory.mayGrow,
      refuse: memory.refuse,
    });
    this.#watchers.set(folder, watcher);
    return watcher;
  }

  #watch(watcher: RunWatcher, folder: string): readonly RunProblem[] {
    try {
      const { problems, troubles } = watcher.tick();
      for (const line of troubles) this.#say(line);
      return problems;
    } catch (error) {
      // A folder that is not there yet comes with the first job.
      this.#say(error instanceof UserError ? error.message : `${folder}: ${String(error)}`);
      return [];
    }
  }

  /** What is no longer followed; its rings can still be copied. */
  #forget(present: ReadonlySet<string>): void {
    for (const [key, { watcher, track }] of this.#tracks) {
      if (present.has(key)) continue;
      this.#tracks.delete(key);
      const { job, run } = track;
      if (run !== null) this.#past.push({ watcher, key: track.key, job, run });
    }
    this.#past = this.#past.slice(-MOST_PAST);
  }

  /** One after the other: copies of many rings at once would take the memory of all of them. */
  async #collect(request: EvidenceRequest, track: RunTrack | null): Promise<AgentReply> {
    const past = this.#past.findLast(({ job, run }) => job === request.job && run === request.run);
    const own =
      track === null ? past : [...this.#tracks.values()].find((one) => one.track === track);
    if (own === undefined) return refused(`no run ${request.run} of ${request.job} here`);
    if (this.#asked >= MOST_ASKED) return refused("too many requests for evidence at once");
    this.#asked++;
    const turn = this.#evidence;
    const work = turn.then(() => {
      const rings = track
        ? track.ringsOf(request.ranks).map(({ ring }) => ring)
        : pastRings(past!, request.ranks);
      return collectEvidence(request, {
        rings,
        machine: this.#options.machine,
        extend: (ring, copy) => own.watcher.extend(ring, copy),
        storage: this.#options.storage,
        logEnds: (bytes) => this.#logs.ends(request.ranks, bytes),
        ...(this.#options.stacksMs === undefined ? {} : { stacksMs: this.#options.stacksMs }),
      });
    });
    this.#evidence = work.catch(() => {});
    try {
      return await work;
    } catch (error) {
      return refused(cutText(errorText(error), SAYS));
    } finally {
      this.#asked--;
    }
  }

  #say(line: string): void {
    if (this.#told.has(line)) return;
    if (this.#told.size >= MOST_TOLD) this.#told.clear();
    this.#told.add(line);
    this.#options.onTrouble(cutText(harmless(line), SAYS));
  }
}

function pastRings({ watcher, key }: Past, ranks: readonly number[] | null) {
  const run = watcher.runOf(key);
  if (run === null) return [];
  return ringsOf([run])
    .filter(({ header }) => ranks === null || ranks.includes(header.rank))
    .slice(0, 2 * LIMITS.ranksPerAgent);
}

/** Who is who in the groups of a run, as far as this machine's ranks tell. */
function membersOf(track: RunTrack): MemberOf {
  const members = new Map<string, number>();
  const whole = new Set<string>();
  for (const { rank, groups } of track.ranks.values())
    for (const { key, groupRank, size } of groups.list) {
      members.set(`${key} ${groupRank}`, rank);
      // In the group of all, everybody's place is his rank, unless one of ours is elsewhere.
      if (size === track.worldSize && groupRank === rank) whole.add(key);
    }
  for (const { rank, groups } of track.ranks.values())
    for (const { key, groupRank } of groups.list) if (groupRank !== rank) whole.delete(key);
  return (key, place) => members.get(`${key} ${place}`) ?? (whole.has(key) ? place : -1);
}
