/**
 * One rank on this machine: ends of iterations, from its Python ring or found in its calls, cut the operators of its native
 * ring, and a row goes out for each iteration. All it keeps beside the rings' records is where iterations begin and end among them.
 */
import { RECORD } from "../../../ingest/probe-ring/layout.ts";
import { LIMITS, type PointsReport } from "../../wire/messages.ts";
import { CalledIterations } from "./called-iterations.ts";
import type { IterationMark, RingFollower } from "../rings/follow-ring.ts";
import { type IndexedIteration, IterationIndex } from "./iteration-index.ts";
import {
  isOperator,
  isShim,
  type KeptOperators,
  operatorsOf,
  sumsOf,
} from "../rings/kept-operators.ts";
import { RankGroups } from "../rank-groups.ts";
import { clockOffset, whole } from "../rings/ring-header.ts";
import type { WorkTally } from "./work-tally.ts";

/** A row waits for its operators until so many later iterations have ended. */
const WAIT_ITERATIONS = 2;
/** A record at the border of two iterations that is just being written is looked at again so often. */
const BORDER_TRIES = 3;
/** Iterations that had ended before the ring was met: enough to learn from, too few to flood anybody. */
const PAST_ITERATIONS = 256;
const NOTHING = { collectiveMs: NaN, sendMs: NaN, recvMs: NaN, issueMs: NaN };

export class RankTrack {
  readonly rank: number;
  readonly groups = new RankGroups();
  readonly index = new IterationIndex();
  #python: RingFollower | null = null;
  #native: RingFollower | null = null;
  /** Marks whose borders are not found yet. */
  #marks: IterationMark[] = [];
  #tries = 0;
  /** Iterations whose rows wait for operators to end. */
  #waiting: IndexedIteration[] = [];
  #last: { iteration: number; endNs: number } | null = null;
  /** Everything before this ticket was issued before the last border. */
  #cursor = 0;
  #borderSure = true;
  #hasPlugin = false;
  #isNew = true;
  #called: CalledIterations | null = null;
  lastIteration = -1;

  constructor(rank: number) {
    this.rank = rank;
  }

  get native(): RingFollower | null {
    return this.#native;
  }

  get hasMarks(): boolean {
    return this.#last !== null;
  }

