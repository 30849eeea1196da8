/**
 * The service: agents tell, jobs are watched, incidents live, people and pages are told. It knows no HTTP and no broker;
 * those are attached to it.
 */
import { join } from "node:path";
import type { History } from "../../history/history.ts";
import type { JobFile } from "../../live-pipeline.ts";
import { shortName } from "../../machines-pipeline.ts";
import type { Incident } from "../../model/incident.ts";
import type { IncidentPicture } from "../../model/picture.ts";
import { LIMITS, type AgentHello, type Report } from "../wire/messages.ts";
import type { AgentBus, AgentBusHandlers, Coordinator } from "../wire/transport.ts";
import { makeActions, type Actions } from "./actions/actions.ts";
import { machinesTaken } from "./actions/limits.ts";
import type { ActionsConfig } from "./actions/types.ts";
import type { AlertsConfig, Fetch } from "./alerts/types.ts";
import { documentOf } from "./job-document.ts";
import { LeasedJob } from "./leased-job.ts";
import {
  LeasedMachineComparison,
  type LeasedMachineComparisonOptions,
} from "./leased-machine-comparison.ts";
import { earlierIncidents } from "./earlier-incidents.ts";
import { diagnoseStandstill, localizeSlowdown, type DiagnosisEnv } from "./diagnose-incident.ts";
import { IterationRows } from "./iteration-rows.ts";
import type { Diagnosis } from "./job-effects.ts";
import { JobUpdateThrottle } from "./job-news.ts";
import { jobView } from "./job-view.ts";
import { MACHINES, type MachineComparisonOptions } from "./machine-comparison.ts";
import { PictureStore } from "./picture-store.ts";
import type { JobIteration, JobRun } from "./job-run.ts";
import type { SuspectedSlowdown } from "./slowdown-detector.ts";
import { Temperatures } from "./temperatures.ts";
import { Refusal, type LiveEvent } from "./view.ts";

export interface ServiceOptions {
  readonly history: History & { readonly pending?: number; readonly failures?: number };
  readonly coordinator: Coordinator;
  /** Where evidence of incidents is kept. */
  readonly folder: string;
  readonly alerts: AlertsConfig;
  readonly actions: ActionsConfig;
  readonly hangMs: number;
  readonly relapseMs: number;
  /** Nobody has told of a job for so long: it is silent. */
  readonly silentMs: number;
  readonly jobFiles: ReadonlyMap<string, JobFile>;
  /** The site's Prometheus, asked on a schedule; null for none. */
  readonly machines:
    | (Pick<MachineComparisonOptions, "connect" | "match" | "via" | "rangeS"> & {
        readonly everyMs: number;
      })
    | null;
  nowMs(this: void): number;
  newId(this: void): string;
  readonly fetch: Fetch;
  readonly environment: Readonly<Record<string, string | undefined>>;
  log(this: void, line: string): void;
}

const TICK_MS = 250;
/** Documents of quiet jobs, and rows of iterations, are written so often. */
const REMEMBER_MS = 30_000;
const ITERATIONS_MS = 5000;
/** A job that nobody tells of for so long is no longer looked after; its document stays. */
const FORGOTTEN_MS = 24 * 3600_000;
const MOST_JOBS = 4096;
/** Iterations are kept for a quarter; what is older goes once a day. */
const PRUNE_MS = 24 * 3600_000;
const KEPT_ITERATIONS_MS = 90 * 24 * 3600_000;
const VERDICTS_KEPT = 256;
const MOST_LOOKED_AT = 1000;

