/** What the history keeps of jobs: iterations of some seconds at a time, one row a run. */
import { errorText } from "../../../base/errors.ts";
import type { History } from "../../../history/history.ts";
import type { JobIteration } from "./job-iterations.ts";
import type { JobRun } from "./job-run.ts";
import type { LeasedJob } from "../lease/leased-job.ts";

export class JobHistoryWriter {
  readonly #history: History;
  readonly #trouble: (line: string) => void;
  readonly #pending = new Map<string, { readonly run: string; readonly rows: JobIteration[] }>();

  constructor(history: History, trouble: (line: string) => void) {
    this.#history = history;
    this.#trouble = trouble;
  }

  addIterations({ job, run }: JobRun, iterations: readonly JobIteration[]): void {
    let pending = this.#pending.get(job);
    if (pending?.run !== run) this.#pending.set(job, (pending = { run, rows: [] }));
    pending.rows.push(...iterations);
  }

  async writeIterations(): Promise<void> {
    const all = [...this.#pending];
    this.#pending.clear();
    await Promise.all(
      all.map(([job, { run, rows }]) =>
        this.#attempt(
          `iterations of ${job} are not saved`,
          this.#history.putIterations(job, run, {
            iteration: Float64Array.from(rows, ({ iteration }) => iteration),
            endMs: Float64Array.from(rows, ({ endMs }) => endMs),
            durationMs: Float64Array.from(rows, ({ durationMs }) => durationMs),
          }),
        ),
      ),
    );
  }

  async writeJob({ job, saved, run }: LeasedJob): Promise<void> {
    const { startedMs, seenMs, worldSize, baselineMs, lastIteration } = saved;
    const row = {
      job,
      run: saved.run,
      startedMs,
      seenMs,
      endedMs: saved.hasEnded ? seenMs : null,
      worldSize,
      machines: run?.machines ?? 0,
      baselineMs,
      lastIteration: Number.isFinite(lastIteration) ? lastIteration : -1,
    };
    await this.#attempt(`job ${job} is not saved`, this.#history.putJob(row));
  }

  async #attempt(what: string, work: Promise<void>): Promise<void> {
    await work.catch((error: unknown) => this.#trouble(`${what}: ${errorText(error)}`));
  }
}