  /** Whether its framework marks iterations: what is found in its calls is not needed. */
  get isMarked(): boolean {
    return (this.#python?.lastIteration ?? -1) >= 0;
  }

  /** The iterations in its calls; null without a native ring. */
  get called(): CalledIterations | null {
    return this.#called;
  }

  /** Reads what it called since the last time. */
  readCalls(): void {
    if (this.#native === null) return;
    this.groups.look(this.#native);
    this.#called ??= new CalledIterations();
    this.#called.read(this.#native, this.groups);
  }

  /** Iterations that were found in its calls. */
  giveMarks(marks: readonly IterationMark[]): void {
    this.#addMarks(marks);
  }

  attach(python: RingFollower | null, native: RingFollower | null): void {
    this.#python = python;
    if (native === this.#native) return;
    this.#native = native;
    this.#called = null;
    this.#cursor = native?.oldest ?? 0;
    // What was overwritten before we came may have belonged to the first iteration that we see.
    this.#borderSure = this.#cursor === 0;
  }

  /** Takes what the rings have got since the last call; rows that are due go to `add`. */
  take(add: (row: PointRow) => void, work: WorkTally | null = null): void {
    if (this.#native) this.groups.look(this.#native);
    if (this.isMarked) this.#called = null;
    this.#addMarks(this.#python?.takeMarks() ?? []);
    while (this.#marks.length > 0 && this.#cut(this.#marks[0]!)) this.#marks.shift();
    this.#send(add, work);
  }

  /** The operators of an iteration that is held; null where the rank has none. */
  operators(one: IndexedIteration): KeptOperators | null {
    return this.#native === null ? null : operatorsOf(this.#native, one, this.#hasPlugin);
  }

  /** Milliseconds since 1970 of the machine's monotonic clock. */
  realMs(ns: number): number {
    return (ns + this.clockOffsetNs) / 1e6;
  }

  get clockOffsetNs(): number {
    const header = this.#python?.header ?? this.#native?.header;
    return header === undefined ? 0 : Number(clockOffset(header));
  }

  /** Iterations whose records are all still kept, as far as their tickets tell. */
  get heldIterations(): number[] {
    const native = this.#native;
    if (native === null) return [];
    return this.index.numbers.filter((number) => {
      const one = this.index.get(number)!;
      return one.isSure && one.first >= native.oldest;
    });
  }

  #addMarks(marks: readonly IterationMark[]): void {
    this.#marks.push(...(this.#isNew ? marks.slice(-PAST_ITERATIONS) : marks));
    if (marks.length > 0) this.#isNew = false;
  }

  /** Finds where the iteration lies; false where that cannot be told yet. */
  #cut(mark: IterationMark): boolean {
    const { iteration, endedNs } = mark;
    const last = this.#last;
    if (last !== null && endedNs <= last.endNs) return true;
    // What lies between two marks (loading, logging) is the job's time too.
    const follows = last !== null && iteration === last.iteration + 1;
    const startNs = follows ? last.endNs : mark.issuedNs > 0 ? mark.issuedNs : endedNs;
    let first = this.#cursor;
    let isSure = this.#borderSure;
    if (this.#native !== null) {
      if (!follows) ({ ticket: first, isSure } = this.#border(startNs, first, isSure));
      const end = this.#border(endedNs, first, isSure);
      if (!end.isSure && end.mayCome && this.#tries++ < BORDER_TRIES) return false;
      this.#tries = 0;
      this.#cursor = end.ticket;
      this.#borderSure = end.isSure;
      isSure &&= end.isSure;
    }
    this.#last = { iteration, endNs: endedNs };
    this.lastIteration = iteration;
    const behind = this.#native === null ? first : this.#cursor;
    const one = { iteration, startNs, endNs: endedNs, first, behind, isSure };
    this.index.add(one);
    this.#waiting.push(one);
    return true;
  }

  /**
   * The first operator or other record that was issued at this moment or later. Sure where the record before it is there:
   * a lost one may belong to either side.
   */
  #border(
    ns: number,
    from: number,
    wasSure: boolean,
  ): { ticket: number; isSure: boolean; mayCome: boolean } {
    const native = this.#native!;
    const { kept, next, oldest } = native;
    let isSure = wasSure && from >= oldest;
    let mayCome = false;
    let ticket = Math.max(from, oldest);
    for (; ticket < next; ticket++) {
      const place = native.placeOf(ticket);
      if (place < 0) {
        isSure = false;
        mayCome = ticket >= next - native.ring.header.recordCount;
        continue;
      }
      if (whole(kept, place + RECORD.issuedNs) >= ns) break;
      isSure = true;
      if (isOperator(kept, place) && !isShim(kept, place)) this.#hasPlugin = true;
    }
    return { ticket, isSure, mayCome };
  }

  #send(add: (row: PointRow) => void, work: WorkTally | null): void {
    const isAlone = (communicator: number, peer: number | null): boolean =>
      this.groups.isAlone(communicator, peer);
    let sent = 0;
    for (const [i, one] of this.#waiting.entries()) {
      const operators = this.operators(one);
      const sums = operators === null ? null : sumsOf(operators, isAlone);
      const isDue = this.#waiting.length - 1 - i >= WAIT_ITERATIONS;
      // A record that is not there may be just being written; one beyond an unsure border is lost.
      const mayCome = sums !== null && (operators!.isWhole ? sums.isOpen : one.isSure);
      if (mayCome && !isDue) break;
      if (operators?.isWhole === false) this.index.spoil(one.iteration);
      const { collectiveMs, sendMs, recvMs, issueMs } = sums ?? NOTHING;
      add({
        rank: this.rank,
        iteration: one.iteration,
        endMs: this.realMs(one.endNs),
        durationMs: (one.endNs - one.startNs) / 1e6,
        collectiveMs,
        sendMs,
        recvMs,
        issueMs,
      });
      const [python, native] = [this.#python, this.#native];
      work?.add({ rank: this.rank, one, python, native, operators, sums });
      sent++;
    }
    this.#waiting.splice(0, sent);
  }
}

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
