/** Iterations as each stream reports them, and which shapes it wrote from one report to the next. */
import { grown } from "../grown.ts";
import { HashIndex } from "./hash-index.ts";
import { REPORT_FORMS } from "./iteration-reports.ts";
import { withoutMiddle } from "./block-list.ts";
import type { LogIterations } from "../../model/log-digest.ts";

const LONGEST_SEQUENCE = 256;
const MOST_SEQUENCES = 20_000;
/** Its end has not come yet; -1 where there were too many sequences to keep this one. */
const OPEN = -2;
/** Bars that count to ever more: after so many the stream's first counters are left as they are. */
const MOST_RESTARTS = 16;

interface OfStream {
  /** Index into REPORT_FORMS; -1 before the first report. */
  form: number;
  total: number;
  /** Row of the last report; -1 for none. */
  lastRow: number;
  /** Shapes since the last report; before the first one, since the beginning. */
  shapes: number[];
  restarts: number;
}

export interface IterationColumns {
  readonly count: number;
  readonly stream: Int32Array;
  readonly iteration: Float64Array;
  readonly line: Float64Array;
  readonly timeMs: Float64Array;
  readonly sequence: Int32Array;
  readonly sequences: readonly Int32Array[];
  readonly dropped: number;
}

export class IterationTable {
  readonly #most: number;
  readonly #index = new HashIndex(256);
  readonly sequences: Int32Array[] = [];
  readonly #of: (OfStream | undefined)[] = [];
  count = 0;
  stream = new Int32Array(256);
  iteration = new Float64Array(256);
  line = new Float64Array(256);
  timeMs = new Float64Array(256);
  sequence = new Int32Array(256);
  dropped = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Follows a stream whose reports began in an earlier part of its file, or may have. */
  follow(stream: number): OfStream {
    return (this.#of[stream] ??= {
      form: -1,
      total: 0,
      lastRow: -1,
      shapes: [],
      restarts: 0,
    });
  }

  /** A line of a stream that is followed. */
  wrote(stream: number, shape: number): void {
    const of = this.#of[stream];
    if (of) push(of.shapes, shape);
  }

  report(
    stream: number,
    form: number,
    iteration: number,
    total: number,
    line: number,
    ms: number,
  ): void {
    const of = this.follow(stream);
    if (!this.#counts(stream, of, form, total)) return;
    if (of.lastRow >= 0 && this.iteration[of.lastRow] === iteration) return;
    this.#close(of);
    if (this.count >= this.#most) this.#thin();
    of.lastRow = this.#row(stream, iteration, line, ms, OPEN);
  }

  /** The report's own shape begins the next sequence; what came before it ends the last one. */
  #close(of: OfStream): void {
    if (of.lastRow >= 0) this.sequence[of.lastRow] = this.#sequence(of.shapes);
    of.shapes.length = 0;
  }

  columns(): IterationColumns {
    const { count } = this;
    return {
      count,
      stream: this.stream.slice(0, count),
      iteration: this.iteration.slice(0, count),
      line: this.line.slice(0, count),
      timeMs: this.timeMs.slice(0, count),
      sequence: this.sequence.slice(0, count),
      sequences: this.sequences,
      dropped: this.dropped,
    };
  }

  /** Ends what is open. */
  finish(): void {
    for (const of of this.#of) if (of) this.#close(of);
  }

  /** Adds those of another file. `streamOf`, `shapeOf`: what its numbers are here. */
  absorb(from: IterationColumns, streamOf: Int32Array, shapeOf: Int32Array): void {
    const sequenceOf = from.sequences.map((sequence) => this.#sequence(mapped(sequence, shapeOf)));
    for (let row = 0; row < from.count; row++) {
      if (this.count >= this.#most) this.#thin();
      const sequence = from.sequence[row]!;
      this.#row(
        streamOf[from.stream[row]!]!,
        from.iteration[row]!,
        from.line[row]!,
        from.timeMs[row]!,
        sequence < 0 ? sequence : sequenceOf[sequence]!,
      );
    }
    this.dropped += from.dropped;
  }

  /** Whether the stream's iterations are taken from reports of this form: the best, of these the first it had. */
  #counts(stream: number, of: OfStream, form: number, total: number): boolean {
    if (of.form !== form) {
      const isBetter = of.form < 0 || REPORT_FORMS[form]!.worth > REPORT_FORMS[of.form]!.worth;
      if (!isBetter) return false;
      this.#forget(stream, of);
      of.form = form;
      of.total = total;
    }
    // A bar that counts to less is that of an evaluation.
    if (total > of.total && of.restarts < MOST_RESTARTS) {
      of.restarts++;
      this.#forget(stream, of);
      of.total = total;
    }
    return total === of.total;
  }

  #forget(stream: number, of: OfStream): void {
    if (of.lastRow < 0) return;
    of.lastRow = -1;
    this.#keep((row) => this.stream[row] !== stream);
  }

  #thin(): void {
    const before = this.count;
    const stays = withoutMiddle(before, (row) => this.stream[row]!);
    this.#keep((row) => stays[row] === 1);
    this.dropped += before - this.count;
  }

  #keep(isKept: (row: number) => boolean): void {
    let kept = 0;
    for (let row = 0; row < this.count; row++) {
      if (!isKept(row)) continue;
      const of = this.#of[this.stream[row]!];
      if (of?.lastRow === row) of.lastRow = kept;
      this.stream[kept] = this.stream[row]!;
      this.iteration[kept] = this.iteration[row]!;
      this.line[kept] = this.line[row]!;
      this.timeMs[kept] = this.timeMs[row]!;
      this.sequence[kept++] = this.sequence[row]!;
    }
    this.count = kept;
  }

  #row(stream: number, iteration: number, line: number, ms: number, sequence: number): number {
    const row = this.count++;
    if (this.count > this.stream.length) this.#room(this.count);
    this.stream[row] = stream;
    this.iteration[row] = iteration;
    this.line[row] = line;
    this.timeMs[row] = ms;
    this.sequence[row] = sequence;
    return row;
  }

  #room(rows: number): void {
    this.stream = grown(this.stream, rows);
    this.iteration = grown(this.iteration, rows);
    this.line = grown(this.line, rows);
    this.timeMs = grown(this.timeMs, rows);
    this.sequence = grown(this.sequence, rows);
  }

  #sequence(shapes: readonly number[]): number {
    let a = shapes.length;
    let b = 17;
    for (const shape of shapes) {
      a = Math.imul(a ^ shape, 0x01000193) ^ (a >>> 15);
      b = Math.imul(((b << 5) | (b >>> 27)) ^ shape, 0x9e3779b1);
    }
    const known = this.#index.find(a, b);
    if (known >= 0 || this.sequences.length >= MOST_SEQUENCES) return known;
    this.sequences.push(Int32Array.from(shapes));
    return this.#index.add(a, b);
  }
}

