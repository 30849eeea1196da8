/** One job that this service holds the lease of: carries out what job-reducer.ts decides, and reports back to it. */
import { errorText } from "../../../base/errors.ts";
import type { JobFile } from "../../../ingest/job-file.ts";
import type { Incident, IncidentAction } from "../../../model/incident.ts";
import type { MachinePicture } from "../../../model/machine-picture.ts";
import { measuredVerdict } from "../../../model/measured-verdict.ts";
import type { Verdict } from "../../../model/verdict.ts";
import { regressionVerdict } from "../../../pipeline/live-regression.ts";
import type { PlacedJob } from "../../../pipeline/machines-by-job.ts";
import type { AgentHello, BeatReport, Report } from "../../wire/messages.ts";
import type { Actions } from "../actions/actions.ts";
import { isOpen, withActions } from "../incident/incident-lifecycle.ts";
import { IncidentWriter, type IncidentWriterOptions } from "../incident/incident-writer.ts";
import {
  documentOf,
  type SavedJobState,
  hasEnded,
  missingParts,
  newJobState,
  openIncidents,
  openSlowdowns,
  savedState,
  wastedGpuMs,
  type DetectionOptions,
  type JobState,
} from "../job/job-state.ts";
import type {
  CollectDecision,
  Collected,
  ConnectedAgents,
  Diagnosis,
  ExplainDecision,
  JobDecision,
  JobEvent,
  ProfileDecision,
  SaveDecision,
  ValidateDecision,
} from "../job/job-events.ts";
import {
  machinesOf,
  placedJobOf,
  savedMachines,
  type SavedMachines,
} from "../machines/job-machines.ts";
import { reduceJob } from "../job/job-reducer.ts";
import { RegressionWatch } from "../regression/regression-watch.ts";
import type { JobIteration } from "../job/job-iterations.ts";
import type { JobRun } from "../job/job-run.ts";
import { JudgeFeed } from "../slowdown/judge-feed.ts";
import type { Judging } from "../slowdown/judge-thread.ts";
import type { Validated } from "../slowdown/validate-group.ts";

/** What a job needs from the service. */
export interface JobEffects {
  nowMs(this: void): number;
  explain(this: void, explain: ExplainDecision): Promise<Diagnosis>;
  collect(this: void, evidence: CollectDecision): Promise<Collected>;
  validate(this: void, tests: ValidateDecision): Promise<Validated>;
  /** As sure as verdicts of the kind were right at this site. */
  calibrated(this: void, verdict: Verdict): Verdict;
  profile(this: void, profile: ProfileDecision): Promise<Diagnosis | null>;
  /** The incident's record is saved, and this is what it was made of. */
  publish(this: void, incident: Incident, diagnosis: Diagnosis): void;
  recordIterations(this: void, run: JobRun, iterations: readonly JobIteration[]): void;
  trouble(this: void, line: string): void;
}

export interface LeasedJobOptions extends Omit<
  IncidentWriterOptions,
  "state" | "unsaved" | "sentAlerts"
> {
  readonly document: unknown;
  readonly jobFile: JobFile | null;
  readonly actions: Actions;
  readonly detection: DetectionOptions;
  readonly judging: Judging;
  readonly effects: JobEffects;
}

/** Actions that wait until they pay off are looked at so often. */
const DUE_MS = 5000;

type EventOf<E> = E extends JobEvent ? Omit<E, "nowMs"> : never;

export class LeasedJob {
  readonly job: string;
  readonly writer: IncidentWriter;
  readonly #options: LeasedJobOptions;
  readonly #regressions: RegressionWatch;
  readonly #judge: JudgeFeed;
  #state: JobState;
  /** The step that is being carried out. */
  #step: Promise<void> = Promise.resolve();
  /** Changes of a record that leave its verdict alone propose nothing new. */
  readonly #proposedFor = new WeakSet<Verdict>();
  /** When actions that were not due were last looked at. */
  #dueMs = -Infinity;

