/**
 * The live service: takes what agents report to the jobs it watches, and publishes what becomes of them. It knows no HTTP
 * and no broker; those are attached to it.
 */
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { History } from "../../history/history.ts";
import { type JobFile, NO_JOB_FILE } from "../../ingest/job-file.ts";
import type { FabricPort } from "../../model/fabric.ts";
import { errorText } from "../../base/errors.ts";
import { cutText } from "../../base/text.ts";
import { type Digest, digestOf } from "../../model/digest.ts";
import type { Incident, IncidentAction } from "../../model/incident.ts";
import type { Verdict } from "../../model/verdict.ts";
import type { AgentHello, Report } from "../wire/messages.ts";
import type { AgentBus, AgentBusHandlers, Coordinator, Lease } from "../wire/transport.ts";
import { makeJobs, shareWords, type Jobs } from "./microbatches/jobs.ts";
import {
  answerJob,
  answerText,
  nameOf,
  type Question,
  readAnswer,
} from "./microbatches/requests.ts";
import { makeActions, type Actions } from "./actions/actions.ts";
import { machinesTaken, sparesNamed } from "./actions/limits.ts";
import { writeAudit } from "./actions/run-action.ts";
import { ActionsSwitch } from "./actions/switch.ts";
import { Links, type LinkStore } from "./access/links.ts";
import { type ActionsConfig, sharesFollowTimes } from "./actions/types.ts";
import { AgentClocks } from "./job/agent-clocks.ts";
import type { AlertsConfig, Fetch } from "./alerts/types.ts";
import type { RetentionConfig } from "./config/config.ts";
import { DataFolder, keepEvidence } from "./store/data-folder.ts";
import { diagnoseStandstill, type DiagnosisEnv } from "./slowdown/diagnose-incident.ts";
import { explainCulprit } from "./slowdown/explain-culprit.ts";
import { judgeHere, type Judging } from "./slowdown/judge-thread.ts";
import { earlierIncidents } from "./incident/earlier-incidents.ts";
import type { Diagnosis } from "./job/job-events.ts";
import { JobHistoryWriter } from "./job/job-history-writer.ts";
import { machinesOf, placedJobs } from "./machines/job-machines.ts";
import { JobLeases } from "./lease/job-leases.ts";
import { JobUpdateThrottle, jobView } from "./job/job-view.ts";
import { LeasedJob } from "./lease/leased-job.ts";
import { LeasedMachineComparison } from "./machines/leased-machine-comparison.ts";
import type { MachineComparisonOptions } from "./machines/machine-comparison.ts";
import { PictureStore } from "./store/picture-store.ts";
import { profileRank } from "./slowdown/profile-rank.ts";
import { Publisher } from "./incident/publisher.ts";
import type { StandstillOptions } from "./standstill/standstill-detector.ts";
import { Temperatures } from "./machines/temperatures.ts";
import type { ValidationOptions } from "./job/job-state.ts";
import { forgetHistory } from "./store/retention.ts";
import { timelyHistory, type TimelyHistory } from "./store/timely-history.ts";
import { validateGroup } from "./slowdown/validate-group.ts";
import { calibrated } from "./site/calibrate.ts";
import { countingFor, judgementsOf, type Judged, withoutLimited } from "./site/how-right.ts";
import { LogLearning } from "./site/learn-logs.ts";
import { MOST_LASTING, siteIncidents, type SiteIncidents } from "./site/site-incidents.ts";
import { machineNames, siteNames } from "./site/site-names.ts";
import { SiteStore } from "./site/site-store.ts";
import { WeeklyDigest } from "./site/weekly-digest.ts";
import { type AuditWord, Refusal } from "./view.ts";
import { Workflow } from "./workflow/workflow.ts";

