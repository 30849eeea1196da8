/**
 * One job under watch: what agents tell of it becomes incidents with a life. What takes time (searching, collecting,
 * storing) is handed in, and one thing is looked into at a time.
 */
import { count, rankWords } from "../../base/text.ts";
import type { Rank } from "../../model/ids.ts";
import type { Incident } from "../../model/incident.ts";
import type { Verdict } from "../../model/verdict.ts";
import type { JobFile } from "../../live-pipeline.ts";
import type { BeatReport, EventReport, JobReport, PointsReport } from "../wire/messages.ts";
import {
  accusesSame,
  confirmed,
  isOpen,
  relapsed,
  resolved,
  suspected,
  withWaste,
} from "./incident-lifecycle.ts";
import type { Diagnosis, JobEffects, JobWatchOptions, SavedJobState } from "./job-effects.ts";
import { standstillVerdict } from "./standstill-verdict.ts";
import { JobRun, type JobIteration } from "./job-run.ts";
import {
  SlowdownDetector,
  type SlowdownDecision,
  type SuspectedSlowdown,
} from "./slowdown-detector.ts";
import { StandstillDetector } from "./standstill-detector.ts";

/** Sure enough to name somebody before all attempts are spent; and after so many slow iterations. */
const SURE = 0.5;
const SURE_LATER = 0.4;
const PATIENT = 5;
/** Points that a known level stands for. */
const KNOWN_LEVEL = 12;
const MOST_CLAIMS = 16;
const MOST_EARLIER = 4;
/** Ranks of a run tell at least so often while it runs. */
const QUIET_MS = 5000;
/** Clocks of machines are apart by less. */
const CLOCKS_MS = 30_000;

export class JobWatch {
  readonly job: string;
  readonly #options: JobWatchOptions;
  readonly #effects: JobEffects;
  readonly #jobFile: JobFile | null;
  #run: JobRun | null = null;
  #slowWatch = new SlowdownDetector();
  #stillWatch: StandstillDetector;
  #slow: Incident | null = null;
  #still: Incident | null = null;
  #recent: Incident | null = null;
  #earlier: readonly Incident[] = [];
  #safe: Pick<SavedJobState, "slow" | "still" | "recent">;
  #baselineMs: number | null = null;
  /** GPU-milliseconds lost in this run by incidents that are over. */
  #wastedBefore = 0;
  #memory: SavedJobState | null;
  /** Everything that changes incidents goes through here, one after the other. */
  #queue: Promise<void> = Promise.resolve();
  /** Agents that have said that it is over on their machine. */
  readonly #ended = new Set<string>();
  #seenMs = 0;
  /** Runs that ranks claim to be in, which are not this one: by name, who. */
  readonly #claims = new Map<string, Set<Rank>>();
  /** Iterations of the run (JobRun.pushes) when the last slow-down was over. */
  #healthySince = 0;
  #stillEpoch = 0;
  /** The last iteration that the service before us counted in this run. */
  #seenThrough = -Infinity;
  #seenUntilMs = 0;
  readonly #pastRuns = new Set<string>();

  constructor(
    job: string,
    jobFile: JobFile | null,
    memory: SavedJobState | null,
    options: JobWatchOptions,
    effects: JobEffects,
  ) {
    this.job = job;
    this.#jobFile = jobFile;
    this.#memory = memory;
    this.#options = options;
    this.#effects = effects;
    this.#stillWatch = new StandstillDetector(options.hangMs);
    this.#seenMs = memory?.seenMs ?? 0;
    this.#baselineMs = memory?.baselineMs ?? null;
    this.#wastedBefore = memory?.wastedGpuMs ?? 0;
    this.#slow = memory?.slow ?? null;
    this.#still = memory?.still ?? null;
    this.#recent = memory?.recent ?? null;
    this.#earlier = memory?.earlier ?? [];
    this.#safe = { slow: this.#slow, still: this.#still, recent: this.#recent };
  }

