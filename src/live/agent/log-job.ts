/** A job of which only logs are known: no probe runs in it, and the user has named it. */
import { LIMITS, type BeatReport, type JobReport, type Report } from "../wire/messages.ts";
import type { LogFailure, LogRow } from "./log-follower.ts";
import { PointRows } from "./rank-track.ts";

/** Starts cannot be told apart by a log; iterations that begin anew can. */
const RUN = "log";

export class LogJob {
  readonly job: string;
  readonly run = RUN;
  readonly #rows = new PointRows();
  readonly #ranks = new Set<number>();
  #startedMs = 0;
  #lastIteration = -1;

  constructor(job: string) {
    this.job = job;
  }

  tick(
    rows: readonly LogRow[],
    failures: readonly LogFailure[],
    says: (failure: LogFailure) => string,
    nowMs: number,
  ): Report[] {
    const before = this.#ranks.size;
    for (const { rank } of [...rows, ...failures]) this.#meet(rank);
    for (const { rank, iteration, endMs, durationMs } of rows) {
      if (!this.#ranks.has(rank)) continue;
      this.#lastIteration = iteration;
      const [collectiveMs, sendMs, recvMs, issueMs] = [NaN, NaN, NaN, NaN];
      this.#rows.add({
        rank,
        iteration,
        endMs,
        durationMs,
        collectiveMs,
        sendMs,
        recvMs,
        issueMs,
      });
    }
    if (this.#startedMs === 0 && this.#ranks.size + failures.length > 0) this.#startedMs = nowMs;
    const isNew = this.#ranks.size > before || (before === 0 && failures.length > 0);
    return [
      ...(isNew ? [this.report()] : []),
      ...this.#rows.take(this.job, RUN),
      ...failures.map((failure): Report => ({
        kind: "event",
        job: this.job,
        run: RUN,
        what: "log-failure",
        ranks: failure.rank >= 0 ? [failure.rank] : [],
        atMs: nowMs,
        says: says(failure),
      })),
    ];
  }

  get isKnown(): boolean {
    return this.#startedMs > 0;
  }

  report(): JobReport {
    return {
      kind: "job",
      job: this.job,
      run: RUN,
      startedMs: this.#startedMs,
      worldSize: 0,
      ranks: [...this.#ranks].map((rank) => ({
        rank,
        gpu: null,
        pid: null,
        nic: null,
        leaf: null,
        stage: null,
        groups: [],
      })),
    };
  }

  beat(): BeatReport["jobs"][number] {
    return {
      job: this.job,
      run: RUN,
      alive: this.#ranks.size,
      stopped: [],
      gone: [],
      silentMs: 0,
      openOperators: 0,
      lastIteration: this.#lastIteration,
    };
  }

  #meet(rank: number): void {
    if (rank >= 0 && rank < LIMITS.worldSize && this.#ranks.size < LIMITS.ranksPerAgent)
      this.#ranks.add(rank);
  }
}
