/** The shapes: messages without their prefixes that differ in numbers only. */
import type { LogLevel } from "../../model/log-digest.ts";
import { grown } from "../grown.ts";
import { HashIndex } from "./hash-index.ts";

export const MOST_TEXT = 2000;
const SHORT_TEXT = 200;

export const LEVELS: readonly (LogLevel | null)[] = [
  null,
  "fatal",
  "error",
  "warning",
  "info",
  "debug",
];

export interface ShapeColumns {
  /** How many numbers for shapes are in use, and those that have lines. */
  readonly size: number;
  readonly id: Int32Array;
  /** The hashes of the form, and of a coarser one for when there are too many. */
  readonly a: Int32Array;
  readonly b: Int32Array;
  readonly coarse: Int32Array;
  readonly text: readonly string[];
  readonly level: Uint8Array;
  readonly file: Int32Array;
  readonly line: Float64Array;
  readonly lines: Float64Array;
  readonly parts: Float64Array;
  readonly isTelling: Uint8Array;
}

export class ShapeTable {
  readonly #index = new HashIndex(1024);
  readonly #mostChars: number;
  chars = 0;
  readonly text: string[] = [];
  coarse = new Int32Array(1024);
  level = new Uint8Array(1024);
  file = new Int32Array(1024);
  line = new Float64Array(1024);
  /** How many lines there are of it, and how many of these were parts of a block. */
  lines = new Float64Array(1024);
  parts = new Float64Array(1024);
  isTelling = new Uint8Array(1024);

  /** Once the texts are this long in all, further ones are cut short: no log fills the memory with them. */
  constructor(mostChars = Number.POSITIVE_INFINITY) {
    this.#mostChars = mostChars;
  }

  get size(): number {
    return this.#index.size;
  }

  count(shape: number, file: number, line: number, isPart: boolean): void {
    if (this.lines[shape]!++ === 0) {
      this.file[shape] = file;
      this.line[shape] = line;
    }
    if (isPart) this.parts[shape]!++;
  }

  find(a: number, b: number): number {
    return this.#index.find(a, b);
  }

  add(a: number, b: number, text: string): number {
    const shape = this.#index.add(a, b);
    const { size } = this.#index;
    this.coarse = grown(this.coarse, size);
    this.level = grown(this.level, size);
    this.file = grown(this.file, size);
    this.line = grown(this.line, size);
    this.lines = grown(this.lines, size);
    this.parts = grown(this.parts, size);
    this.isTelling = grown(this.isTelling, size);
    const most = this.chars > this.#mostChars ? SHORT_TEXT : MOST_TEXT;
    const cut = text.length > most ? text.slice(0, most) : text;
    this.chars += cut.length;
    this.text.push(cut);
    return shape;
  }

  columns(): ShapeColumns {
    const { size } = this;
    const id = new Int32Array(size).map((_, shape) => shape).filter((i) => this.lines[i]! > 0);
    return {
      size,
      id,
      a: id.map((i) => this.#index.a[i]!),
      b: id.map((i) => this.#index.b[i]!),
      coarse: id.map((i) => this.coarse[i]!),
      text: Array.from(id, (i) => this.text[i]!),
      level: Uint8Array.from(id, (i) => this.level[i]!),
      file: id.map((i) => this.file[i]!),
      line: Float64Array.from(id, (i) => this.line[i]!),
      lines: Float64Array.from(id, (i) => this.lines[i]!),
      parts: Float64Array.from(id, (i) => this.parts[i]!),
      isTelling: Uint8Array.from(id, (i) => this.isTelling[i]!),
    };
  }
}
