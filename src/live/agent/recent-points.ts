/**
 * The last iterations that were told, for a service that has just been started, or has taken a job over: it learns what is
 * healthy from them, and need not wait for as many new ones.
 */
import type { PointsReport } from "../wire/messages.ts";

/** Iterations of each rank. */
const KEPT = 64;
/** Rows of one job on one machine: more is no machine. */
const MOST_ROWS = 16_384;

export class RecentPoints {
  /** "job run" → what was told, oldest first. */
  readonly #told = new Map<string, PointsReport[]>();

  add(report: PointsReport): void {
    const key = `${report.job} ${report.run}`;
    const list = this.#told.get(key) ?? [];
    list.push(report);
    const newest = report.iteration.reduce((most, number) => Math.max(most, number), -Infinity);
    let rows = list.reduce((sum, { rank }) => sum + rank.length, 0);
    while (
      list.length > 1 &&
      (rows > MOST_ROWS || (list[0]!.iteration.at(-1) ?? 0) <= newest - KEPT)
    )
      rows -= list.shift()!.rank.length;
    // A run that is over is not asked for again: one run of a job is kept, the latest.
    for (const other of this.#told.keys())
      if (other !== key && other.startsWith(`${report.job} `)) this.#told.delete(other);
    this.#told.set(key, list);
  }

  /** One report a job. */
  all(): PointsReport[] {
    return [...this.#told.values()].map((list) => ({
      kind: "points",
      job: list[0]!.job,
      run: list[0]!.run,
      rank: Uint32Array.from(list.flatMap(({ rank }) => [...rank])),
      iteration: Float64Array.from(list.flatMap(({ iteration }) => [...iteration])),
      endMs: Float64Array.from(list.flatMap(({ endMs }) => [...endMs])),
      durationMs: floats(list, "durationMs"),
      collectiveMs: floats(list, "collectiveMs"),
      sendMs: floats(list, "sendMs"),
      recvMs: floats(list, "recvMs"),
      issueMs: floats(list, "issueMs"),
    }));
  }
}

type FloatColumn = "durationMs" | "collectiveMs" | "sendMs" | "recvMs" | "issueMs";

function floats(list: readonly PointsReport[], name: FloatColumn): Float32Array<ArrayBuffer> {
  return Float32Array.from(list.flatMap((report) => [...report[name]]));
}
