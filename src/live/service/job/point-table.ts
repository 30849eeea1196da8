/**
 * The last iterations of all ranks of one run: a row of columns an iteration, a slot a rank. 10,000 ranks and 96
 * iterations take some 20 MB.
 */
import type { Rank } from "../../../model/ids.ts";
import type { PointsReport } from "../../wire/messages.ts";

const KEPT = 96;
/** An iteration is there when so many of the ranks that are heard have told of it: one rank with a wrong number moves nothing. */
const QUORUM = 0.25;
/** Rows beyond what is kept, of numbers that few have told of. */
const MOST_STRAY = 32;
const FIRST_SLOTS = 64;
const COLUMNS = ["durationMs", "collectiveMs", "sendMs", "recvMs"] as const;
type Column = (typeof COLUMNS)[number];
/** A rank whose number falls by more began again. */
const STEPS_BACK = 3;

interface Row {
  readonly iteration: number;
  /** Milliseconds since 1970, by our clock, when the first rank told of it. */
  readonly heardMs: number;
  told: number;
  columns: Record<Column, Float32Array>;
  endMs: Float64Array;
  /** Medians of these columns, from when they are asked for until a rank tells more; every search asks for all rows. */
  whole: WholeIteration | null | undefined;
}

/** One iteration of the whole job. */
export interface WholeIteration {
  readonly iteration: number;
  /** Medians over the ranks. */
  readonly durationMs: number;
  readonly endMs: number;
  readonly ranks: number;
}

export class PointTable {
  readonly #slots = new Map<Rank, number>();
  readonly #rows = new Map<number, Row>();
  #capacity = FIRST_SLOTS;
  /** Ranks that are not heard: what they would tell is not waited for. */
  #silent = 0;
  #newest = -Infinity;
  /** The oldest iteration that is kept, once there are as many as are. */
  #oldest = -Infinity;
  /** By slot: the last iteration it told of. */
  #last = new Float64Array(FIRST_SLOTS).fill(NaN);
  /** By slot: when it last told of one, by our clock. */
  #toldMs = new Float64Array(FIRST_SLOTS).fill(NaN);
  readonly #back = new Set<Rank>();

