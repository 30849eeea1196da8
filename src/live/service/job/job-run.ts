/** What agents have told of one run of a job: its ranks, who holds them, its iterations. */
import { type LiveJob, liveJob } from "../../../ingest/live-job.ts";
import { IterationTracker } from "../../../methods/iterations/iteration-tracker.ts";
import type { JobFile } from "../../../ingest/job-file.ts";
import type { Rank } from "../../../model/ids.ts";
import type { LivePoints } from "../../../model/live-points.ts";
import type { IterationSeries } from "../../../model/series.ts";
import type { JobReport, PointsReport, RankReport } from "../../wire/messages.ts";
import type { ConnectedAgents } from "./job-events.ts";
import { PointTable } from "./point-table.ts";
import { backMs, type SuspectedSlowdown } from "../slowdown/slowdown-detector.ts";
import type { Pace } from "../standstill/standstill-detector.ts";
import { type PastPause, usualPauseMs } from "../standstill/usual-pauses.ts";

/** Iterations of the whole job that are kept in memory: an hour at one a second. */
const KEPT_ITERATIONS = 4096;
/**
 * An iteration counts when all ranks that tell have told of it: a search asks for its operators, which agents have not got
 * before. Nearly all are enough after a while (agents tell once a second), and nearly all of a later one. What is known of
 * some ranks alone misleads: of a healthy job whose iterations vary it accuses those that happened to report in time.
 */
const NEARLY_ALL = 0.95;
const AWHILE_MS = 1600;

/** Iterations that tell how long one may take. */
const LOOKED_BACK = 512;
/** Pauses that tell whether they recur, each so many times as long as an iteration. */
const MOST_PAUSES = 6;
const LEAST_PAUSE = 3;
/** Agents report every other second: one that is silent for so long is not heard. */
const HEARD_MS = 15_000;
/** Where nobody at all is heard for so long, the network to the service was at fault: when it is back, agents come one by one. */
const DEAF_MS = 5000;
/** Machines' clocks and start-up differ. */
const SAME_START_MS = 10 * 60_000;
/** Iterations of each kind that are compared: more say no more, and cost. */
const MOST_NORMAL = 16;
const MOST_SLOW = 8;
/** Of those that are slow now and then: who is at fault in which of them has to be found out. */
const MOST_PICKED = 40;

export interface RunRank {
  readonly report: RankReport;
  readonly agent: string;
  readonly machine: string;
  /** The run's name with that agent: machines do not agree on one. */
  readonly agentRun: string;
  state: "running" | "stopped" | "gone";
}

export interface JobIteration {
  readonly iteration: number;
  readonly durationMs: number;
  readonly endMs: number;
  /** The tracker's level after it; NaN before it is known. */
  readonly levelMs: number;
  /** The tracker's word, where the level changed: indices are those of points pushed. */
  readonly shift: {
    readonly fromIteration: number;
    readonly fromMs: number;
    readonly beforeMs: number;
    readonly afterMs: number;
  } | null;
}

/** New shares hold from the iteration after the next one on, or from one of those behind it. */
const LEAST_AHEAD = 2;
const CHANGING = 3;
const MOST_SHARES = 64;

export class JobRun {
  readonly job: string;
  readonly run: string;
  readonly startedMs: number;
  readonly ranks = new Map<Rank, RunRank>();
  /** The same by agent: each says every two seconds how its own are. */
  readonly #byAgent = new Map<string, Map<Rank, RunRank>>();
  readonly points = new PointTable();
  /** When each agent was last heard, milliseconds since 1970. */
  readonly heardMs = new Map<string, number>();
  readonly #disconnected = new Set<string>();
  /** When somebody was heard last, and when nobody was for a while, until when. */
  #anyHeardMs = NaN;
  #deaf = { fromMs: -Infinity, untilMs: -Infinity };
  readonly pauses = new Set<number>();
  /** Iterations in which the job stood still with an incident: no pause that would be usual. */
  readonly #disrupted = new Set<number>();
  /** Slow iterations of incidents that are over: nothing to compare a later slowdown with. */
  readonly #pastSlow = new Set<number>();
  worldSize = 0;
  /** How often its numbers went back: it was started from a checkpoint within the run. */
  epoch = 0;
  #tracker: IterationTracker;
  #counted = -Infinity;
  /** Of the whole job, by push: number, end, duration. */
  readonly #numbers: number[] = [];
  readonly #ends: number[] = [];
  readonly #durations: number[] = [];
  #firstPush = 0;
  /** Index of a point for us less its index for the tracker. */
  #ahead = 0;
  /** How micro-batches were shared out from which iteration on. */
  #shares: readonly { readonly from: number; readonly shares: string | null }[] = [];
  #known: LiveJob | null = null;
  #machines: number | null = null;
  /** Counts what agents told of ranks and groups. */
  revision = 0;
  readonly #jobFile: JobFile | null;