  get run(): JobRun | null {
    return this.#run;
  }

  get baselineMs(): number | null {
    return this.#baselineMs;
  }

  /** All machines have said that it is over, and nobody died. */
  get hasEnded(): boolean {
    const run = this.#run;
    if (!run) return this.#memory?.hasEnded ?? false;
    if (this.#ended.size === 0 || this.#stillWatch.hasLost) return false;
    return run.agents.every((agent) => this.#ended.has(agent));
  }

  /** Milliseconds since 1970 when an agent told of it last. */
  get seenMs(): number {
    return this.#seenMs;
  }

  /** Of what is safe from kill -9, the worst first: nobody is shown what may be forgotten again. */
  get open(): readonly Incident[] {
    const { still, slow } = this.#safe;
    return [still && this.#asOfNow("still", still), slow && this.#asOfNow("slow", slow)].filter(
      (one) => one !== null,
    );
  }

  /** GPU-milliseconds lost in this run so far, by all its incidents. */
  get wastedGpuMs(): number {
    const { run } = this.memory;
    const open = this.open.filter((one) => one.run === run);
    return open.reduce((sum, one) => sum + one.wastedGpuMs, this.#wastedBefore);
  }

  /** The same, and the one that was resolved last. */
  get shown(): readonly Incident[] {
    return [...this.open, ...(this.#safe.recent ? [this.#safe.recent] : [])];
  }

  get memory(): SavedJobState {
    const known = this.#memory;
    return {
      run: this.#run?.run ?? known?.run ?? "",
      startedMs: this.#run?.startedMs ?? known?.startedMs ?? 0,
      worldSize: this.#run?.worldSize ?? known?.worldSize ?? 0,
      baselineMs: this.#baselineMs,
      wastedGpuMs: this.#wastedBefore,
      slow: this.#slow,
      still: this.#still,
      recent: this.#recent,
      earlier: this.#earlier,
      lastIteration: this.#run ? this.#run.lastIteration : (known?.lastIteration ?? -1),
      seenMs: this.#seenMs,
      hasEnded: this.hasEnded,
    };
  }

  /** Waits for what is being looked into. */
  async idle(): Promise<void> {
    let last: Promise<void> | null = null;
    while (last !== this.#queue) await (last = this.#queue);
  }

  /** Ranks that the agent claims and another holds. */
  onJob(
    agent: string,
    machine: string,
    report: JobReport,
    isThere: (agent: string) => boolean,
  ): readonly Rank[] {
    if (this.#pastRuns.has(report.run)) return [];
    this.#seenMs = this.#effects.nowMs();
    const run = this.#run;
    if (!run) this.#begin(report);
    else if (report.run !== run.run && !run.mayBe(agent, report)) {
      // Machines notice a new start one after the other; who still tells of the old one is not heard any more. Most ranks
      // must say so where it looks old (a clock that is behind), and while ranks of the old one still tell: that is
      // another job of the same name, or somebody who lies.
      const isQuiet = !(this.#effects.nowMs() - this.#stillWatch.movedMs <= QUIET_MS);
      const isLater = report.startedMs >= run.startedMs && isQuiet;
      if (!this.#isClaimed(report, run) && !isLater) return [];
      this.#pastRuns.add(run.run);
      for (const { agentRun } of run.ranks.values()) this.#pastRuns.add(agentRun);
      this.#endRun(`started again as run ${report.run}`);
      this.#begin(report);
    }
    return this.#run!.take(agent, machine, report, isThere);
  }

  #isClaimed({ run: name, ranks }: JobReport, run: JobRun): boolean {
    const claimed = this.#claims.get(name) ?? new Set<Rank>();
    for (const { rank } of ranks) claimed.add(rank);
    if (this.#claims.size < MOST_CLAIMS || this.#claims.has(name)) this.#claims.set(name, claimed);
    return [...claimed].filter((rank) => run.ranks.has(rank)).length > run.ranks.size / 2;
  }

  /** Rows of ranks that are not this agent's. */
  onPoints(agent: string, report: PointsReport): number {
    const run = this.#run;
    // An agent that has not introduced itself to us yet: it will.
    if (!run) return 0;
    const nowMs = this.#effects.nowMs();
    const { epoch } = run;
    const { own, foreign } = run.addPoints(agent, report, nowMs);
    if (own === 0) return foreign;
    this.#seenMs = nowMs;
    this.#ended.delete(agent);
    this.#stillWatch.moved(nowMs);
    if (run.epoch !== epoch) {
      this.#slowWatch.rebase();
      this.#seenThrough = -Infinity;
    }
    return foreign;
  }

  onBeat(agent: string, beat: BeatReport["jobs"][number]): void {
    const run = this.#run;
    if (!run?.isOf(agent, beat.run)) return;
    this.#seenMs = this.#effects.nowMs();
    const gone = new Set(beat.gone);
    const stopped = new Set(beat.stopped);
    for (const [rank, held] of run.ranksOf(agent))
      held.state = gone.has(rank) ? "gone" : stopped.has(rank) ? "stopped" : "running";
    this.#stillWatch.heard(agent, beat);
  }

  onEvent(agent: string, event: EventReport): void {
    const run = this.#run;
    if (!run?.isOf(agent, event.run)) return;
    const ranks = event.ranks.filter((rank) => run.ranks.get(rank)?.agent === agent);
    if (ranks.length === 0 && event.what !== "ended") return;
    if (event.what === "gone") this.#stillWatch.lost(ranks, event.says, this.#effects.nowMs());
    else if (event.what === "ended") this.#ended.add(agent);
    else if (event.what === "log-failure") this.#stillWatch.failed(ranks, event.says);
    for (const rank of ranks) {
      const held = run.ranks.get(rank)!;
      if (event.what === "gone" || event.what === "stopped") held.state = event.what;
      else if (event.what === "continued") held.state = "running";
    }
  }

  agentGone(agent: string): void {
    this.#stillWatch.forget(agent);
  }

  tick(): void {
    const run = this.#run;
    if (!run) return;
    this.#count();
    if (this.hasEnded && this.#slow) this.#resolve("slow", "the job is over");
    if (this.#still) return;
    const nowMs = this.#effects.nowMs();
    const seen = this.#stillWatch.look(nowMs, run.longestMs, this.hasEnded);
    if (!seen) return;
    const { kind, ranks, says, sinceMs } = seen;
    const record = suspected({
      job: this.job,
      run: run.run,
      kind,
      summary: says,
      onsetMs: sinceMs,
      nowMs,
      fromIteration: run.lastIteration >= 0 ? run.lastIteration + 1 : null,
    });
    const still = { ...record, ranks };
    this.#still = still;
    this.#stillEpoch = run.epoch;
    this.#enqueue(() => this.#save(still));
    this.#enqueue(() => this.#collect(run, record.id, kind, ranks, says));
  }

  /** Whatever the evidence is good for, somebody is told: nothing goes on. */
  async #collect(
    run: JobRun,
    id: string,
    kind: "hang" | "crash",
    ranks: readonly Rank[],
    says: string,
  ): Promise<void> {
    // It may have gone on while this waited, or while we look.
    const isStill = (): boolean => this.#still?.id === id;
    if (!isStill()) return;
    let told: Diagnosis | null = null;
    try {
      told = await this.#effects.collect(run, kind, ranks);
    } catch (error) {
      this.#effects.trouble(
        `job ${this.job}: ${error instanceof Error ? error.message : String(error)}`,
      );
    }
    if (!isStill()) return;
    const verdict = standstillVerdict(run, kind, ranks, says, told?.verdict ?? null);
    const still = this.#asOfNow("still", this.#still!);
    await this.#store("still", confirmed(still, verdict, this.#effects.nowMs()));
    if (told) this.#effects.found(still, { ...told, verdict });
  }

  /** As it is when its turn comes: something else may be under way. */
  #resolve(which: "slow" | "still", why: string): void {
    this.#enqueue(async () => {
      const incident = which === "slow" ? this.#slow : this.#still;
      if (incident)
        await this.#store(
          which,
          resolved(this.#asOfNow(which, incident), this.#effects.nowMs(), why),
        );
    });
  }

  /**
   * With what is lost by now, which is in no revision: one an iteration would drown the history. A job that stands still
   * wastes all its GPUs.
   */
  #asOfNow(which: "slow" | "still", incident: Incident): Incident {
    if (which === "slow")
      return this.#slow?.id === incident.id
        ? withWaste(incident, this.#slow.wastedGpuMs)
        : incident;
    const lastedMs = this.#effects.nowMs() - incident.onsetMs;
    const gpus = this.#run?.gpus ?? this.#memory?.worldSize ?? 0;
    return withWaste(incident, Math.max(0, lastedMs) * gpus);
  }

  /** The run is over: nothing of it goes on. */
  #endRun(why: string): void {
    this.#resolve("slow", why);
    this.#resolve("still", why);
    this.#ended.clear();
    this.#claims.clear();
  }

  #begin(report: JobReport): void {
    this.#run = new JobRun(report, this.#jobFile);
    this.#healthySince = 0;
    this.#seenThrough = -Infinity;
    this.#slowWatch = new SlowdownDetector();
    this.#stillWatch = new StandstillDetector(this.#options.hangMs);
    const known = this.#memory;
    this.#memory = null;
    if (known?.run !== report.run) this.#wastedBefore = 0;
    if (!known) return;
    // We were started again in the middle of this run, or another run has begun meanwhile.
    if (report.run !== known.run && report.startedMs > known.startedMs) {
      this.#endRun(`started again as run ${report.run}`);
      return;
    }
    const { slow, still, baselineMs } = known;
    this.#seenThrough = known.lastIteration;
    this.#seenUntilMs = known.seenMs;
    if (still) {
      this.#stillWatch.resume();
      const kind = still.kind === "crash" ? "crash" : "hang";
      // The service was killed before there was a verdict.
      if (still.verdict === null)
        this.#enqueue(() => this.#collect(this.#run!, still.id, kind, still.ranks, still.summary));
    }
    // What is healthy is known: a slow-down that began while nobody watched is one.
    if (!slow && baselineMs !== null && baselineMs > 0)
      this.#run.calm(Array.from({ length: KNOWN_LEVEL }, () => baselineMs));
    if (slow && baselineMs !== null)
      this.#slowWatch.resume(
        {
          slowFrom: slow.fromIteration ?? 0,
          fromMs: slow.onsetMs,
          beforeMs: baselineMs,
          afterMs: baselineMs * RESUMED_RATIO,
          isTentative: false,
        },
        slow.verdict !== null,
      );
  }

  #count(): void {
    const run = this.#run!;
    const counted = run.count(this.#effects.nowMs());
    if (counted.length === 0) return;
    for (const one of counted) {
      // What the service before us has seen and closed is told again by the agents: nothing new.
      const isNew = this.#slow !== null || this.#isUnseen(one);
      for (const decision of this.#slowWatch.push(one))
        if (isNew || decision.do === "recovered") this.#decide(run, decision);
      const isHealthy = !this.#slowWatch.suspicion && !this.#slow && one.levelMs > 0;
      if (isHealthy && this.#isUnseen(one)) this.#baselineMs = one.levelMs;
      // While it stands still, that is what costs.
      if (this.#slow && !this.#still && this.#baselineMs !== null && this.#isUnseen(one))
        this.#slow = withWaste(
          this.#slow,
          this.#slow.wastedGpuMs + Math.max(0, one.durationMs - this.#baselineMs) * run.gpus,
        );
    }
    // After a restart agents tell again of iterations from before.
    const since = this.#still?.fromIteration ?? -Infinity;
    const isNew = run.epoch !== this.#stillEpoch;
    const openedMs = this.#still?.openedMs ?? Infinity;
    const after = counted.filter(
      ({ iteration, endMs }) => isNew || iteration >= since || endMs > openedMs + CLOCKS_MS,
    ).length;
    if (this.#stillWatch.goesOn(after) && this.#still)
      this.#resolve("still", `over: iterations end again, the last is ${run.lastIteration}`);
    this.#effects.counted(run, counted);
  }

  /** Not counted by the service before us: a higher number, or later, where the job went back to a checkpoint. */
  #isUnseen({ iteration, endMs }: JobIteration): boolean {
    return iteration > this.#seenThrough || endMs > this.#seenUntilMs + CLOCKS_MS;
  }

  #decide(run: JobRun, decision: SlowdownDecision): void {
    const { suspicion } = decision;
    switch (decision.do) {
      case "suspect":
        // One that was over a short while ago may come back: that is known with the verdict.
        if (!this.#slow && !this.#isRecent()) this.#enqueue(() => this.#suspect(run, suspicion));
        break;
      case "localize":
        this.#enqueue(() => this.#localize(run, decision));
        break;
      case "recovered":
        this.#healthySince = run.pushes;
        run.calm(this.#slowWatch.healthy);
        if (this.#slow) this.#resolve("slow", `over: ${this.#slow.summary}`);
        break;
      case "forget":
        break;
    }
  }

  #isRecent(): boolean {
    const recent = this.#recent;
    if (recent?.kind !== "fail-slow" || recent.run !== this.#run?.run) return false;
    return this.#effects.nowMs() - (recent.resolvedMs ?? -Infinity) < this.#options.relapseMs;
  }

  async #suspect(
    run: JobRun,
    { slowFrom, fromMs, beforeMs, afterMs }: SuspectedSlowdown,
  ): Promise<void> {
    if (this.#slow) return;
    const summary = `iterations take ${(afterMs / beforeMs).toFixed(2)} times as long since iteration ${slowFrom}; who is at fault is being searched`;
    const record = suspected({
      job: this.job,
      run: run.run,
      kind: "fail-slow",
      summary,
      onsetMs: fromMs,
      nowMs: this.#effects.nowMs(),
      fromIteration: slowFrom,
    });
    await this.#store("slow", withWaste(record, this.#lostSince(run, slowFrom, beforeMs)));
  }

  /** By the iterations that were slow before anybody knew. */
  #lostSince(run: JobRun, slowFrom: number, beforeMs: number): number {
    return run.lostMs(slowFrom, this.#healthySince, beforeMs) * run.gpus;
  }

  async #localize(
    run: JobRun,
    { suspicion, slow, isAgain, isLast }: Extract<SlowdownDecision, { do: "localize" }>,
  ): Promise<void> {
    // Over, or overtaken by another, while this one waited.
    const now = this.#slowWatch.suspicion;
    if (!now || now.slowFrom !== suspicion.slowFrom) return;
    if (this.#slowWatch.isSettled && !isAgain) return;
    const found = await this.#effects.localize(run, suspicion, this.#healthySince, isAgain);
    const still = this.#slowWatch.suspicion;
    if (!found || still?.slowFrom !== suspicion.slowFrom) return;
    const { verdict } = found;
    const least = slow >= PATIENT ? SURE_LATER : SURE;
    const isSure = verdict.suspects.length > 0 && verdict.confidence >= least;
    // A later look that finds nobody takes nothing back.
    if (isAgain && !isSure) return;
    if (!isSure && (!isLast || still.isTentative)) return;
    this.#slowWatch.settle();
    // Its picture would say less, too: the healthy iterations to compare with get out of reach as it lasts.
    if (this.#slow?.verdict && saysNoMore(this.#slow.verdict, verdict)) return;
    const nowMs = this.#effects.nowMs();
    const old = this.#recent;
    if (!this.#slow && old && this.#isRecent() && accusesSame(old.verdict, verdict)) {
      const again = relapsed(old, verdict, suspicion.slowFrom, nowMs);
      const lost = this.#lostSince(run, suspicion.slowFrom, suspicion.beforeMs);
      // What it lost the first time is part of it again.
      this.#wastedBefore = Math.max(0, this.#wastedBefore - old.wastedGpuMs);
      await this.#store("slow", withWaste(again, old.wastedGpuMs + lost));
      this.#effects.found(again, found);
      return;
    }
    if (!this.#slow) await this.#suspect(run, suspicion);
    if (!this.#slow) return;
    const incident = confirmed(this.#slow, verdict, nowMs);
    await this.#store("slow", incident);
    this.#effects.found(incident, found);
  }

  async #store(which: "slow" | "still", incident: Incident): Promise<void> {
    const kept = isOpen(incident) ? incident : null;
    if (which === "slow") this.#slow = kept;
    else this.#still = kept;
    if (!kept) {
      if (incident.run === this.memory.run) this.#wastedBefore += incident.wastedGpuMs;
      if (this.#recent) this.#earlier = [this.#recent, ...this.#earlier].slice(0, MOST_EARLIER);
      this.#recent = incident;
    }
    await this.#save(incident);
  }

  async #save(incident: Incident): Promise<void> {
    const now = { slow: this.#slow, still: this.#still, recent: this.#recent };
    await this.#effects.save(incident);
    // What follows from a record (its actions) may have been saved meanwhile.
    const shown = this.shown.find(({ id }) => id === incident.id);
    if (!shown || shown.revision < incident.revision) this.#safe = now;
  }

  /** Replaces an open incident's record by one with a later revision (its actions changed). */
  async update(incident: Incident): Promise<boolean> {
    if (this.#slow?.id === incident.id) this.#slow = incident;
    else if (this.#still?.id === incident.id) this.#still = incident;
    else if (this.#recent?.id === incident.id) this.#recent = incident;
    else return false;
    await this.#save(incident);
    return true;
  }

  #enqueue(work: () => Promise<void>): void {
    this.#queue = this.#queue.then(work).catch((error: unknown) => {
      const why = error instanceof Error ? error.message : String(error);
      this.#effects.trouble(`job ${this.job}: ${why}`);
    });
  }

  /** For people: who has no agent, who is stopped. */
  lacks(isThere: (agent: string) => boolean): string[] {
    const run = this.#run;
    if (!run) return ["no agent has told of it since this service was started"];
    const lacks: string[] = [];
    const silent = [...run.ranks.values()].filter(({ agent }) => !isThere(agent));
    if (silent.length > 0)
      lacks.push(`${rankWords(silent.map(({ report }) => report.rank))}: the agent is not there`);
    for (const [name, ranks] of this.#claims)
      lacks.push(
        `${rankWords([...ranks])} also tell of a run ${name}: another job of this name is not watched while this one runs`,
      );
    const missing = run.worldSize - run.ranks.size;
    if (missing > 0) lacks.push(`${count(missing, "rank")} of ${run.worldSize} have no agent`);
    return lacks;
  }
}

/** A second look that names the same, no surer: people need not be told again. */
function saysNoMore(first: Verdict, second: Verdict): boolean {
  const key = ({ suspects }: Verdict): string =>
    suspects.map(({ type, cause, ranks }) => `${type} ${cause} ${ranks.join()}`).join(";");
  return key(first) === key(second) && second.confidence < first.confidence + SURER;
}

const SURER = 0.1;

/** How slow it was is not remembered; only when it is as before matters. */
const RESUMED_RATIO = 1.25;