  get ranks(): readonly Rank[] {
    return [...this.#slots.keys()];
  }

  /** The latest iteration that enough ranks have told of. */
  get newest(): number {
    return this.#newest;
  }

  /** Where a rank's values stand in the columns of every row; -1 where it has told nothing. */
  slotOf(rank: Rank): number {
    return this.#slots.get(rank) ?? -1;
  }

  /** The last iteration that a slot's rank told of. */
  lastAt(slot: number): number {
    return this.#last[slot]!;
  }

  /** One iteration's columns as they are, by slot; null where it is not kept. To be read at once: they go on changing. */
  rowOf(iteration: number): Readonly<Record<Column, Float32Array>> | null {
    return this.#rows.get(iteration)?.columns ?? null;
  }

  /** Rows that were new; false for `began again` where most ranks count from the beginning. */
  add(
    report: PointsReport,
    nowMs: number,
  ): { readonly added: number; readonly beganAgain: boolean } {
    let added = 0;
    for (let i = 0; i < report.rank.length; i++) {
      const rank = report.rank[i]!;
      const iteration = report.iteration[i]!;
      const slot = this.#takeSlot(rank);
      // A number that nobody else came to was wrong.
      const last = this.#last[slot]! > this.#newest ? NaN : this.#last[slot]!;
      if (iteration < last - STEPS_BACK) {
        if (this.#hasTold(slot, report, i)) continue;
        this.#back.add(rank);
        const most = Math.max(Math.min(1, this.#slots.size - 1), this.#heard / 2);
        if (this.#back.size > most) return { added, beganAgain: true };
        continue;
      }
      this.#back.delete(rank);
      this.#toldMs[slot] = nowMs;
      const row = this.#takeRow(iteration, nowMs);
      if (!row) continue;
      if (Number.isNaN(row.columns.durationMs[slot]!)) {
        row.told++;
        added++;
      }
      if (iteration > this.#newest && row.told >= this.#quorum) this.#settle(iteration);
      row.whole = undefined;
      row.endMs[slot] = report.endMs[i]!;
      for (const column of COLUMNS) row.columns[column][slot] = report[column][i]!;
      if (!(last >= iteration)) this.#last[slot] = iteration;
    }
    return { added, beganAgain: false };
  }

  /** Whether a row is one that an agent sends again because it was cut off: no iteration that is run again ends when it did before. */
  #hasTold(slot: number, report: PointsReport, i: number): boolean {
    const row = this.#rows.get(report.iteration[i]!);
    const durationMs = report.durationMs[i]!;
    return (
      row !== undefined &&
      row.columns.durationMs[slot] === durationMs &&
      Math.abs(row.endMs[slot]! - report.endMs[i]!) < durationMs
    );
  }

  clear(): void {
    this.#rows.clear();
    this.#last.fill(NaN);
    this.#toldMs.fill(NaN);
    this.#back.clear();
    this.#newest = -Infinity;
    this.#oldest = -Infinity;
  }

  /** Ranks that tell: those that told of one of the last iterations, or of any since then; their reports may be late. */
  active(sinceMs: number): number {
    let active = 0;
    const recent = this.#recent();
    for (const slot of this.#slots.values())
      if (this.#last[slot]! >= recent || this.#toldMs[slot]! >= sinceMs) active++;
    return active;
  }

  toldOf(iteration: number): number {
    return this.#rows.get(iteration)?.told ?? 0;
  }

  heardOf(iteration: number): number {
    return this.#rows.get(iteration)?.heardMs ?? NaN;
  }

  /** Numbers above one that enough ranks have told of, or that others have passed, ascending. */
  after(iteration: number): number[] {
    return [...this.#rows.keys()]
      .filter((number) => number > iteration && number <= this.#newest)
      .sort((a, b) => a - b);
  }

  /** Never one alone, unless it is alone. */
  get #quorum(): number {
    return Math.max(Math.min(2, this.#slots.size), QUORUM * this.#heard);
  }

  get #heard(): number {
    return this.#slots.size - this.#silent;
  }

  /** So many of the ranks are not heard at present: an iteration that the others have told of is there. */
  withoutSilent(silent: number): void {
    const isMore = silent > this.#silent;
    this.#silent = silent;
    if (!isMore) return;
    const newest = this.iterations.findLast((number) => this.toldOf(number) >= this.#quorum);
    if (newest !== undefined && newest > this.#newest) this.#settle(newest);
  }

  /** Number of the iteration some before the newest. */
  #recent(): number {
    const settled = this.iterations.filter((number) => number <= this.#newest);
    return settled.at(-STEPS_BACK) ?? -Infinity;
  }

  #settle(iteration: number): void {
    this.#newest = iteration;
    const settled = this.iterations.filter((number) => number <= iteration);
    for (const number of settled.slice(0, -KEPT)) this.#rows.delete(number);
    this.#oldest = settled.length >= KEPT ? settled.at(-KEPT)! : -Infinity;
  }

  whole(iteration: number): WholeIteration | null {
    const row = this.#rows.get(iteration);
    if (!row) return null;
    if (row.whole === undefined) row.whole = wholeOf(row);
    return row.whole;
  }

  /** Numbers of the iterations at hand, ascending. */
  get iterations(): number[] {
    return [...this.#rows.keys()].sort((a, b) => a - b);
  }

  #takeSlot(rank: Rank): number {
    const known = this.#slots.get(rank);
    if (known !== undefined) return known;
    const slot = this.#slots.size;
    if (slot === this.#capacity) this.#grow();
    this.#slots.set(rank, slot);
    return slot;
  }

  #grow(): void {
    this.#capacity *= 2;
    this.#last = grown(this.#last, new Float64Array(this.#capacity));
    this.#toldMs = grown(this.#toldMs, new Float64Array(this.#capacity));
    for (const row of this.#rows.values()) {
      row.endMs = grown(row.endMs, new Float64Array(this.#capacity));
      for (const column of COLUMNS)
        row.columns[column] = grown(row.columns[column], new Float32Array(this.#capacity));
    }
  }

  /** null for what is long past, and where nonsense fills the table. */
  #takeRow(iteration: number, nowMs: number): Row | null {
    const known = this.#rows.get(iteration);
    if (known) return known;
    if (iteration < this.#oldest || this.#rows.size >= KEPT + MOST_STRAY) {
      if (iteration < this.#oldest || !this.#dropStray()) return null;
    }
    const column = (): Float32Array => new Float32Array(this.#capacity).fill(NaN);
    const row: Row = {
      iteration,
      heardMs: nowMs,
      told: 0,
      columns: {
        durationMs: column(),
        collectiveMs: column(),
        sendMs: column(),
        recvMs: column(),
      },
      endMs: new Float64Array(this.#capacity).fill(NaN),
      whole: undefined,
    };
    this.#rows.set(iteration, row);
    return row;
  }

  /** Of the numbers beyond the newest, the one that fewest have told of. */
  #dropStray(): boolean {
    const strays = [...this.#rows.values()].filter(({ iteration }) => iteration > this.#newest);
    const [least] = strays.sort((a, b) => a.told - b.told || b.iteration - a.iteration);
    return least !== undefined && this.#rows.delete(least.iteration);
  }
}

function wholeOf({ iteration, columns, endMs }: Row): WholeIteration | null {
  const durations = columns.durationMs.filter((ms) => ms > 0);
  if (durations.length === 0) return null;
  const ends = endMs.filter((ms) => !Number.isNaN(ms));
  return {
    iteration,
    durationMs: middle(durations),
    endMs: middle(ends),
    ranks: durations.length,
  };
}

function grown<A extends Float32Array | Float64Array>(from: A, to: A): A {
  to.fill(NaN);
  to.set(from);
  return to;
}

function middle(values: Float32Array | Float64Array): number {
  values.sort();
  return values[values.length >> 1]!;
}
