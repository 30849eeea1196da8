/** Which stream wrote which shape how often, first and last: a row each. */
import { grown } from "../grown.ts";
import { HashIndex } from "./hash-index.ts";

export interface CellColumns {
  readonly count: number;
  readonly stream: Int32Array;
  readonly shape: Int32Array;
  readonly lines: Float64Array;
  readonly firstLine: Float64Array;
  readonly lastLine: Float64Array;
  readonly firstMs: Float64Array;
  readonly lastMs: Float64Array;
}

export class CellTable {
  readonly #index = new HashIndex(1024);
  readonly #most: number;
  lines = new Float64Array(1024);
  firstLine = new Float64Array(1024);
  lastLine = new Float64Array(1024);
  firstMs = new Float64Array(1024);
  lastMs = new Float64Array(1024);
  /** Lines whose cell had no room. */
  dropped = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return this.#index.size;
  }

  streamOf(cell: number): number {
    return this.#index.a[cell]!;
  }

  shapeOf(cell: number): number {
    return this.#index.b[cell]!;
  }

  /** Counts a line and returns its cell, -1 where there are too many. */
  add(stream: number, shape: number, line: number, ms: number): number {
    const cell = this.#index.find(stream, shape);
    if (cell < 0) return this.merge(stream, shape, 1, line, line, ms, ms);
    this.lines[cell]!++;
    this.lastLine[cell] = line;
    if (ms === ms) {
      this.lastMs[cell] = ms;
      if (!(this.firstMs[cell]! <= ms)) this.firstMs[cell] = ms;
    }
    return cell;
  }

  /** Adds lines that come after those that are there. */
  merge(
    stream: number,
    shape: number,
    lines: number,
    firstLine: number,
    lastLine: number,
    firstMs: number,
    lastMs: number,
  ): number {
    let cell = this.#index.find(stream, shape);
    if (cell < 0) {
      if (this.#index.size >= this.#most) {
        this.dropped += lines;
        return -1;
      }
      cell = this.#index.add(stream, shape);
      this.#room(this.#index.size);
      this.firstLine[cell] = firstLine;
      this.firstMs[cell] = this.lastMs[cell] = NaN;
    }
    this.lines[cell]! += lines;
    this.lastLine[cell] = lastLine;
    if (!(this.firstMs[cell]! <= firstMs) && firstMs === firstMs) this.firstMs[cell] = firstMs;
    if (lastMs === lastMs) this.lastMs[cell] = lastMs;
    return cell;
  }

  columns(): CellColumns {
    const { size } = this;
    return {
      count: size,
      stream: this.#index.a.slice(0, size),
      shape: this.#index.b.slice(0, size),
      lines: this.lines.slice(0, size),
      firstLine: this.firstLine.slice(0, size),
      lastLine: this.lastLine.slice(0, size),
      firstMs: this.firstMs.slice(0, size),
      lastMs: this.lastMs.slice(0, size),
    };
  }

  #room(size: number): void {
    this.lines = grown(this.lines, size);
    this.firstLine = grown(this.firstLine, size);
    this.lastLine = grown(this.lastLine, size);
    this.firstMs = grown(this.firstMs, size);
    this.lastMs = grown(this.lastMs, size);
  }
}
