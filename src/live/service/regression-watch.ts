/** Regressions of one running job: summaries of its agents in, incidents out. What healthy runs were like goes from run to run. */
import type { Incident } from "../../model/incident.ts";
import type { WorkSummary } from "../../model/work-summary.ts";
import { regressionVerdict } from "../../pipeline/live-regression.ts";
import { confirmed, resolved, suspected } from "./incident-lifecycle.ts";
import type { JobRun } from "./job-run.ts";
import { RegressionDetector, type WorkBaseline } from "./regression-detector.ts";

export interface SavedRegressions {
  readonly open: Incident | null;
  readonly baseline: WorkBaseline | null;
}

export interface RegressionWatchOptions {
  save(this: void, incident: Incident): Promise<void>;
  trouble(this: void, error: unknown): void;
}

export class RegressionWatch {
  readonly #options: RegressionWatchOptions;
  #detector: { readonly run: JobRun; readonly of: RegressionDetector } | null = null;
  #baseline: WorkBaseline | null;
  #open: Incident | null;
  /** The last one that is safe. */
  #shown: Incident | null;
  #saving: Promise<void> = Promise.resolve();

  constructor(options: RegressionWatchOptions, saved: SavedRegressions) {
    this.#options = options;
    this.#open = this.#shown = saved.open;
    this.#baseline = saved.baseline;
  }

  get open(): Incident | null {
    return this.#shown;
  }

  get state(): SavedRegressions {
    return { open: this.#open, baseline: this.#detector?.of.baseline ?? this.#baseline };
  }

  take(agent: string, run: JobRun, work: WorkSummary, nowMs: number): void {
    this.#of(run, nowMs).take(agent, work, nowMs);
  }

  tick(run: JobRun, nowMs: number): void {
    if (this.#detector?.run !== run) return;
    const decision = this.#detector.of.tick(nowMs);
    if (decision?.do === "resolve") this.#resolve(nowMs, "iterations are as long as before");
    if (decision?.do !== "open") return;
    const { found } = decision;
    const record = suspected({
      job: run.job,
      run: run.run,
      kind: "regression",
      summary: "iterations are longer than healthy ones",
      onsetMs: found.sinceMs,
      nowMs,
      fromIteration: null,
    });
    const verdict = regressionVerdict(run.known().job, found);
    this.#put(record);
    // All ranks run the code: none of them, and no machine, is the suspect.
    this.#put({ ...confirmed(record, verdict, nowMs), ranks: [], machines: [] });
  }

  idle(): Promise<void> {
    return this.#saving;
  }

  #of(run: JobRun, nowMs: number): RegressionDetector {
    if (this.#detector?.run === run) return this.#detector.of;
    this.#baseline = this.#detector?.of.baseline ?? this.#baseline;
    if (this.#open && this.#open.run !== run.run) this.#resolve(nowMs, "the job was started again");
    // Not by machines: those of other agents come later.
    const key = `${run.worldSize} ranks`;
    const isOpen = this.#open?.run === run.run;
    const of = new RegressionDetector(key, this.#baseline, isOpen);
    this.#detector = { run, of };
    return of;
  }

  #resolve(nowMs: number, why: string): void {
    if (this.#open) this.#put(resolved(this.#open, nowMs, `over: ${why}`));
  }

  #put(incident: Incident): void {
    const isOver = incident.state === "resolved";
    this.#open = isOver ? null : incident;
    this.#saving = this.#saving
      .then(() => this.#options.save(incident))
      .then(() => void (this.#shown = isOver ? null : incident))
      .catch(this.#options.trouble);
  }
}

/** Of a document that an older service may have written. */
export function savedRegressions(document: unknown): SavedRegressions {
  const nothing = { open: null, baseline: null };
  if (typeof document !== "object" || document === null) return nothing;
  const { regressions } = document as { readonly regressions?: Partial<SavedRegressions> | null };
  if (typeof regressions !== "object" || regressions === null) return nothing;
  const { open = null, baseline = null } = regressions;
  const isBaseline =
    typeof baseline?.key === "string" &&
    Array.isArray(baseline.windows) &&
    baseline.windows.every((one) => typeof one?.stepMs === "number" && one.high && one.mean);
  return {
    open: typeof open?.id === "string" ? open : null,
    baseline: isBaseline ? baseline : null,
  };
}