export class Service {
  readonly options: ServiceOptions;
  readonly held = new Map<string, LeasedJob>();
  readonly actions: Actions;
  readonly machines: LeasedMachineComparison | null;
  readonly pictures: PictureStore;
  readonly temperatures: Temperatures;
  readonly handlers: AgentBusHandlers;
  readonly figures = {
    points: 0,
    refusedReports: 0,
    fetchedBytes: 0,
    localizations: 0,
    incidents: 0,
    droppedPoints: 0,
    verdictSeconds: [] as number[],
  };
  readonly #agents = new Map<string, { hello: AgentHello; dropped: number; heardMs: number }>();
  readonly #listeners = new Set<(event: LiveEvent) => void>();
  readonly #claiming = new Map<string, Promise<LeasedJob | null>>();
  readonly #iterations = new IterationRows();
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #told = new Map<string, number>();
  readonly #news = new JobUpdateThrottle();
  /** Pictures that are being made, by incident. */
  readonly #drawing = new Map<string, Promise<IncidentPicture>>();
  #bus: AgentBus | null = null;
  #isClosed = false;
  #isRemembering = false;

  constructor(options: ServiceOptions) {
    this.options = options;
    this.actions = makeActions(options.actions, {
      nowMs: options.nowMs,
      fetch: options.fetch,
      newId: options.newId,
      environment: options.environment,
      log: options.log,
      // Nothing is done that is not written down, and nobody waits for ever for a store that is away.
      audit: (row) => within(options.history.putAudit(row), AUDIT_MS),
      taken: async (job, sinceMs) =>
        // An incident that was opened long ago may have had its machine taken out today.
        machinesTaken(await options.history.incidents({ job, most: MOST_LOOKED_AT }), sinceMs),
      put: async (id, action) => {
        for (const held of this.held.values()) {
          const incident = await held.putAction(id, action);
          if (incident) return incident;
        }
        throw new Refusal(409, "the incident is not looked after by this service any more");
      },
    });
    const trouble = (line: string): void => this.trouble(line);
    this.pictures = new PictureStore({ folder: options.folder, trouble });
    this.temperatures = new Temperatures(options.machines, options.nowMs, trouble);
    this.machines = options.machines ? this.#makeMachines(options.machines) : null;
    this.handlers = {
      report: (agent, report) => this.#report(agent, report),
      connected: (agent) => {
        this.#agents.set(agent.agent, { hello: agent, dropped: 0, heardMs: options.nowMs() });
        this.tell({ type: "agent", agent: agent.agent, connected: true });
      },
      gone: (agent) => {
        this.#agents.delete(agent);
        for (const { watch } of this.held.values()) watch.agentGone(agent);
        this.tell({ type: "agent", agent, connected: false });
      },
      announced: (job) => this.#claim(job),
      onTrouble: (line) => this.trouble(line),
    };
  }

  attach(bus: AgentBus): void {
    this.#bus = bus;
  }