function push(shapes: number[], shape: number): void {
  if (shapes.length < LONGEST_SEQUENCE && shapes.at(-1) !== shape) shapes.push(shape);
}

/** In the other numbering; what became one shape counts once in a row. */
function mapped(shapes: Iterable<number>, shapeOf: Int32Array): number[] {
  const list: number[] = [];
  for (const shape of shapes) push(list, shapeOf[shape]!);
  return list;
}

/** The rows of all streams, taken apart. */
export function iterationsOf(table: IterationTable): LogIterations[] {
  const { count, stream, iteration, line, timeMs, sequence } = table;
  // Arrays by stream: a long job has millions of rows.
  const rows: number[] = [];
  for (let row = 0; row < count; row++) rows[stream[row]!] = (rows[stream[row]!] ?? 0) + 1;
  const of: (LogIterations & { next: number })[] = [];
  rows.forEach((length, key) => {
    of[key] = {
      stream: key,
      iteration: new Float64Array(length),
      line: new Uint32Array(length),
      timeMs: new Float64Array(length),
      sequence: new Int32Array(length),
      next: 0,
    };
  });
  for (let row = 0; row < count; row++) {
    const to = of[stream[row]!]!;
    const at = to.next++;
    to.iteration[at] = iteration[row]!;
    to.line[at] = line[row]!;
    to.timeMs[at] = timeMs[row]!;
    to.sequence[at] = sequence[row]!;
  }
  return of.filter(Boolean).map(({ next: _next, ...iterations }) => iterations);
}
