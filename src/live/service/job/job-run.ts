/** What agents have told of one run of a job: its ranks, who holds them, its iterations. */
import { type LiveJob, liveJob } from "../../../ingest/live-job.ts";
import type { JobFile } from "../../../ingest/job-file.ts";
import type { Rank } from "../../../model/ids.ts";
import type { JobReport, PointsReport, RankReport } from "../../wire/messages.ts";
import type { ConnectedAgents } from "./job-events.ts";
import { type JobIteration, JobIterations } from "./job-iterations.ts";
import { PointTable } from "./point-table.ts";

/**
 * An iteration counts when all ranks that tell have told of it: a search asks for its operators, which agents have not got
 * before. Nearly all are enough after a while (agents tell once a second), and nearly all of a later one. What is known of
 * some ranks alone misleads: of a healthy job whose iterations vary it accuses those that happened to report in time.
 */
const NEARLY_ALL = 0.95;
const AWHILE_MS = 1600;

/** Agents report every other second: one that is silent for so long is not heard. */
const HEARD_MS = 15_000;
/** Where nobody at all is heard for so long, the network to the service was at fault: when it is back, agents come one by one. */
const DEAF_MS = 5000;
/** Machines' clocks and start-up differ. */
const SAME_START_MS = 10 * 60_000;

export interface RunRank {
  readonly report: RankReport;
  readonly agent: string;
  readonly machine: string;
  /** The run's name with that agent: machines do not agree on one. */
  readonly agentRun: string;
  state: "running" | "stopped" | "gone";
}

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
  readonly iterations: JobIterations;
  worldSize = 0;
  /** How often its numbers went back: it was started from a checkpoint within the run. */
  epoch = 0;
  #counted = -Infinity;
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
    this.iterations = new JobIterations(`agents of ${this.job}`);
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
      this.points.clear();
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
      if (whole) counted.push(this.iterations.push(whole));
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
    return this.iterations.levelMs;
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