  /** Takes up the jobs that it knew before it was ended. */
  async start(): Promise<void> {
    for (const job of await this.options.coordinator.list())
      if (job !== MACHINES && (await this.#isAlive(job))) await this.#hold(job);
    const every = (ms: number, run: () => void): void => {
      this.#timers.push(setInterval(run, ms).unref());
    };
    every(TICK_MS, () => this.tick());
    every(ITERATIONS_MS, () => void this.#putIterations());
    every(REMEMBER_MS, () => {
      // A slow store must not be asked twice at a time.
      if (this.#isRemembering) return;
      this.#isRemembering = true;
      void this.#remember().finally(() => (this.#isRemembering = false));
    });
    every(PRUNE_MS, () => {
      const before = this.options.nowMs() - KEPT_ITERATIONS_MS;
      void this.options.history.prune?.(before).catch((error: unknown) => {
        this.trouble(`old iterations are not removed: ${words(error)}`);
      });
    });
    this.machines?.start();
    this.temperatures.start();
  }

  /** Looks at what only time tells: silence, iterations that nobody completes. */
  tick(): void {
    const nowMs = this.options.nowMs();
    for (const held of this.held.values()) {
      held.watch.tick();
      if (!this.#news.isDue(held.job, nowMs)) continue;
      const job = jobView(held, this);
      if (this.#news.isNews(job, nowMs)) this.tell({ type: "job", job });
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const timer of this.#timers) clearInterval(timer);
    await Promise.race([this.#putIterations(), after(CLOSE_MS)]);
    await this.machines?.close();
    this.temperatures.close();
    await Promise.all([...this.held.values()].map((held) => held.close()));
    await Promise.race([this.pictures.idle(), after(CLOSE_MS)]);
    this.held.clear();
  }

  listen(listener: (event: LiveEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  tell(event: LiveEvent): void {
    for (const listener of this.#listeners) listener(event);
  }

  /** The same line at most once a minute. */
  trouble(line: string): void {
    const nowMs = this.options.nowMs();
    if (nowMs - (this.#told.get(line) ?? -Infinity) < 60_000) return;
    if (this.#told.size > 1000) this.#told.clear();
    this.#told.set(line, nowMs);
    this.options.log(line);
    this.tell({ type: "trouble", line });
  }

  isThere(agent: string): boolean {
    return this.#agents.has(agent);
  }

  get agents(): number {
    return this.#agents.size;
  }

  get bus(): AgentBus | null {
    return this.#bus;
  }

  /** Jobs that were over long ago are left where they are: whoever tells of one again revives it. */
  async #isAlive(job: string): Promise<boolean> {
    const document = documentOf(await this.options.coordinator.read(job));
    if (!document) return false;
    const { slow, still, unsaved, seenMs } = document;
    if (slow || still || unsaved.length > 0) return true;
    return this.options.nowMs() - seenMs < FORGOTTEN_MS;
  }

  #claim(job: string): void {
    if (!this.#isClosed) void this.#hold(job);
  }

  /** Whoever asks meanwhile waits for the same answer. */
  async #hold(job: string): Promise<LeasedJob | null> {
    const known = this.held.get(job);
    if (known) return known;
    let claim = this.#claiming.get(job);
    if (!claim && this.held.size + this.#claiming.size >= MOST_JOBS) {
      this.trouble(`more than ${MOST_JOBS} jobs: ${job} is not looked after`);
      return null;
    }
    if (!claim) {
      claim = this.#take(job).finally(() => this.#claiming.delete(job));
      this.#claiming.set(job, claim);
    }
    return await claim;
  }

  async #take(job: string): Promise<LeasedJob | null> {
    try {
      const lease = await this.options.coordinator.claim(job);
      if (!lease) return null;
      const document = await this.options.coordinator.read(job);
      const held = this.#make(lease, document);
      this.held.set(job, held);
      await this.#bus?.follow(job);
      await held.recover();
      return held;
    } catch (error) {
      this.trouble(`job ${job} cannot be taken up: ${words(error)}`);
      return null;
    }
  }

  #make(lease: Awaited<ReturnType<Coordinator["claim"]>> & object, document: unknown): LeasedJob {
    const { nowMs, history, alerts, hangMs, relapseMs } = this.options;
    const held: LeasedJob = new LeasedJob({
      lease,
      document,
      jobFile: this.options.jobFiles.get(lease.job) ?? null,
      history,
      alerts,
      actions: this.actions,
      watch: { hangMs, relapseMs },
      alertsEnv: this.#alertsEnv(),
      effects: {
        nowMs,
        localize: (run, suspicion, since, isAgain) =>
          this.#localize(run, suspicion, since, isAgain),
        collect: (run, kind) => this.#collect(run, kind),
        found: (incident, found) => this.#found(incident, found),
        counted: (run, iterations) => this.#counted(run, iterations),
        trouble: (line) => this.trouble(line),
      },
      changed: (incident) => this.#changed(incident),
      lost: () => {
        this.held.delete(lease.job);
        this.#news.keep((job) => this.held.has(job));
        void this.#bus?.unfollow(lease.job).catch(() => undefined);
        void held.keeper.drop();
        this.trouble(
          `the lease of job ${lease.job} was lost: another service has it, or the brokers were away`,
        );
      },
    });
    return held;
  }

  #alertsEnv(): LeasedMachineComparisonOptions["keeper"]["alertsEnv"] {
    const { nowMs, log, fetch } = this.options;
    return {
      nowMs,
      fetch,
      log,
      setTimer: (afterMs, run) => {
        const timer = setTimeout(run, afterMs).unref();
        return () => clearTimeout(timer);
      },
    };
  }

  #makeMachines({
    everyMs,
    ...query
  }: NonNullable<ServiceOptions["machines"]>): LeasedMachineComparison {
    const { coordinator, history, alerts, nowMs } = this.options;
    const changed = (incident: Incident): void => this.#changed(incident);
    return new LeasedMachineComparison({
      coordinator,
      everyMs,
      watch: {
        ...query,
        nowMs,
        ranksOn: (machine) =>
          [...this.held.values()].flatMap(({ watch }) =>
            [...(watch.run?.ranks.values() ?? [])]
              .filter((held) => shortName(held.machine) === shortName(machine))
              .map(({ report }) => report.rank),
          ),
        pictured: (id, metrics) => this.pictures.putMetrics(id, metrics),
        trouble: (line) => this.trouble(line),
      },
      keeper: { history, alerts, alertsEnv: this.#alertsEnv(), changed },
    });
  }

  async #report(agent: AgentHello, report: Report): Promise<void> {
    const nowMs = this.options.nowMs();
    const known = this.#agents.get(agent.agent);
    if (known) known.heardMs = nowMs;
    switch (report.kind) {
      case "job": {
        const held = this.held.get(report.job) ?? (await this.#hold(report.job));
        if (!held) return;
        if (report.startedMs > nowMs + LIMITS.futureMs) {
          this.#refuse(`${agent.agent} says that job ${report.job} starts in the future`);
          return;
        }
        const refused = held.watch.onJob(agent.agent, agent.machine, report, (one) =>
          this.isThere(one),
        );
        if (refused.length > 0)
          this.#refuse(
            `${agent.agent} claims ranks of ${report.job} that another agent has: ${refused.slice(0, 8).join(", ")}`,
          );
        return;
      }
      case "points": {
        const held = this.held.get(report.job);
        if (!held) return;
        if (report.endMs.some((ms) => ms > nowMs + LIMITS.futureMs)) {
          this.#refuse(`${agent.agent} tells of iterations in the future; its clock is off`);
          return;
        }
        const foreign = held.watch.onPoints(agent.agent, report);
        this.figures.points += report.rank.length - foreign;
        if (foreign > 0)
          this.#refuse(`${agent.agent} tells of ranks of ${report.job} that are not its own`);
        return;
      }
      case "beat":
        for (const beat of report.jobs) this.held.get(beat.job)?.watch.onBeat(agent.agent, beat);
        if (known && report.dropped.points > known.dropped) {
          this.figures.droppedPoints += report.dropped.points - known.dropped;
          known.dropped = report.dropped.points;
          this.trouble(`${agent.agent} had to drop ${report.dropped.points} points so far`);
        }
        return;
      case "event":
        this.held.get(report.job)?.watch.onEvent(agent.agent, report);
        if (report.what === "trouble") this.trouble(`${agent.agent}: ${report.says}`);
    }
  }

  #refuse(line: string): void {
    this.figures.refusedReports++;
    this.trouble(line);
  }

  readonly #investigator: DiagnosisEnv = {
    ask: (agent, request, timeoutMs) =>
      this.#bus?.ask(agent, request, timeoutMs) ??
      Promise.reject(new Error("no agents are connected")),
    isThere: (agent) => this.isThere(agent),
    fetchedBytes: () => this.#bus?.traffic.replyBytes ?? 0,
    incidents: () => earlierIncidents(this.options.history, this.options.nowMs()),
    log: (line) => this.options.log(line),
    trouble: (line) => this.trouble(line),
  };

  async #localize(
    run: JobRun,
    suspicion: SuspectedSlowdown,
    since: number,
    isAgain: boolean,
  ): Promise<Diagnosis> {
    const by = this.#investigator;
    const found = await localizeSlowdown(run, suspicion, since, isAgain, by);
    this.figures.localizations++;
    this.figures.fetchedBytes += found.bytes;
    return found;
  }

  /** Behind the verdict: nobody waits for a picture. */
  #found({ id, job, onsetMs }: Incident, { verdict, picture = null, folder }: Diagnosis): void {
    if (folder !== undefined) this.pictures.put(id, null, folder);
    if (picture !== null) void this.#draw(id, Promise.resolve(picture));
    const { suspects } = verdict;
    const ranks = this.held.get(job)?.watch.run?.ranks;
    // A link has two machines; what covers more is on too many to draw.
    const machines = suspects.flatMap(({ type, machine, ranks: ends }) => {
      if (machine !== null) return [machine];
      return type === "link" ? ends.flatMap((rank) => ranks?.get(rank)?.machine ?? []) : [];
    });
    if (machines.length > 0) this.machines?.wish(id, [...new Set(machines)], onsetMs, suspects);
  }

  /** Of two searches the later counts, whichever is drawn first. */
  async #draw(id: string, picture: Promise<IncidentPicture>): Promise<void> {
    this.#drawing.set(id, picture);
    try {
      const drawn = await picture;
      if (this.#drawing.get(id) === picture) this.pictures.put(id, drawn);
    } catch (error) {
      this.trouble(`incident ${id} is not drawn: ${words(error)}`);
    } finally {
      if (this.#drawing.get(id) === picture) this.#drawing.delete(id);
    }
  }

  #collect(run: JobRun, kind: "hang" | "crash"): Promise<Diagnosis> {
    const { folder, nowMs } = this.options;
    return diagnoseStandstill(run, kind, join(folder, "incidents"), nowMs(), this.#investigator);
  }

  #changed(incident: Incident): void {
    if (incident.revision === 1) this.figures.incidents++;
    const isFirstVerdict = incident.verdict !== null && incident.state !== "resolved";
    if (isFirstVerdict && incident.revision <= 2) {
      this.figures.verdictSeconds.push((incident.changedMs - incident.onsetMs) / 1000);
      if (this.figures.verdictSeconds.length > VERDICTS_KEPT) this.figures.verdictSeconds.shift();
    }
    this.options.log(`incident ${incident.id} is ${incident.state}: ${incident.summary}`);
    this.tell({ type: "incident", incident });
  }

  #counted(run: JobRun, counted: readonly JobIteration[]): void {
    const rows = {
      iteration: counted.map(({ iteration }) => iteration),
      endMs: counted.map(({ endMs }) => endMs),
      durationMs: counted.map(({ durationMs }) => durationMs),
    };
    this.tell({ type: "iterations", job: run.job, run: run.run, rows });
    this.#iterations.add(run, counted);
  }

  #putIterations(): Promise<void> {
    return this.#iterations.put(this.options.history, (line) => this.trouble(line));
  }

  async #remember(): Promise<void> {
    const nowMs = this.options.nowMs();
    for (const [job, held] of this.held) {
      const { seenMs, hasEnded } = held.watch;
      if (nowMs - seenMs > FORGOTTEN_MS && held.watch.open.length === 0) {
        this.held.delete(job);
        this.#news.keep((one) => this.held.has(one));
        await held.forget().catch(() => undefined);
        continue;
      }
      // Nobody has told of it since we were started: what is written down is still true.
      if (!held.watch.run) continue;
      await held.keeper
        .write()
        .catch((error: unknown) => this.trouble(`job ${job}: ${words(error)}`));
      const { run, startedMs, worldSize, baselineMs, lastIteration } = held.watch.memory;
      const machines = new Set(
        [...(held.watch.run?.ranks.values() ?? [])].map(({ machine }) => machine),
      );
      await this.options.history
        .putJob({
          job,
          run,
          startedMs,
          seenMs,
          endedMs: hasEnded ? seenMs : null,
          worldSize,
          machines: machines.size,
          baselineMs,
          lastIteration: Number.isFinite(lastIteration) ? lastIteration : -1,
        })
        .catch((error: unknown) => this.trouble(`job ${job} is not kept: ${words(error)}`));
    }
  }
}

const CLOSE_MS = 3000;
const AUDIT_MS = 5000;

async function within(promise: Promise<void>, ms: number): Promise<void> {
  const late = after(ms).then(() => {
    throw new Error("the history does not answer");
  });
  await Promise.race([promise, late]);
}

function after(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}

function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