  constructor(report: JobReport, jobFile: JobFile | null) {
    this.job = report.job;
    this.run = report.run;
    this.startedMs = report.startedMs;
    this.#jobFile = jobFile;
    this.#tracker = this.#newTracker();
  }

  /**
   * Whether a report under another name may tell of this very start: machines that cannot see the communicator of all
   * ranks name it after something else. Not where its ranks are known under a name already: they were started again.
   */
  mayBe(agent: string, report: JobReport): boolean {
    if (Math.abs(report.startedMs - this.startedMs) > SAME_START_MS) return false;
    return report.ranks.every(({ rank }) => {
      const held = this.ranks.get(rank);
      return !held || (held.agent === agent && held.agentRun === report.run);
    });
  }

  /** Ranks of the report that another agent holds already are not taken; they are given back. */
  take(agent: string, machine: string, report: JobReport, connected: ConnectedAgents): Rank[] {
    const refused: Rank[] = [];
    this.worldSize = Math.max(this.worldSize, report.worldSize);
    for (const rank of report.ranks) {
      const held = this.ranks.get(rank.rank);
      if (held && held.agent !== agent && connected.has(held.agent)) refused.push(rank.rank);
      else this.#hold({ report: rank, agent, machine, agentRun: report.run, state: "running" });
    }
    this.#known = null;
    this.#machines = null;
    this.revision++;
    return refused;
  }

  /** How many have ranks of it. */
  get machines(): number {
    this.#machines ??= new Set([...this.ranks.values()].map(({ machine }) => machine)).size;
    return this.#machines;
  }

  /** GPUs that wait when it stands still: also those of ranks without an agent. */
  get gpus(): number {
    return Math.max(this.worldSize, this.ranks.size);
  }

