/** Rows of iterations for one job, from all its ranks, as the columns of a report. */
import { LIMITS, type PointsReport } from "../wire/messages.ts";

export interface PointRow {
  readonly rank: number;
  readonly iteration: number;
  readonly endMs: number;
  readonly durationMs: number;
  readonly collectiveMs: number;
  readonly sendMs: number;
  readonly recvMs: number;
  readonly issueMs: number;
}

export class PointRows {
  readonly #rows: PointRow[] = [];

  /** What no clock can have measured is left out: a service would refuse the whole report for it. */
  add(row: PointRow): void {
    const isSound =
      Number.isSafeInteger(row.iteration) &&
      row.iteration >= 0 &&
      row.endMs > 0 &&
      row.durationMs >= 0 &&
      row.durationMs < 1e12;
    if (isSound) this.#rows.push(row);
  }

  /** As few reports as hold them; empty afterwards. */
  take(job: string, run: string): PointsReport[] {
    const reports: PointsReport[] = [];
    for (let from = 0; from < this.#rows.length; from += LIMITS.pointsPerFrame)
      reports.push(columns(job, run, this.#rows.slice(from, from + LIMITS.pointsPerFrame)));
    this.#rows.length = 0;
    return reports;
  }
}

function columns(job: string, run: string, rows: readonly PointRow[]): PointsReport {
  return {
    kind: "points",
    job,
    run,
    rank: Uint32Array.from(rows, ({ rank }) => rank),
    iteration: Float64Array.from(rows, ({ iteration }) => iteration),
    endMs: Float64Array.from(rows, ({ endMs }) => endMs),
    durationMs: Float32Array.from(rows, ({ durationMs }) => durationMs),
    collectiveMs: Float32Array.from(rows, ({ collectiveMs }) => part(collectiveMs)),
    sendMs: Float32Array.from(rows, ({ sendMs }) => part(sendMs)),
    recvMs: Float32Array.from(rows, ({ recvMs }) => part(recvMs)),
    issueMs: Float32Array.from(rows, ({ issueMs }) => part(issueMs)),
  };
}

/** Damaged times must not look like measured ones. */
function part(ms: number): number {
  return ms >= 0 && ms < 1e12 ? ms : NaN;
}