export interface ServiceOptions {
  readonly history: History & { readonly pending?: number; readonly failures?: number };
  readonly coordinator: Coordinator;
  /** Of this service among those that share a history, also after a restart; "" where it is alone. */
  readonly serviceId: string;
  /** Where evidence of incidents is kept. */
  readonly folder: string;
  readonly alerts: AlertsConfig;
  readonly actions: ActionsConfig;
  readonly hangMs: number;
  readonly pauseMs: number;
  /** Of jobs that have thresholds of their own. */
  readonly thresholds: ReadonlyMap<string, Partial<StandstillOptions>>;
  readonly relapseMs: number;
  /** Tests of GPUs and links that it asks for by itself; null: never. */
  readonly validation: ValidationOptions | null;
  /** A job that no agent has reported for so long is silent. */
  readonly silentMs: number;
  readonly retention: RetentionConfig;
  /** Whether it learns what is normal from logs of jobs that ended well. */
  readonly learnsLogs: boolean;
  readonly jobFiles: ReadonlyMap<string, JobFile>;
  /** Where the site's machines hang in the network. */
  readonly fabric: readonly FabricPort[];
  /** The site's Prometheus, asked on a schedule; null for none. */
  readonly machines:
    | (Pick<MachineComparisonOptions, "connect" | "match" | "via" | "rangeS" | "site"> & {
        readonly everyMs: number;
      })
    | null;
  /** Who may share an incident (access/links.ts); everybody where it is absent. */
  readonly rightOf?: LinkStore["rightOf"];
  nowMs(this: void): number;
  newId(this: void): string;
  /** Where jobs are judged: here where the clock is set, which is how it is where this is absent. */
  readonly judging?: Judging;
  readonly fetch: Fetch;
  readonly environment: Readonly<Record<string, string | undefined>>;
  log(this: void, line: string): void;
}

const TICK_MS = 250;
/** A search on a busy machine, and the service reads no reports meanwhile. */
const LATE_MS = 1000;
/** Documents of quiet jobs, and rows of iterations, are written so often. */
const SAVE_MS = 30_000;
const ITERATIONS_MS = 5000;
const ROOM_MS = 10_000;
const RETENTION_MS = 3600_000;
const CLOSE_MS = 3000;
const WATCHER_MS = 2000;
const VERDICTS_KEPT = 256;
const MOST_LOGGED = 1000;
const MOST_RUNS = 1000;
const DIGEST_MS = 60_000;

export class Service {
  readonly options: ServiceOptions;
  readonly publisher: Publisher;
  readonly actions: Actions;
  readonly actionsSwitch: ActionsSwitch;
  /** Of jobs that ask how many each replica takes (docs/guides/microbatches.md). */
  readonly microBatches: Jobs;
  readonly links: Links;
  readonly machines: LeasedMachineComparison | null;
  readonly incidents: SiteIncidents;
  /** What people do about incidents. */
  readonly workflow: Workflow;
  /** What the site knows of logs. */
  readonly site: SiteStore;
  readonly pictures: PictureStore;
  readonly temperatures: Temperatures;
  readonly handlers: AgentBusHandlers;
  readonly clocks = new AgentClocks();
  readonly data: DataFolder;
  readonly figures = {
    points: 0,
    refusedReports: 0,
    fetchedBytes: 0,
    localizations: 0,
    validations: 0,
    incidents: 0,
    droppedPoints: 0,
    verdictSeconds: [] as number[],
  };
  /** The jobs that it watches, by name. */
  readonly jobs: ReadonlyMap<string, LeasedJob>;
  bus: AgentBus | null = null;
  /** Those that are connected, by name. */
  readonly agents = new Map<string, { dropped: number; readonly asks: readonly string[] }>();
  /** Of those who must not wait for ever. */
  readonly history: TimelyHistory;
  readonly #learning: LogLearning | null;
  readonly #judging: Judging;
  readonly #leases: JobLeases;
  readonly #historyWriter: JobHistoryWriter;
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #throttle = new JobUpdateThrottle();
  /** What can change while it runs. */
  readonly #live: { alerts: AlertsConfig; readonly actions: ActionsConfig };
  /** What is wrong with the configuration file; null while it is in force. */
  configSays: string | null = null;
  /** By incident: the lines that are in the log. */
  readonly #logged = new Map<string, ReadonlySet<string>>();
  #isClosed = false;

