/**
 * The lines that may tell of a failure: of every cell (a shape in a stream) the first and the last. Where there are too
 * many in all, fewer are kept of each cell; a line that is rare goes last.
 */
export const KEPT_TEXT = 1000;
const FIRST = 24;
const LAST = 8;

interface Kept {
  line: number;
  timeMs: number;
  text: string;
}

interface OfCell {
  readonly first: Kept[];
  readonly last: Kept[];
}

export interface KeptColumns {
  readonly cell: Int32Array;
  readonly line: Float64Array;
  readonly timeMs: Float64Array;
  readonly text: readonly string[];
}

export class KeptLines {
  readonly #most: number;
  readonly #mostChars: number;
  readonly #cells = new Map<number, OfCell>();
  #mostFirst = FIRST;
  #mostLast = LAST;
  #count = 0;
  #chars = 0;

  constructor(most: number, mostChars: number) {
    this.#most = most;
    this.#mostChars = mostChars;
  }

  /** Whether fewer than usual are kept of each. */
  get isThinned(): boolean {
    return this.#mostFirst < FIRST;
  }

  /** Lines of a cell must come in order. */
  add(cell: number, line: number, timeMs: number, text: string): void {
    let of = this.#cells.get(cell);
    if (!of) this.#cells.set(cell, (of = { first: [], last: [] }));
    this.#chars += text.length;
    if (of.first.length < this.#mostFirst && of.last.length === 0) {
      of.first.push({ line, timeMs, text });
      this.#count++;
    } else if (of.last.length < this.#mostLast) {
      of.last.push({ line, timeMs, text });
      this.#count++;
    } else if (this.#mostLast > 0) {
      const oldest = of.last.shift()!;
      this.#chars -= oldest.text.length;
      oldest.line = line;
      oldest.timeMs = timeMs;
      oldest.text = text;
      of.last.push(oldest);
    } else this.#chars -= text.length;
    if (this.#count > this.#most || this.#chars > this.#mostChars) this.#thin();
  }

  columns(): KeptColumns {
    const cell = new Int32Array(this.#count);
    const line = new Float64Array(this.#count);
    const timeMs = new Float64Array(this.#count);
    const text: string[] = [];
    for (const [of, { first, last }] of this.#cells) {
      for (const list of [first, last]) {
        for (const kept of list) {
          const row = text.push(kept.text) - 1;
          cell[row] = of;
          line[row] = kept.line;
          timeMs[row] = kept.timeMs;
        }
      }
    }
    return { cell, line, timeMs, text };
  }

  #thin(): void {
    while (this.#count > this.#most / 2 || this.#chars > this.#mostChars / 2) {
      if (this.#mostFirst === 1 && this.#mostLast === 0) break;
      if (this.#mostFirst === 1) this.#mostLast = 0;
      this.#mostFirst = Math.max(1, this.#mostFirst >> 1);
      this.#mostLast >>= 1;
      this.#cut();
    }
    // One of each and still too many: there are more cells than may be. The newest make room.
    if (this.#count > this.#most || this.#chars > this.#mostChars) {
      for (const cell of [...this.#cells.keys()].slice(this.#most >> 1)) this.#cells.delete(cell);
      this.#cut();
    }
  }

  #cut(): void {
    this.#count = this.#chars = 0;
    for (const { first, last } of this.#cells.values()) {
      if (first.length > this.#mostFirst) first.length = this.#mostFirst;
      last.splice(0, Math.max(0, last.length - this.#mostLast));
      this.#count += first.length + last.length;
      for (const { text } of first) this.#chars += text.length;
      for (const { text } of last) this.#chars += text.length;
    }
  }
}
