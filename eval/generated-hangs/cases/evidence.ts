import type { Execution, Meeting } from "./execute.ts";
import { visibleRecords } from "../../../src/simulate/flight/flight-recorder.ts";
import type { SimJob } from "./job.ts";
import type { SimGroup } from "../../../src/simulate/flight/rank-records.ts";
import type { Layout } from "./layout.ts";
import { stageOf } from "./layout.ts";
import type { FilePlan } from "./nuisance.ts";
import type { Op } from "../../../src/simulate/flight/op.ts";
import { pairs } from "./op-rules.ts";
import type { RankRecords } from "../../../src/simulate/flight/rank-records.ts";
import type { Wait } from "./waits.ts";
import { notCome, openWaits } from "./waits.ts";

/** What a reader of the files can see of a case, beside what really happened. */
export class Evidence {
  readonly groups: readonly SimGroup[];
  readonly records: readonly RankRecords[];
  readonly waits: readonly (readonly Wait[])[];
  readonly timing: boolean;
  readonly #plans: readonly FilePlan[];
  readonly #layout: Layout;
  /** First record that the dump shows, or Infinity where it shows none of the completed ones. */
  readonly #firstSeen: readonly number[];
  readonly #iteration: number;

  constructor(
    job: SimJob,
    execution: Execution,
    records: readonly RankRecords[],
    plans: readonly FilePlan[],
    /** Iteration in which the fault lies. */
    iteration: number,
  ) {
    this.groups = job.groups;
    this.records = records;
    this.waits = openWaits(execution);
    this.timing = plans[0]?.options.timing ?? true;
    this.#layout = job.layout;
    this.#plans = plans;
    this.#iteration = iteration;
    this.#firstSeen = records.map((record, rank) => {
      const { options, written } = plans[rank] as FilePlan;
      const isComplete = written && options.entries && !options.onlyActive;
      return isComplete ? Math.max(0, record.ops.length - options.ringSize) : Infinity;
    });
  }

  isPresent(rank: number): boolean {
    return this.#plans[rank]?.written ?? false;
  }

  hasEntries(rank: number): boolean {
    return this.isPresent(rank) && this.#plans[rank]?.options.entries === true;
  }

  /** Whether the dump shows a whole iteration before the faulty one, to compare with. */
  hasHistory(rank: number): boolean {
    const ops = this.records[rank]?.ops ?? [];
    const start = ops.findIndex(
      (op) => op.iteration === this.#iteration - 1 && op.site !== "warm-up",
    );
    return start >= (this.#firstSeen[rank] as number);
  }

  shows(rank: number, index: number): boolean {
    const record = this.records[rank] as RankRecords;
    if (!this.hasEntries(rank) || index >= record.ops.length) return false;
    return visibleRecords(record, (this.#plans[rank] as FilePlan).options).includes(index);
  }

  siblings(rank: number): number[] {
    const stage = stageOf(this.#layout, rank);
    return this.records.map((r) => r.rank).filter((r) => stageOf(this.#layout, r) === stage);
  }

  /** Whether the dump shows which of the rank's operators it waits in. */
  tellsItsWait(rank: number): boolean {
    return this.timing || this.hasEntries(rank);
  }

  /** Whether counters alone make a rank that waits look as if it did not. */
  looksIdle(rank: number): boolean {
    const status = [...(this.records[rank]?.status.values() ?? [])];
    const isBusy = this.timing
      ? status.some((s) => s.started > s.completed)
      : status.some((s) => s.enqueued > s.completed);
    return !isBusy;
  }

  /**
   * Ranks without a dump that somebody's wait points at: none of the present members explains it. Those
   * that came and those that did not look the same.
   */
  implicated(isWitness: (rank: number) => boolean): Set<number> {
    const found = new Set<number>();
    this.waits.forEach((waits, rank) => {
      if (!this.isPresent(rank) || !isWitness(rank)) return;
      for (const { meeting } of waits) {
        if (notCome(meeting).some((r) => this.isPresent(r)) || this.#isSeenMismatch(meeting))
          continue;
        for (const r of meeting.expected) if (!this.isPresent(r)) found.add(r);
      }
    });
    return found;
  }

  /** Whether the entries themselves show that a meeting's operators do not fit together. */
  #isSeenMismatch(meeting: Meeting): boolean {
    if (!meeting.dead) return false;
    const seen: Op[] = [];
    meeting.came.forEach((rank, i) => {
      const index = meeting.ops[i] as number;
      if (this.shows(rank, index)) seen.push(this.records[rank]?.ops[index] as Op);
    });
    return seen.some((op) => !pairs(seen[0] as Op, op));
  }

  /**
   * Of these ranks without a dump, those that a reader can clear: their next operator, known from a rank
   * of the same stage, needs somebody present who has not come, or somebody cleared before.
   */
  cleared(ranks: ReadonlySet<number>): Set<number> {
    const cleared = new Set<number>();
    for (let before = -1; before < cleared.size;) {
      before = cleared.size;
      for (const rank of ranks) {
        if (!this.siblings(rank).some((r) => this.hasHistory(r))) continue;
        const blockers = (this.waits[rank] ?? []).flatMap((wait) => notCome(wait.meeting));
        if (blockers.some((r) => this.isPresent(r) || cleared.has(r))) cleared.add(rank);
      }
    }
    return cleared;
  }
}
