/** One job that this service looks after: its watch, and what is written down of it. */
import type { JobFile } from "../../live-pipeline.ts";
import type { Incident, IncidentAction } from "../../model/incident.ts";
import type { Verdict } from "../../model/verdict.ts";
import type { Actions } from "./actions/actions.ts";
import { documentOf } from "./job-document.ts";
import { isOpen, withActions } from "./incident-lifecycle.ts";
import type { JobEffects, JobWatchOptions } from "./job-effects.ts";
import { JobWatch } from "./job-watch.ts";
import { IncidentWriter, type IncidentWriterOptions } from "./incident-writer.ts";

export interface LeasedJobOptions extends Omit<
  IncidentWriterOptions,
  "memory" | "unsaved" | "told"
> {
  readonly document: unknown;
  readonly jobFile: JobFile | null;
  readonly actions: Actions;
  readonly watch: JobWatchOptions;
  readonly effects: Omit<JobEffects, "save">;
}

export class LeasedJob {
  readonly job: string;
  readonly watch: JobWatch;
  readonly keeper: IncidentWriter;
  readonly #options: LeasedJobOptions;
  /** Changes of a record that leave its verdict alone propose nothing new. */
  #proposedFor: Verdict | null = null;

  constructor(options: LeasedJobOptions) {
    this.#options = options;
    this.job = options.lease.job;
    const known = documentOf(options.document);
    this.watch = new JobWatch(this.job, options.jobFile, known, options.watch, {
      ...options.effects,
      save: (incident) => this.#save(incident),
    });
    this.keeper = new IncidentWriter({
      ...options,
      unsaved: known?.unsaved ?? [],
      told: known?.alerts ?? null,
      memory: () => this.watch.memory,
    });
  }

  /** What was left undone when the last service that held it ended. */
  async recover(): Promise<void> {
    this.keeper.flush();
    for (const incident of this.#records()) {
      const recovered = await this.#options.actions.recover(incident);
      this.keeper.alerts.notify(recovered);
      void this.#options.actions.runAutomatic(recovered);
    }
  }

  /** Puts an action into the latest record; null where it has no such incident. */
  async putAction(id: string, action: IncidentAction): Promise<Incident | null> {
    const known = this.#latest(id);
    if (!known) return null;
    const actions = [...known.actions.filter((one) => one.id !== action.id), action];
    const incident = withActions(known, actions, this.#options.effects.nowMs());
    await this.watch.update(incident);
    return incident;
  }

  /** Long over: its document goes, what the history has stays. */
  async forget(): Promise<void> {
    await this.watch.idle();
    await this.#options.lease.write(null);
    await this.keeper.drop();
    await this.#options.lease.release();
  }

  async close(): Promise<void> {
    await this.watch.idle();
    await this.keeper.close();
  }

  async #save(incident: Incident): Promise<void> {
    await this.keeper.save(incident);
    if (incident.verdict === null || incident.verdict === this.#proposedFor || !isOpen(incident))
      return;
    this.#proposedFor = incident.verdict;
    await this.#propose(incident);
  }

  async #propose(incident: Incident): Promise<void> {
    const { actions, effects } = this.#options;
    const proposed = await actions.propose(incident);
    const now = this.#latest(incident.id);
    if (proposed.length === 0 || !now || !isOpen(now)) return;
    const latest = withActions(now, proposed, effects.nowMs());
    await this.watch.update(latest);
    // Not waited for: a command may take minutes.
    void actions.runAutomatic(latest);
  }

  #records(): Incident[] {
    const { slow, still, recent, earlier } = this.watch.memory;
    return [slow, still, recent, ...earlier].filter((one) => one !== null);
  }

  #latest(id: string): Incident | undefined {
    return this.#records().find((one) => one.id === id);
  }
}
