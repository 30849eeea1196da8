/**
 * What is known of a form: its shape, and where host, rank, writer, time and number stand. Places are kept relative to
 * the line's numbers, whose widths are all that differs between lines of one form.
 */
import { grown } from "../grown.ts";
import { HashIndex } from "./hash-index.ts";
import { runFrom, runTo } from "./scan-bytes.ts";

export const CONTENT = 0;
export const STAMP = 1;
export const HOST_FROM = 2;
export const HOST_TO = 3;
export const RANK_FROM = 4;
export const RANK_TO = 5;
export const WRITER_FROM = 6;
export const WRITER_TO = 7;
export const NUMBER = 8;
export const TOTAL = 9;
export const PLACES = 10;

/** The line names its writer. */
export const NAMED = 1;
/** It has a level of its own. */
export const LEVELLED = 2;
export const TELLING = 4;
/** A place cannot be kept relative to numbers: the head is read anew every time. */
export const UNSTEADY = 8;
export const HAS_HOST = 16;
export const HAS_RANK = 32;
export const HAS_WRITER = 64;
export const HAS_TOTAL = 128;

export const NO_REPORT = 255;

/** Anchors: the line's start, the end of a number, or (from here on) the start of one. */
const AT_START = -1;
const FROM_START = 64;

export class FormTable {
  readonly #index = new HashIndex(1024);
  shape = new Int32Array(1024);
  kind = new Uint8Array(1024);
  stamp = new Uint8Array(1024);
  flags = new Uint8Array(1024);
  report = new Uint8Array(1024);
  /** 1 where the readers that follow single ranks want to see lines of it. */
  isNoted = new Uint8Array(1024);
  #anchors = new Int16Array(1024 * PLACES * 2);

  get size(): number {
    return this.#index.size;
  }

  find(a: number, b: number): number {
    return this.#index.find(a, b);
  }

  add(a: number, b: number): number {
    const form = this.#index.add(a, b);
    const { size } = this.#index;
    this.shape = grown(this.shape, size);
    this.kind = grown(this.kind, size);
    this.stamp = grown(this.stamp, size);
    this.flags = grown(this.flags, size);
    this.report = grown(this.report, size);
    this.isNoted = grown(this.isNoted, size);
    this.#anchors = grown(this.#anchors, size * PLACES * 2);
    return form;
  }

  /** Remembers a place of the line that was scanned last; false where it moves with more than the numbers. */
  anchor(
    form: number,
    which: number,
    at: number,
    text: string,
    start: number,
    runs: number,
  ): boolean {
    const slot = (form * PLACES + which) * 2;
    if (at < 0) return true;
    let before = -1;
    while (before + 1 < runs && runFrom[before + 1]! <= at) before++;
    let code = AT_START;
    let offset = at - start;
    if (before >= 0) {
      if (at < runTo[before]!) {
        // Inside a number, as the rank in "[1,3]<stdout>": the first part's width differs.
        if (at !== runFrom[before]) return false;
        code = FROM_START + before;
        offset = 0;
      } else {
        code = before;
        offset = at - runTo[before]!;
      }
    }
    if (hasPadding(text, at - offset - start, at - start)) {
      // Padding has the width that a number leaves it; the next number may stand closer.
      const next = before + 1;
      if (next >= runs || hasPadding(text, at - start, runFrom[next]! - start)) return false;
      code = FROM_START + next;
      offset = at - runFrom[next]!;
    }
    this.#anchors[slot] = code;
    this.#anchors[slot + 1] = offset;
    return true;
  }

  /** The place in the line that was scanned last. */
  place(form: number, which: number, start: number): number {
    const slot = (form * PLACES + which) * 2;
    const code = this.#anchors[slot]!;
    const offset = this.#anchors[slot + 1]!;
    if (code < 0) return start + offset;
    return (code < FROM_START ? runTo[code]! : runFrom[code - FROM_START]!) + offset;
  }
}

/** Two blanks in a row, also across the edges. */
function hasPadding(text: string, from: number, to: number): boolean {
  for (let i = from; i < to; i++) {
    const code = text.charCodeAt(i);
    if ((code === 32 || code === 9) && i + 1 < text.length) {
      const next = text.charCodeAt(i + 1);
      if (next === 32 || next === 9) return true;
    } else if (code > 126) return true;
  }
  return false;
}
