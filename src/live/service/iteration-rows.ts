/** Iterations on their way into the history: many jobs' of some seconds in one go. */
import type { History } from "../../history/history.ts";
import type { JobIteration, JobRun } from "./job-run.ts";

interface Rows {
  readonly run: string;
  readonly iteration: number[];
  readonly endMs: number[];
  readonly durationMs: number[];
}

export class IterationRows {
  readonly #pending = new Map<string, Rows>();

  add({ job, run }: JobRun, counted: readonly JobIteration[]): void {
    let rows = this.#pending.get(job);
    if (rows?.run !== run)
      this.#pending.set(job, (rows = { run, iteration: [], endMs: [], durationMs: [] }));
    for (const { iteration, endMs, durationMs } of counted) {
      rows.iteration.push(iteration);
      rows.endMs.push(endMs);
      rows.durationMs.push(durationMs);
    }
  }

  async put(history: History, trouble: (line: string) => void): Promise<void> {
    const all = [...this.#pending];
    this.#pending.clear();
    const columns = ({ iteration, endMs, durationMs }: Rows) => ({
      iteration: Float64Array.from(iteration),
      endMs: Float64Array.from(endMs),
      durationMs: Float64Array.from(durationMs),
    });
    await Promise.all(
      all.map(([job, rows]) =>
        history.putIterations(job, rows.run, columns(rows)).catch((error: unknown) => {
          const why = error instanceof Error ? error.message : String(error);
          trouble(`iterations of ${job} are not kept: ${why}`);
        }),
      ),
    );
  }
}