  /** Who holds ranks of it. */
  get agents(): string[] {
    return [...this.#byAgent].filter(([, ranks]) => ranks.size > 0).map(([agent]) => agent);
  }

  ranksOf(agent: string): ReadonlyMap<Rank, RunRank> {
    return this.#byAgent.get(agent) ?? NOBODY;
  }

  heard(agent: string, nowMs: number): void {
    const wasSilent = this.#isSilent(agent, nowMs);
    if (nowMs - this.#anyHeardMs > DEAF_MS)
      this.#deaf = { fromMs: this.#anyHeardMs, untilMs: nowMs };
    this.#anyHeardMs = nowMs;
    this.heardMs.set(agent, nowMs);
    this.#disconnected.delete(agent);
    // What it brings is weighed as one of those that are heard.
    if (wasSilent) this.points.withoutSilent(this.#silentRanks(nowMs));
  }

  disconnected(agent: string): void {
    this.#disconnected.add(agent);
  }

  isHeard(agent: string, nowMs: number): boolean {
    return !this.#disconnected.has(agent) && !this.#isSilent(agent, nowMs);
  }

  #isSilent(agent: string, nowMs: number): boolean {
    return nowMs - (this.heardMs.get(agent) ?? nowMs) > HEARD_MS;
  }

  #hold(held: RunRank): void {
    const { rank } = held.report;
    const before = this.ranks.get(rank);
    if (before && before.agent !== held.agent) this.#byAgent.get(before.agent)?.delete(rank);
    this.ranks.set(rank, held);
    const own = this.#byAgent.get(held.agent);
    if (own) own.set(rank, held);
    else this.#byAgent.set(held.agent, new Map([[rank, held]]));
  }

  /** Points of ranks that this agent holds: how many rows were its own, how many of them new, and how many of ranks that another holds. */
  addPoints(
    agent: string,
    report: PointsReport,
    nowMs: number,
  ): { readonly own: number; readonly added: number; readonly foreign: number } {
    let [foreign, others] = [0, 0];
    const isOwn = (rank: Rank): boolean => {
      const held = this.ranks.get(rank);
      return held?.agent === agent && held.agentRun === report.run;
    };
    for (const rank of report.rank) {
      if (isOwn(rank)) continue;
      others++;
      const held = this.ranks.get(rank);
      if (held && held.agent !== agent) foreign++;
    }
    const own = others === 0 ? report : ownRows(report, isOwn);
    const first = this.points.add(own, nowMs);
    let { added } = first;
    if (first.beganAgain) {
      // Started again from a checkpoint: the numbers go back, the level does not.
      this.epoch++;
      this.#shares = this.#shares.slice(-1).map((last) => ({ ...last, from: -Infinity }));
      this.points.clear();
      this.#pastSlow.clear();
      this.#counted = -Infinity;
      ({ added } = this.points.add(own, nowMs));
    }
    return { own: own.rank.length, added, foreign };
  }

  /** Whether the agent told of ranks of this run under this name. */
  isOf(agent: string, agentRun: string): boolean {
    const [first] = this.ranksOf(agent).values();
    return first?.agentRun === agentRun;
  }

  /** Iterations that are complete now, oldest first. */
  count(nowMs: number): JobIteration[] {
    const counted: JobIteration[] = [];
    this.points.withoutSilent(this.#silentRanks(nowMs));
    const numbers = this.points.after(this.#counted);
    const { fromMs, untilMs } = this.#deaf;
    const active = this.points.active((nowMs - untilMs > HEARD_MS ? nowMs : fromMs) - HEARD_MS);
    const nearlyAll = NEARLY_ALL * active;
    const last = numbers.findLastIndex((number) => this.points.toldOf(number) >= nearlyAll);
    for (const [k, number] of numbers.entries()) {
      const sinceMs = nowMs - this.points.heardOf(number);
      const isDone =
        this.points.toldOf(number) >= active ||
        k < last ||
        (k === last && sinceMs >= AWHILE_MS) ||
        sinceMs >= HEARD_MS;
      if (!isDone) break;
      this.#counted = number;
      const whole = this.points.whole(number);
      if (whole) counted.push(this.#push(whole));
    }
    return counted;
  }

  /** Ranks that have told of iterations, and do no longer. A batch that is late, or a connection that is renewed, is no silence. */
  #silentRanks(nowMs: number): number {
    let silent = 0;
    if (nowMs - this.#deaf.untilMs <= HEARD_MS) return silent;
    for (const [agent, ranks] of this.#byAgent)
      if (this.#isSilent(agent, nowMs))
        for (const rank of ranks.keys()) if (this.points.slotOf(rank) >= 0) silent++;
    return silent;
  }

  get lastIteration(): number {
    return this.#counted;
  }

  /** NaN before it is known. */
  get levelMs(): number {
    return this.#tracker.level;
  }

  /** Iterations of the whole job so far. */
  get pushes(): number {
    return this.#firstPush + this.#numbers.length;
  }

  /** When an iteration that is remembered began, milliseconds since 1970; NaN where it is not. */
  startMs(iteration: number): number {
    const at = this.#numbers.lastIndexOf(iteration);
    return (this.#ends[at] ?? NaN) - (this.#durations[at] ?? NaN);
  }

  /** Iterations of the whole job before this one, which is remembered; 0 where it is not. */
  pushesBefore(iteration: number): number {
    return this.#firstPush + Math.max(0, this.#numbers.lastIndexOf(iteration));
  }

  durationMs(iteration: number): number {
    return this.#durations[this.#numbers.lastIndexOf(iteration)] ?? NaN;
  }

  /** Of the last iterations, without those in which the job stood still. */
  get longestMs(): number {
    const from = Math.max(0, this.#durations.length - LOOKED_BACK);
    // What a service before this one knew of its pace counts as well.
    let longest = this.levelMs > 0 ? this.levelMs : 0;
    for (let i = from; i < this.#durations.length; i++)
      if (!this.pauses.has(this.#numbers[i]!) && !this.#disrupted.has(this.#numbers[i]!))
        longest = Math.max(longest, this.#durations[i]!);
    return longest;
  }

  disrupted(iterations: readonly JobIteration[]): void {
    for (const { iteration } of iterations) this.#disrupted.add(iteration);
    keepLast(this.#disrupted);
  }

  get pace(): Pace {
    const { levelMs, longestMs } = this;
    return { levelMs, longestMs, pauseMs: usualPauseMs(this.#pastPauses(), this.#counted + 1) };
  }

  /** The last iterations that took much longer than others: checkpoints, evaluations, compilations. */
  #pastPauses(): PastPause[] {
    const pauses: PastPause[] = [];
    // The first iteration of a run warms up.
    for (let i = this.#numbers.length - 1; i > 0 && pauses.length < MOST_PAUSES; i--) {
      const iteration = this.#numbers[i]!;
      if (!this.pauses.has(iteration) || this.#disrupted.has(iteration)) continue;
      const durationMs = this.#durations[i]!;
      if (durationMs > LEAST_PAUSE * this.levelMs) pauses.push({ iteration, durationMs });
    }
    return pauses.reverse();
  }

  /** Replicas share out their micro-batches otherwise soon; jobs ask an iteration or two ahead. */
  reshared(shares: string | null): void {
    const from = this.lastIteration + LEAST_AHEAD;
    this.#shares = [...this.#shares.slice(1 - MOST_SHARES), { from, shares }];
  }

  /** How micro-batches were shared out in an iteration; undefined where that was just changing. */
  #sharesIn(iteration: number): string | null | undefined {
    const last = this.#shares.findLast(({ from }) => from <= iteration);
    if (!last) return this.#shares.length < MOST_SHARES ? null : undefined;
    return iteration < last.from + CHANGING ? undefined : last.shares;
  }

  /**
   * Iterations to compare: the last ones that took about as long as before, and the first that took longer; of an
   * intermittent slowdown the last of both. What was slow for another reason, a checkpoint or the incident before, is
   * neither; but where that goes on (`besideMs`), it is in both. Nor is an iteration in which replicas had other shares of
   * the work.
   */
  compared(suspicion: SuspectedSlowdown, isAgain = false): LivePoints {
    const { slowFrom, beforeMs, besideMs = beforeMs, afterMs, intermittent } = suspicion;
    const between = (besideMs + afterMs) / 2;
    const shares = this.#sharesIn(intermittent?.slow.at(-1) ?? slowFrom);
    const counted = this.points.iterations.filter(
      (number) =>
        number <= this.#counted &&
        !this.pauses.has(number) &&
        !this.#pastSlow.has(number) &&
        (shares === undefined || this.#sharesIn(number) === shares),
    );
    const of = (wanted: (number: number, ms: number) => boolean): number[] =>
      counted.filter((number) => wanted(number, this.points.whole(number)?.durationMs ?? NaN));
    if (intermittent) {
      const isSlow = new Set(intermittent.slow);
      const regular = of((number, ms) => !isSlow.has(number) && ms < backMs(suspicion));
      // A spike of many times the length looks like a standstill to the tracker, which pauses are made of.
      const slow = intermittent.slow.filter((number) => this.points.whole(number) !== null);
      const all = [...regular.slice(-MOST_NORMAL), ...slow.slice(-MOST_PICKED)];
      return this.points.window(all.sort((a, b) => a - b));
    }
    const least = besideMs > beforeMs ? (beforeMs + besideMs) / 2 : 0;
    const normal = of((number, ms) => number < slowFrom && ms >= least && ms < between);
    const since = of((number, ms) => number >= slowFrom && ms >= between);
    // At a later look the latest: somebody else may be slow by now.
    const slow = isAgain ? since.slice(-MOST_SLOW) : since.slice(0, MOST_SLOW);
    return this.points.window([...normal.slice(-MOST_NORMAL), ...slow]);
  }

  /** From a push on: what was slow before is another story. */
  series(fromPush = 0): IterationSeries {
    const from = Math.max(0, fromPush - this.#firstPush);
    const numbers = this.#numbers.slice(from);
    const { length } = numbers;
    return {
      source: `agents of ${this.job}`,
      file: `agents of ${this.job}`,
      rank: null,
      basis: "reported",
      iteration: Float64Array.from(numbers),
      durationMs: Float64Array.from(this.#durations.slice(from)),
      endMs: Float64Array.from(this.#ends.slice(from)),
      line: new Int32Array(length),
      batch: new Float64Array(length).fill(NaN),
      between: new Uint8Array(length),
    };
  }

  /** Milliseconds beyond a healthy level, summed over the whole job's slow iterations. */
  lostMs({ slowFrom, beforeMs, intermittent }: SuspectedSlowdown, fromPush: number): number {
    const slow = intermittent && new Set(intermittent.slow);
    let lost = 0;
    for (let i = Math.max(0, fromPush - this.#firstPush); i < this.#numbers.length; i++) {
      const number = this.#numbers[i]!;
      if (slow ? slow.has(number) : number >= slowFrom)
        lost += Math.max(0, this.#durations[i]! - beforeMs);
    }
    return lost;
  }

  /** Made anew where ranks or groups have changed. */
  known(): LiveJob {
    this.#known ??= liveJob(
      this.job,
      this.worldSize,
      [...this.ranks.values()].map(({ report, machine }) => ({ ...report, machine })),
      this.#jobFile,
    );
    return this.#known;
  }

  #push({
    iteration,
    durationMs,
    endMs,
  }: {
    iteration: number;
    durationMs: number;
    endMs: number;
  }): JobIteration {
    this.#numbers.push(iteration);
    this.#ends.push(endMs);
    this.#durations.push(durationMs);
    const shift = this.#tracker.push({ iteration, durationMs, between: 0, batch: NaN });
    let told: JobIteration["shift"] = null;
    if (shift) {
      const at = shift.start + this.#ahead - this.#firstPush;
      told = {
        fromIteration: this.#numbers[at] ?? iteration,
        fromMs: (this.#ends[at] ?? endMs) - (this.#durations[at] ?? durationMs),
        beforeMs: shift.before,
        afterMs: shift.after,
      };
    }
    if (this.#numbers.length > KEPT_ITERATIONS) {
      const surplus = this.#numbers.length - KEPT_ITERATIONS;
      for (const list of [this.#numbers, this.#ends, this.#durations]) list.splice(0, surplus);
      this.#firstPush += surplus;
    }
    return { iteration, durationMs, endMs, levelMs: this.#tracker.level, shift: told };
  }

  /** A slowdown is over; `from`: when the first of its culprits became slow. */
  wasSlow(from: number, slowdown: SuspectedSlowdown): void {
    const back = backMs(slowdown);
    const { iterations } = this.points;
    for (const number of iterations)
      if (number >= from && (this.points.whole(number)?.durationMs ?? 0) >= back)
        this.#pastSlow.add(number);
    for (const number of this.#pastSlow) if (number < iterations[0]!) this.#pastSlow.delete(number);
  }

  /**
   * A slow-down is over: the tracker forgets it, and knows what is healthy. Left alone it would take a job that is slow
   * now and then for one whose level is in between.
   */
  calm(healthyMs: readonly number[]): void {
    this.#tracker = this.#newTracker();
    this.#ahead = this.pushes - healthyMs.length;
    const first = (this.#numbers.at(-1) ?? 0) - healthyMs.length + 1;
    for (const [k, durationMs] of healthyMs.entries())
      this.#tracker.push({ iteration: first + k, durationMs, between: 0, batch: NaN });
  }

  #newTracker(): IterationTracker {
    return new IterationTracker({
      mark: (index, role) => {
        const number = this.#numbers[index + this.#ahead - this.#firstPush];
        if (number === undefined) return;
        if (role === "counts") this.pauses.delete(number);
        else this.pauses.add(number);
        keepLast(this.pauses);
      },
    });
  }
}

const NOBODY: ReadonlyMap<Rank, RunRank> = new Map();

function ownRows(report: PointsReport, isOwn: (rank: Rank) => boolean): PointsReport {
  const kept = [...report.rank.keys()].filter((i) => isOwn(report.rank[i]!));
  const of = <A extends Uint32Array | Float32Array | Float64Array>(column: A, made: A): A => {
    for (const [k, i] of kept.entries()) made[k] = column[i]!;
    return made;
  };
  const floats = (column: Float32Array): Float32Array => of(column, new Float32Array(kept.length));
  return {
    ...report,
    rank: of(report.rank, new Uint32Array(kept.length)),
    iteration: of(report.iteration, new Float64Array(kept.length)),
    endMs: of(report.endMs, new Float64Array(kept.length)),
    durationMs: floats(report.durationMs),
    collectiveMs: floats(report.collectiveMs),
    sendMs: floats(report.sendMs),
    recvMs: floats(report.recvMs),
    issueMs: floats(report.issueMs),
  };
}

function keepLast(iterations: Set<number>): void {
  for (const oldest of iterations) {
    if (iterations.size <= KEPT_ITERATIONS) return;
    iterations.delete(oldest);
  }
}
