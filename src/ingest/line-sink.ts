import { LineSplitter } from "../base/lines.ts";
import type { Reading } from "../model/reading.ts";
import type { Sink } from "./reader.ts";

/** A file that is read line by line. */
export abstract class LineSink implements Sink {
  readonly file: string;
  readonly #lines: LineSplitter;

  constructor(file: string, mostLineBytes?: number) {
    this.file = file;
    this.#lines = new LineSplitter((text, no) => this.line(text, no), mostLineBytes);
  }

  push(chunk: Uint8Array): void {
    this.#lines.push(chunk);
  }

  end(): Reading {
    this.#lines.end();
    return this.finish();
  }

  /** `no` from 1. */
  abstract line(text: string, no: number): void;

  /** Behind the last line. */
  abstract finish(): Reading;
}