  constructor(options: LeasedJobOptions) {
    this.#options = options;
    this.job = options.lease.job;
    const document = documentOf(options.document);
    this.#regressions = new RegressionWatch(options.history, (error) => this.#trouble(error));
    this.#judge = new JudgeFeed(options.judging, ({ run }, said) => {
      this.#dispatch({ type: "judged", run, ...said });
    });
    this.#state = newJobState(this.job, options.jobFile, document, options.detection);
    this.writer = new IncidentWriter({
      ...options,
      unsaved: document?.unsaved ?? [],
      sentAlerts: document?.alerts ?? null,
      state: () => ({ ...this.saved, machines: this.#machines() }),
    });
  }

  get run(): JobRun | null {
    return this.#state.run;
  }

  /** Where it runs; null where it is over, or no agent has reported it since `heardMs`. */
  placed(heardMs: number): PlacedJob | null {
    const { run, job } = this;
    if (!run) return placedJobOf(this.#options.document, heardMs);
    if (this.hasEnded || this.seenMs < heardMs) return null;
    return { job, run: run.run, startedMs: run.startedMs, machines: machinesOf(run) };
  }

  get seenMs(): number {
    return this.#state.seenMs;
  }

  get hasEnded(): boolean {
    return hasEnded(this.#state);
  }

  /** The run is over, every process ended in order, and nothing was wrong in it. */
  get hasEndedWell(): boolean {
    const { run } = this;
    return this.hasEnded && run !== null && !this.records.some((one) => one.run === run.run);
  }

  get saved(): SavedJobState {
    return savedState(this.#state);
  }

  /** Open incidents that are saved, the worst first. */
  get open(): readonly Incident[] {
    return openIncidents(this.#state, this.#options.effects.nowMs());
  }

  /** The same, and the one that was resolved last. */
  get shown(): readonly Incident[] {
    const { recent } = this.#state.shown;
    return recent ? [...this.open, recent] : this.open;
  }

  get wastedGpuMs(): number {
    return wastedGpuMs(this.#state, this.#options.effects.nowMs());
  }

  missing(connected: ConnectedAgents): readonly string[] {
    return missingParts(this.#state, connected, this.#options.effects.nowMs());
  }

  /** What of the report was refused, because another agent has those ranks; null for nothing. */
  report(
    { agent, machine }: AgentHello,
    report: Exclude<Report, BeatReport>,
    connected: ConnectedAgents,
  ): Extract<JobDecision, { do: "refuse" }> | null {
    if (report.kind === "shares") {
      if (this.run) this.#judge.shares(this.run, agent, report, this.#options.effects.nowMs());
      return null;
    }
    const decisions =
      report.kind === "job"
        ? this.#dispatch({ type: "job", agent, machine, report, connected })
        : report.kind === "points"
          ? this.#dispatch({ type: "points", agent, report })
          : this.#dispatch({ type: "event", agent, report });
    return decisions.find((decision) => decision.do === "refuse") ?? null;
  }

  beat(agent: string, beat: BeatReport["jobs"][number]): void {
    this.#dispatch({ type: "beat", agent, beat });
    const { run } = this;
    if (beat.work && run?.isOf(agent, beat.run))
      this.#regressions.take(agent, run, beat.work, this.#options.effects.nowMs());
  }

  agentGone(agent: string): void {
    this.#dispatch({ type: "agent-gone", agent });
  }

  late(ms: number): void {
    this.#dispatch({ type: "late", ms });
  }

  tick(): void {
    this.#dispatch({ type: "tick" });
    const nowMs = this.#options.effects.nowMs();
    if (this.run) this.#judge.tick(this.run, nowMs);
    this.#lookForRegression();
    if (nowMs - this.#dueMs < DUE_MS) return;
    this.#dueMs = nowMs;
    for (const incident of this.records)
      if (isOpen(incident)) void this.#options.actions.runDue(incident);
  }

  /** How the replicas share out the micro-batches from now on; null: equally. */
  rebalanced(shares: string | null): void {
    if (shares === this.#state.shares) return;
    this.#judge.rebalanced(shares, this.#options.effects.nowMs());
    this.#dispatch({ type: "rebalanced", shares });
  }

  #lookForRegression(): void {
    const { run } = this;
    if (!run) return;
    const nowMs = this.#options.effects.nowMs();
    const isOpen = openSlowdowns(this.#state).some(({ kind }) => kind === "regression");
    const decision = this.#regressions.tick(run, nowMs, isOpen);
    if (decision?.do === "resolve") this.#dispatch({ type: "regression-over", why: decision.why });
    if (decision?.do !== "open") return;
    const found = regressionVerdict(run.known().job, decision.found);
    const verdict = this.#options.effects.calibrated(found);
    this.#dispatch({ type: "regression", verdict, sinceMs: decision.found.sinceMs });
  }

  /** Waits for what is being carried out. */
  async idle(): Promise<void> {
    let last: Promise<void> | null = null;
    while (last !== this.#step) await (last = this.#step);
    await this.#regressions.idle();
  }

  /** What was left undone when the last service that held it ended. */
  async recover(): Promise<void> {
    this.writer.flush();
    for (const incident of this.records) {
      const recovered = await this.#options.actions.recover(incident);
      this.writer.alerts.notify(recovered);
      void this.#options.actions.runAutomatic(recovered);
    }
  }

  /** Puts an action into the latest record; null where it has no such incident. */
  async putAction(id: string, action: IncidentAction): Promise<Incident | null> {
    const known = this.#latest(id);
    if (!known) return null;
    return await this.#putActions(known, [
      ...known.actions.filter((one) => one.id !== action.id),
      action,
    ]);
  }

  /** Metrics of the suspects' machines came: what is physically wrong becomes part of the record. */
  measured(id: string, metrics: readonly MachinePicture[]): void {
    const known = openSlowdowns(this.#state).find((one) => one.id === id);
    const verdict = known?.verdict && measuredVerdict(known.verdict, metrics);
    if (verdict) this.#dispatch({ type: "profiled", id, diagnosis: { verdict } });
  }

  /** Long over: its document goes, what the history has stays. */
  async forget(): Promise<void> {
    this.#judge.close();
    await this.idle();
    await this.#options.lease.write(null);
    await this.writer.drop();
    await this.#options.lease.release();
  }

  async close(): Promise<void> {
    this.#judge.close();
    await this.idle();
    await this.writer.close();
  }

  #dispatch(event: EventOf<JobEvent>): readonly JobDecision[] {
    const nowMs = this.#options.effects.nowMs();
    const { state, decisions } = reduceJob(this.#state, { ...event, nowMs });
    this.#state = state;
    for (const decision of decisions) this.#carryOut(decision);
    return decisions;
  }

  #carryOut(decision: JobDecision): void {
    const { effects } = this.#options;
    switch (decision.do) {
      case "save":
        // Actions are saved by whoever changes them.
        if (decision.isStep) this.#step = this.#attempt(() => this.#save(decision));
        break;
      case "explain":
        this.#step = this.#attempt(async () => {
          const diagnosis = this.#calibrated(await effects.explain(decision))!;
          this.#dispatch({ type: "explained", explain: decision, diagnosis });
        });
        break;
      case "collect":
        this.#step = this.#collect(decision);
        break;
      case "validate":
        // Not a step: some iterations pass until the ranks test themselves.
        void this.#validate(decision);
        break;
      case "profile":
        void this.#profile(decision);
        break;
      case "publish":
        effects.publish(decision.incident, decision.diagnosis);
        break;
      case "record-iterations":
        this.#judge.iterations(decision.run, decision.iterations);
        effects.recordIterations(decision.run, decision.iterations);
        break;
      case "refuse":
    }
  }

  #calibrated<T extends { readonly verdict: Verdict }>(found: T | null): T | null {
    return found && { ...found, verdict: this.#options.effects.calibrated(found.verdict) };
  }

  async #attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#trouble(error);
      this.#dispatch({ type: "failed" });
    }
  }

  async #validate(decision: ValidateDecision): Promise<void> {
    try {
      const found = await this.#options.effects.validate(decision);
      const validated = found.verdict
        ? this.#calibrated({ ...found, verdict: found.verdict })!
        : found;
      this.#dispatch({ type: "validated", id: decision.id, validated });
    } catch (error) {
      this.#trouble(error);
    }
  }

  async #profile(decision: ProfileDecision): Promise<void> {
    try {
      const diagnosis = this.#calibrated(await this.#options.effects.profile(decision));
      if (diagnosis) this.#dispatch({ type: "profiled", id: decision.id, diagnosis });
    } catch (error) {
      this.#trouble(error);
    }
  }

  /** Evidence that cannot be had is no reason to leave the incident unconfirmed. */
  async #collect(evidence: CollectDecision): Promise<void> {
    let collected: Collected | null = null;
    try {
      collected = await this.#options.effects.collect(evidence);
    } catch (error) {
      this.#trouble(error);
    }
    const { diagnosis = null, ...rest } = collected ?? {};
    this.#dispatch({
      type: "collected",
      evidence,
      diagnosis: this.#calibrated(diagnosis),
      ...rest,
    });
  }

  async #save(save: SaveDecision): Promise<void> {
    const { incident } = save;
    await this.writer.save(incident);
    const { verdict } = incident;
    if (verdict !== null && !this.#proposedFor.has(verdict) && isOpen(incident)) {
      this.#proposedFor.add(verdict);
      await this.#propose(incident);
    }
    this.#dispatch({ type: "saved", save });
  }

  async #propose(incident: Incident): Promise<void> {
    const { actions } = this.#options;
    const proposed = await actions.propose(incident);
    const now = this.#latest(incident.id);
    if (proposed.length === 0 || !now || !isOpen(now)) return;
    const latest = await this.#putActions(now, proposed);
    // Not waited for: a command may take minutes.
    void actions.runAutomatic(latest);
  }

  async #putActions(known: Incident, actions: readonly IncidentAction[]): Promise<Incident> {
    const incident = withActions(known, actions, this.#options.effects.nowMs());
    for (const decision of this.#dispatch({ type: "actions", incident }))
      if (decision.do === "save" && !decision.isStep) await this.#save(decision);
    return incident;
  }

  /** Its incidents that are open, and the last ones that were. */
  get records(): readonly Incident[] {
    const { slow, besides, still, recent, earlier } = this.#state;
    return [slow, ...besides, still, recent, ...earlier].filter((one) => one !== null);
  }

  #latest(id: string): Incident | undefined {
    return this.records.find((one) => one.id === id);
  }

  /** For whichever service compares the site's machines. */
  #machines(): SavedMachines {
    const { run } = this;
    const machines = run ? machinesOf(run) : placedJobOf(this.#options.document, 0)?.machines;
    return savedMachines(machines ?? new Map());
  }

  #trouble(error: unknown): void {
    this.#options.effects.trouble(`job ${this.job}: ${errorText(error)}`);
  }
}
