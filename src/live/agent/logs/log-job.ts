/** A job of which only logs are known: no probe runs in it, and the user has named it. */
import { getOrInsert } from "../../../base/group-by.ts";
import { cutText, harmless } from "../../../base/text.ts";
import { type BeatReport, type JobReport, LIMITS, type Report } from "../../wire/messages.ts";
import type { LogFailure, LogRow } from "./log-follower.ts";
import { type PointRow, PointRows } from "../iterations/rank-track.ts";
import type { RunTrack } from "../run-track.ts";

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

interface Routed {
  readonly rows: PointRow[];
  readonly logRows: LogRow[];
  readonly failures: LogFailure[];
}

const SAYS = 400;
const UNTIMED = { collectiveMs: NaN, sendMs: NaN, recvMs: NaN, issueMs: NaN };

/** Whose lines are whose: a log names a rank, and the runs on this machine know which ranks are theirs. */
export function routeLogs(
  rows: readonly LogRow[],
  failures: readonly LogFailure[],
  tracks: readonly RunTrack[],
): Map<RunTrack | null, Routed> {
  const routed = new Map<RunTrack | null, Routed>();
  const of = (track: RunTrack | null): Routed => {
    return getOrInsert(routed, track, () => ({ rows: [], logRows: [], failures: [] }));
  };
  for (const row of rows) {
    const found = owner(row, tracks);
    if (found === undefined) continue;
    if (found === null) of(null).logRows.push(row);
    else of(found.track).rows.push({ ...row, ...UNTIMED, rank: found.rank });
  }
  for (const failure of failures) {
    const found = owner(failure, tracks);
    if (found !== undefined) of(found?.track ?? null).failures.push(failure);
  }
  return routed;
}

/** Null: of no run with rings; undefined: of a rank on another machine. */
function owner(
  one: { readonly rank: number; readonly local: number; readonly path: string },
  tracks: readonly RunTrack[],
): { readonly track: RunTrack; readonly rank: number } | null | undefined {
  if (tracks.length === 0) return null;
  const fitting = tracks.flatMap((track) => {
    const rank = one.rank >= 0 ? one.rank : one.local >= 0 ? track.rankOfLocal(one.local) : -1;
    return rank === -1 || (rank !== null && track.ranks.has(rank)) ? [{ track, rank }] : [];
  });
  const named = fitting.filter(({ track }) => one.path.includes(track.watched.run.job));
  const among = named.length > 0 ? named : fitting;
  // The newest: logs of runs that are over do not grow.
  const [found] = among.toSorted(
    (a, b) => b.track.watched.run.startedMs - a.track.watched.run.startedMs,
  );
  return found;
}

export function ranksOf(failure: LogFailure, track: RunTrack): number[] {
  const rank = failure.rank >= 0 ? failure.rank : (track.rankOfLocal(failure.local) ?? -1);
  return rank >= 0 ? [rank] : [];
}

export function saysOf({ text, untold }: LogFailure): string {
  const more = untold > 0 ? ` (and ${untold} more before it)` : "";
  return `${cutText(harmless(text.trim()), SAYS)}${more}`;
}
