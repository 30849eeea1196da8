/**
 * Regressions of one running job: summaries of its agents in, decisions out. What healthy runs of the same model in the same
 * layout were like comes from the history and goes there, whatever the job is called.
 */
import { createHash } from "node:crypto";
import { fieldsOf } from "../../../base/json.ts";
import type { History } from "../../../history/history.ts";
import type { WorkSummary } from "../../../model/work-summary.ts";
import type { JobRun } from "../job/job-run.ts";
import {
  RegressionDetector,
  type RegressionDecision,
  type WorkWindow,
} from "./regression-detector.ts";

const SAVE_EVERY_MS = 600_000;
const PREFIX = "healthy-work/";
/** Models and layouts that are remembered; the one that was not seen for longest goes first. */
const MOST_BASELINES = 200;

export type Baselines = Pick<History, "document" | "putDocument" | "documentKeys">;

export class RegressionWatch {
  readonly #baselines: Baselines;
  readonly #trouble: (error: unknown) => void;
  #run: JobRun | null = null;
  #detector = new RegressionDetector();
  #savedMs = -Infinity;
  #work: Promise<void> = Promise.resolve();

  constructor(baselines: Baselines, trouble: (error: unknown) => void) {
    this.#baselines = baselines;
    this.#trouble = trouble;
  }

  take(agent: string, run: JobRun, work: WorkSummary, nowMs: number): void {
    if (this.#run !== run) {
      if (this.#run) this.#save(this.#run, nowMs);
      this.#run = run;
      this.#detector = new RegressionDetector();
    }
    this.#detector.take(agent, work, nowMs);
  }

  /** `isOpen`: whether a regression of the job is open. */
  tick(run: JobRun, nowMs: number, isOpen: boolean): Exclude<RegressionDecision, { do: "recall" }> {
    if (this.#run !== run) return null;
    const decision = this.#detector.tick(nowMs, isOpen);
    if (!isOpen && nowMs - this.#savedMs >= SAVE_EVERY_MS) this.#save(run, nowMs);
    if (decision?.do !== "recall") return decision;
    const detector = this.#detector;
    const key = keyOf(run, decision.work);
    this.#later(async () => detector.recall(windowsOf(await this.#baselines.document(key))));
    return null;
  }

  /** Waits for what is being read and written. */
  idle(): Promise<void> {
    return this.#work;
  }

  #save(run: JobRun, nowMs: number): void {
    const { work, healthy: windows } = this.#detector;
    if (work === null || windows.length === 0) return;
    const isFirst = this.#savedMs === -Infinity;
    this.#savedMs = nowMs;
    this.#later(async () => {
      await this.#baselines.putDocument(keyOf(run, work), { savedMs: nowMs, windows });
      if (isFirst) await this.#forgetOldest();
    });
  }

  async #forgetOldest(): Promise<void> {
    const keys = await this.#baselines.documentKeys(PREFIX);
    if (keys.length <= MOST_BASELINES) return;
    const all: { key: string; savedMs: number }[] = [];
    for (const key of keys) {
      const known = (await this.#baselines.document(key)) as { savedMs?: number } | null;
      all.push({ key, savedMs: known?.savedMs ?? 0 });
    }
    all.sort((a, b) => a.savedMs - b.savedMs);
    for (const { key } of all.slice(0, keys.length - MOST_BASELINES))
      await this.#baselines.putDocument(key, null);
  }

  #later(work: () => Promise<void>): void {
    this.#work = this.#work.then(work).catch(this.#trouble);
  }
}

function keyOf({ worldSize }: JobRun, work: string): string {
  const hash = createHash("sha256").update(`${worldSize} ${work}`).digest("hex");
  return `${PREFIX}${hash.slice(0, 32)}`;
}

/** Of a document that a service of another version may have written. */
export function windowsOf(document: unknown): readonly WorkWindow[] {
  const { windows } = fieldsOf(document) ?? {};
  const isWindow = (one: Partial<WorkWindow> | null): boolean =>
    typeof one?.stepMs === "number" &&
    typeof one.synchronizations === "number" &&
    [one.high, one.mean, one.shapes].every((part) => fieldsOf(part) !== null);
  return Array.isArray(windows) && windows.every(isWindow) ? (windows as WorkWindow[]) : [];
}