  constructor(options: ServiceOptions) {
    this.options = options;
    const { history, nowMs } = options;
    this.#live = { alerts: options.alerts, actions: { ...options.actions } };
    this.publisher = new Publisher(nowMs, options.log);
    this.#judging = options.judging ?? judgeHere();
    const { trouble } = this.publisher;
    this.#historyWriter = new JobHistoryWriter(history, trouble);
    this.#leases = new JobLeases({
      coordinator: options.coordinator,
      nowMs,
      follow: async (job) => await this.bus?.follow(job),
      unfollow: async (job) => await this.bus?.unfollow(job),
      open: (lease, document, lost) => this.#open(lease, document, lost),
      history: this.#historyWriter,
      trouble,
    });
    this.jobs = this.#leases.jobs;
    this.history = timelyHistory(history);
    this.incidents = siteIncidents(history, () => this.#watched);
    this.actionsSwitch = this.#openSwitch();
    this.actions = this.#openActions();
    this.microBatches = this.#openMicroBatches();
    this.links = new Links({
      history: this.history,
      nowMs,
      rightOf: options.rightOf ?? ((who) => who),
    });
    this.workflow = this.#openWorkflow();
    this.site = this.#openSite();
    this.#learning = options.learnsLogs ? new LogLearning(this.site, this.#diagnosisEnv) : null;
    const evidence = join(options.folder, "incidents");
    this.data = new DataFolder({ folder: options.folder, evidence });
    this.pictures = new PictureStore({ folder: options.folder, trouble });
    this.temperatures = new Temperatures(options.machines, nowMs, trouble);
    this.machines = options.machines ? this.#compareMachines(options.machines) : null;
    this.handlers = {
      report: (agent, report) => this.#report(agent, report),
      connected: ({ agent, asks = [] }) => {
        this.agents.set(agent, { dropped: 0, asks });
        this.publisher.publish({ type: "agent", agent, connected: true });
      },
      gone: (agent) => {
        this.agents.delete(agent);
        this.clocks.forget(agent);
        for (const leased of this.jobs.values()) leased.agentGone(agent);
        this.publisher.publish({ type: "agent", agent, connected: false });
      },
      asked: (job, text) => answerText(this.microBatches, job, text),
      announced: (job) => {
        if (!this.#isClosed) void this.#leases.claim(job);
      },
      onTrouble: trouble,
    };
  }

  /** A row of the audit trail that is about no action. */
  async note(who: string, what: AuditWord, incident: string, detail: string): Promise<void> {
    const { nowMs, newId } = this.options;
    const audit = this.history.putAudit;
    await writeAudit({ audit, newId, nowMs }, who, what, incident, "", detail);
  }

  #openSwitch(): ActionsSwitch {
    const { nowMs, log } = this.options;
    const { hooks, drivers = {}, dryRun } = this.options.actions;
    return new ActionsSwitch({
      enabled: this.options.actions.enabled ?? true,
      // Micro-batches need neither.
      canRun: !dryRun || hooks.length > 0 || Object.keys(drivers).length > 0,
      nowMs,
      history: this.history,
      audit: (who, what, detail) => this.note(who, what, "", detail),
      changed: (state) => this.publisher.publish({ type: "actions", ...state }),
      log,
    });
  }

  #openWorkflow(): Workflow {
    const { nowMs, newId } = this.options;
    return new Workflow({
      nowMs,
      newId,
      history: this.history,
      incident: (id) => this.incidents.incident(id),
      machines: () => machineNames(this),
      changed: (incident, handling) => {
        // A page that was opened after its end does not know it.
        if (incident && handling?.reopened) this.publisher.publish({ type: "incident", incident });
        if (incident && handling)
          this.publisher.publish({ type: "handling", job: incident.job, handling });
        else this.publisher.publish({ type: "mutes", mutes: this.workflow.mutes() });
        this.#hushed(incident?.id ?? null);
      },
    });
  }

  #openSite(): SiteStore {
    const { serviceId, folder, nowMs } = this.options;
    return new SiteStore({
      service: serviceId,
      history: this.history,
      folder,
      nowMs,
      judgements: () => this.judgements(),
      names: () => siteNames(this),
      audit: (who, what, detail) => this.note(who, what, "", detail),
      trouble: this.publisher.trouble,
    });
  }

  #openWeekly(): WeeklyDigest {
    const { nowMs, newId, fetch, log } = this.options;
    return new WeeklyDigest({
      alerts: () => this.#live.alerts,
      digest: (fromMs, toMs) => this.digest(fromMs, undefined, toMs),
      history: this.history,
      pause: after,
      nowMs,
      newId,
      fetch,
      log,
    });
  }

  async digest(
    fromMs: number,
    jobs: readonly string[] | undefined,
    toMs = this.options.nowMs(),
  ): Promise<Digest> {
    const incidents = await this.incidents.lasting(fromMs, jobs);
    const isCut = incidents.length >= MOST_LASTING;
    const { handlings } = this.workflow;
    const counted = jobs === undefined ? withoutLimited(handlings) : handlings;
    return digestOf(incidents, counted, { fromMs, toMs, nowMs: this.options.nowMs() }, isCut);
  }

  /** What people said of verdicts; the last word on each incident. */
  judgements(): readonly Judged[] {
    return judgementsOf(this.workflow.handlings);
  }

  async #refreshWorkflow(): Promise<void> {
    await this.workflow.refresh().catch(() => undefined);
    this.#hushed(null);
  }

  get #watched(): readonly (LeasedJob | LeasedMachineComparison)[] {
    return [...this.jobs.values(), ...(this.machines ? [this.machines] : [])];
  }

  /** Alerts follow what people acknowledged or muted; null: of all incidents. Also what no mute holds back any more. */
  #hushed(id: string | null): void {
    for (const { open, writer } of this.#watched)
      for (const incident of open)
        if (id === null || incident.id === id) writer?.alerts.hushed(incident);
  }

  #openMicroBatches(): Jobs {
    const { nowMs, log } = this.options;
    const { actions: config } = this.#live;
    return makeJobs({
      nowMs,
      onChange: ({ job, iteration, counts, why }) =>
        log(
          `job ${job}: from iteration ${iteration} ${shareWords(counts)} micro-batches would suit: ${why}`,
        ),
      permission: (job) => {
        if (!sharesFollowTimes(config)) {
          const leased = this.jobs.get(job);
          // A service that has just been started does not know yet what was approved.
          if (!leased) return "as-before";
          const run = leased.run?.run ?? leased.saved.run;
          // What somebody let be shared out by speed holds until the run ends, or it is undone.
          const actions = leased.records.flatMap((one) => (one.run === run ? one.actions : []));
          const isAgreed = actions.some(
            (one) => one.do === "micro-batches" && one.state === "done",
          );
          if (!isAgreed) return "even";
        }
        return this.actionsSwitch.state.isOn ? "best" : "as-before";
      },
      onGiven: (job, counts) =>
        log(`job ${job}: its replicas take ${shareWords(counts)} micro-batches`),
    });
  }

  #openActions(): Actions {
    const { nowMs, newId, log, fetch, environment } = this.options;
    return makeActions(this.#live.actions, {
      nowMs,
      fetch,
      newId,
      environment,
      log,
      pause: after,
      // Nothing is done that is not in the audit trail, and nothing waits for ever for a store that is away.
      audit: this.history.putAudit,
      runs: async (sinceMs) => {
        const rows = await this.history.audit({ most: MOST_RUNS });
        return rows.filter(({ what, atMs }) => what === "run" && atMs >= sinceMs);
      },
      // An incident that was opened long ago may have had its machine taken out today.
      taken: async (job, sinceMs) => machinesTaken(await this.incidents.latest(job), sinceMs),
      sparesNamed: async () => sparesNamed(await this.incidents.latest()),
      machines: (job) => {
        const run = this.jobs.get(job)?.run;
        return run ? [...machinesOf(run).keys()] : null;
      },
      shares: (job) => this.microBatches.shares(job),
      lostMs: ({ job, wastedGpuMs }) =>
        wastedGpuMs / Math.max(1, this.jobs.get(job)?.run?.gpus ?? 1),
      switchedOff: () => this.actionsSwitch.off(),
      put: async (id, action) => {
        const incident = await this.incidents.putAction(id, action);
        if (incident) return incident;
        throw new Refusal(409, "this service no longer watches the incident's job");
      },
    });
  }

  /** What a job asks about its micro-batches: the service that watches it answers, whichever was asked. */
  async askShares(job: string, question: Question): Promise<unknown> {
    const askWatcher = this.bus?.askWatcher;
    if (!askWatcher || this.jobs.has(job)) return answerJob(this.microBatches, job, question, null);
    const text = await askWatcher(nameOf(job, "job"), JSON.stringify(question), WATCHER_MS).catch(
      (error: unknown): never => {
        throw new Refusal(503, `no service watches job ${job} at the moment: ${errorText(error)}`);
      },
    );
    return readAnswer(text);
  }

  /** Other receivers of alerts, and other limits of actions, from now on. */
  async reconfigure({
    alerts,
    actions,
  }: Pick<ServiceOptions, "alerts" | "actions">): Promise<void> {
    // Everything that reads them has this very object.
    Object.assign(this.#live.actions, actions);
    if (JSON.stringify(alerts) === JSON.stringify(this.#live.alerts)) return;
    this.#live.alerts = alerts;
    const changed = this.#watched.map(async (one) =>
      one.writer?.alertThrough(alerts, () => one.records),
    );
    await Promise.all(changed);
  }

  /** Takes up the jobs that it watched before it was ended. */
  async start(): Promise<void> {
    await this.actionsSwitch.refresh();
    // Before incidents are taken up: what is muted is not told again.
    await this.workflow.refresh().catch(() => undefined);
    await this.#leases.resume();
    const every = (ms: number, run: () => void): void => {
      this.#timers.push(setInterval(run, ms).unref());
    };
    let tickedMs = performance.now();
    every(TICK_MS, () => {
      const lateMs = performance.now() - tickedMs - TICK_MS;
      tickedMs = performance.now();
      if (lateMs > LATE_MS) for (const leased of this.jobs.values()) leased.late(lateMs);
      this.tick();
    });
    every(ITERATIONS_MS, () => void this.#historyWriter.writeIterations());
    every(SAVE_MS, () => void this.#leases.save());
    // Also soon after the start: a service that is restarted every day must forget, too.
    void this.#forget();
    every(RETENTION_MS, () => void this.#forget());
    every(ROOM_MS, () => void this.data.look());
    every(ROOM_MS, () => void this.actionsSwitch.refresh());
    every(ROOM_MS, () => void this.#refreshWorkflow());
    const weekly = this.#openWeekly();
    every(DIGEST_MS, () => void weekly.look());
    this.machines?.start();
    this.temperatures.start();
  }

  /** Removes what is older or larger than the configuration allows. */
  async #forget(): Promise<void> {
    const { retention, history, nowMs, log } = this.options;
    await forgetHistory(history, retention, nowMs(), this.publisher.trouble);
    const removed = await this.data.forget(retention, nowMs());
    if (removed > 0) log(`evidence of ${removed} incidents was removed: see retention`);
  }

  /** Looks at what only time shows: silence, iterations that do not complete. */
  tick(): void {
    const nowMs = this.options.nowMs();
    for (const leased of this.jobs.values()) {
      leased.rebalanced(this.microBatches.unevenShares(leased.job));
      leased.tick();
      if (this.#learning && leased.run && leased.hasEndedWell)
        void this.#learning.ended(leased.run);
      if (!this.#throttle.isDue(leased, nowMs)) continue;
      const job = jobView(leased, this);
      if (this.#throttle.hasChanged(leased, job, nowMs))
        this.publisher.publish({ type: "job", job });
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const timer of this.#timers) clearInterval(timer);
    await Promise.race([this.#historyWriter.writeIterations(), after(CLOSE_MS)]);
    await this.machines?.close();
    this.temperatures.close();
    await Promise.all([...this.jobs.values()].map((leased) => leased.close()));
    await this.#judging.close();
    await Promise.race([this.pictures.idle(), after(CLOSE_MS)]);
    this.#leases.jobs.clear();
  }

  async #report(from: AgentHello, report: Report): Promise<void> {
    const { agent } = from;
    const nowMs = this.options.nowMs();
    if (report.kind === "beat") {
      const clock = this.clocks.heard(agent, report.nowMs, nowMs);
      if (clock !== null) this.publisher.trouble(clock);
      for (const beat of report.jobs) this.jobs.get(beat.job)?.beat(agent, beat);
      this.#countDropped(agent, report.dropped.points);
      return;
    }
    const { job } = report;
    // Only a report of the job itself takes it up; it comes first.
    const leased =
      this.jobs.get(job) ?? (report.kind === "job" ? await this.#leases.claim(job) : null);
    if (report.kind === "event" && report.what === "trouble")
      this.publisher.trouble(`${agent}: ${report.says}`);
    if (!leased) return;
    const corrected = this.clocks.corrected(agent, report, nowMs);
    const refused = leased.report(from, corrected, this.agents);
    if (report.kind === "points") this.figures.points += report.rank.length - (refused?.rows ?? 0);
    if (!refused) return;
    this.figures.refusedReports++;
    const ranks = refused.ranks.slice(0, 8).join(", ");
    this.publisher.trouble(
      ranks === ""
        ? `${agent} reports ranks of ${job} that are not its own`
        : `${agent} claims ranks of ${job} that another agent has: ${ranks}`,
    );
  }

  #countDropped(agent: string, points: number): void {
    const known = this.agents.get(agent);
    if (!known || points <= known.dropped) return;
    this.figures.droppedPoints += points - known.dropped;
    known.dropped = points;
    this.publisher.trouble(`${agent} has dropped ${points} points so far`);
  }

  #open(lease: Lease, document: unknown, lost: () => void): LeasedJob {
    const { nowMs, hangMs, pauseMs, thresholds, relapseMs, validation, folder } = this.options;
    const { jobFiles, fabric } = this.options;
    const given = jobFiles.get(lease.job) ?? null;
    return new LeasedJob({
      ...this.#writing(),
      lease,
      document,
      jobFile: fabric.length === 0 ? given : { ...(given ?? NO_JOB_FILE), fabric },
      actions: this.actions,
      detection: { hangMs, pauseMs, relapseMs, validation, ...thresholds.get(lease.job) },
      lost,
      judging: this.#judging,
      effects: {
        nowMs,
        explain: async (explain) => {
          const found = await explainCulprit(explain, this.#diagnosisEnv);
          this.figures.localizations++;
          this.figures.fetchedBytes += found.bytes;
          return found;
        },
        collect: (evidence) =>
          diagnoseStandstill(evidence, join(folder, "incidents"), nowMs(), this.#diagnosisEnv),
        calibrated: (verdict) => this.#calibrated(verdict, lease.job),
        validate: async (tests) => {
          const found = await validateGroup(tests, this.#diagnosisEnv);
          this.figures.validations++;
          this.options.log(`job ${tests.run.job}: tests: ${found.validation.outcome}`);
          return found;
        },
        profile: (profile) =>
          profileRank(profile, join(folder, "incidents"), nowMs(), this.#diagnosisEnv),
        publish: (incident, diagnosis) => this.#diagnosed(incident, diagnosis),
        recordIterations: (run, iterations) => {
          const rows = {
            iteration: iterations.map(({ iteration }) => iteration),
            endMs: iterations.map(({ endMs }) => endMs),
            durationMs: iterations.map(({ durationMs }) => durationMs),
          };
          this.publisher.publish({ type: "iterations", job: run.job, run: run.run, rows });
          this.#historyWriter.addIterations(run, iterations);
        },
        trouble: this.publisher.trouble,
      },
    });
  }

  #compareMachines({
    everyMs,
    ...query
  }: NonNullable<ServiceOptions["machines"]>): LeasedMachineComparison {
    const { coordinator, nowMs, relapseMs } = this.options;
    return new LeasedMachineComparison({
      coordinator,
      everyMs,
      comparison: {
        ...query,
        jobs: () => placedJobs(this.jobs, coordinator, nowMs() - 1000 * query.rangeS),
        pictured: (id, metrics) => {
          this.pictures.putMetrics(id, metrics);
          for (const leased of this.jobs.values()) leased.measured(id, metrics);
        },
        trouble: this.publisher.trouble,
      },
      incidents: {
        nowMs,
        relapseMs,
        actions: this.actions,
        calibrated: (verdict) => this.#calibrated(verdict, null),
        accused: () => {
          const sinceMs = nowMs() - 1000 * query.rangeS;
          const incidents = [...this.jobs.values()].flatMap((job) => job.records);
          const late = incidents.filter(({ resolvedMs }) => (resolvedMs ?? Infinity) >= sinceMs);
          return new Set(late.flatMap(({ machines }) => machines));
        },
      },
      writing: this.#writing(),
    });
  }

  /** What writing incidents down needs. */
  #writing() {
    const { history, nowMs, log, fetch } = this.options;
    const live = this.#live;
    return {
      history,
      get alerts() {
        return live.alerts;
      },
      alertsEnv: {
        nowMs,
        fetch,
        log,
        hush: (incident: Incident) => this.workflow.hush(incident),
        setTimer: (afterMs: number, run: () => void) => {
          const timer = setTimeout(run, afterMs).unref();
          return () => clearTimeout(timer);
        },
      },
      changed: (incident: Incident) => this.#changed(incident),
      hasNoRoom: (error: unknown) => this.#hasNoRoom(error),
    };
  }

  /** As sure as verdicts of the kind were right at this site. */
  #calibrated(verdict: Verdict, job: string | null): Verdict {
    return calibrated(verdict, countingFor(this.judgements(), job));
  }

  readonly #diagnosisEnv: DiagnosisEnv = {
    ask: (agent, request, timeoutMs) =>
      this.bus?.ask(agent, request, timeoutMs) ??
      Promise.reject(new Error("no agents are connected")),
    connected: this.agents,
    canAsk: (agent, word) => this.agents.get(agent)?.asks.includes(word) ?? false,
    fetchedBytes: () => this.bus?.traffic.replyBytes ?? 0,
    incidents: (job) => {
      const judgements = countingFor(this.judgements(), job);
      const { history, nowMs } = this.options;
      return earlierIncidents(history, nowMs(), judgements, this.workflow.handlings);
    },
    logStore: (job) => this.site.file(job),
    makeRoom: (bytes) => this.data.makeRoom(bytes),
    log: (line) => this.options.log(line),
    trouble: (line) => this.publisher.trouble(line),
  };

  #hasNoRoom(error: unknown): boolean {
    const before = this.data.says;
    const isFull = this.data.failed(error);
    const { says } = this.data;
    if (says !== null && before === null) this.publisher.trouble(says);
    return isFull;
  }

  /** Pictures come after the verdict, which does not wait for them. */
  #diagnosed({ id, job, onsetMs }: Incident, { verdict, picture = null, folder }: Diagnosis): void {
    if (folder !== undefined) {
      this.pictures.put(id, null, folder);
      void keepEvidence(folder);
    }
    if (picture !== null) void this.pictures.putLater(id, Promise.resolve(picture));
    const { suspects } = verdict;
    const ranks = this.jobs.get(job)?.run?.ranks;
    // A link has two machines; what covers more is on too many to draw.
    const machines = suspects.flatMap(({ type, machine, ranks: ends }) => {
      if (machine !== null) return [machine];
      return type === "link" ? ends.flatMap((rank) => ranks?.get(rank)?.machine ?? []) : [];
    });
    if (machines.length > 0) this.machines?.request(id, [...new Set(machines)], onsetMs, suspects);
  }

  /** What was not said of it before. */
  #log(incident: string, lines: readonly string[]): void {
    const before = this.#logged.get(incident);
    for (const line of lines) if (!before?.has(line)) this.options.log(line);
    this.#logged.delete(incident);
    this.#logged.set(incident, new Set(lines));
    if (this.#logged.size > MOST_LOGGED) this.#logged.delete([...this.#logged.keys()][0]!);
  }

  #changed(incident: Incident): void {
    const { id, revision, state, verdict, changedMs, onsetMs, summary } = incident;
    if (revision === 1) this.figures.incidents++;
    if (verdict !== null && state !== "resolved" && revision <= 2) {
      this.figures.verdictSeconds.push((changedMs - onsetMs) / 1000);
      if (this.figures.verdictSeconds.length > VERDICTS_KEPT) this.figures.verdictSeconds.shift();
    }
    this.#log(id, [
      `incident ${id} is ${state}: ${summary}`,
      // What was proposed while it lasted is no news when it is over.
      ...incident.actions
        .filter((one) => state !== "resolved" || one.state !== "proposed")
        .map(
          (one) => `incident ${id}: ${one.do} ${one.target} is ${one.state}${outcomeWords(one)}`,
        ),
    ]);
    this.publisher.publish({ type: "incident", incident });
  }
}

function outcomeWords({ outcome, would }: IncidentAction): string {
  const words = [outcome, would === undefined ? "" : `would ${would}`].filter(Boolean).join("; ");
  return words === "" ? "" : `: ${cutText(words, 200)}`;
}

function after(ms: number): Promise<void> {
  return pause(ms, undefined, { ref: false });
}
