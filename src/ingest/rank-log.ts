/**
 * Any text log of a training job: a rank's own, or that of many ranks in one file. Looks for what failed, what
 * PyTorch's watchdog says, how far the ranks got and how long iterations took, and torchrun's closing report. Which
 * line formats are read and where they are defined is said in the parts: ./rank-log/.
 */
import { LineSplitter } from "../base/lines.ts";
import type { Reading } from "../model/reading.ts";
import { LogLines } from "./rank-log/log-lines.ts";
import { stripAnsi } from "./rank-log/prefixes.ts";
import { buildReading } from "./rank-log/reading.ts";
import { isText, looksLikeLog } from "./rank-log/sniff.ts";
import type { Head, Reader, Sink } from "./reader.ts";

/** tqdm writes an hour of progress into one line; what went wrong stands at its end. */
const MAX_LINE_BYTES = 1 << 18;
const MAX_LINE_CHARS = 8192;
const RETURN = 13;
const ESCAPE = 27;

export const rankLog: Reader = {
  format: "rank-log",
  sniff: (head: Head): boolean => looksLikeLog(head.text, head.name),
  open: (file: string): Sink => new RankLogSink(file, null),
};

/** The same with the user's own pattern for iteration lines, which may be all that tells that it is a log. */
export function rankLogWith(pattern: RegExp): Reader {
  return {
    format: rankLog.format,
    // Its lines may come late in the file: whoever gives a pattern means the files that he names.
    sniff: (head: Head): boolean => rankLog.sniff(head) || isText(head.text),
    open: (file: string): Sink => new RankLogSink(file, pattern),
  };
}

class RankLogSink implements Sink {
  readonly #file: string;
  readonly #log: LogLines;
  readonly #lines: LineSplitter;
  #hasEscapes = false;
  #hasReturns = false;

  constructor(file: string, pattern: RegExp | null) {
    this.#file = file;
    this.#log = new LogLines(pattern);
    this.#lines = new LineSplitter((text, no) => this.#line(text, no), MAX_LINE_BYTES);
  }

  push(chunk: Uint8Array): void {
    // Asked of whole chunks: most logs have neither, and to ask every line would cost as much as the rest.
    this.#hasEscapes ||= chunk.includes(ESCAPE);
    this.#hasReturns ||= chunk.includes(RETURN);
    this.#lines.push(chunk);
  }

  end(): Reading {
    this.#lines.end();
    return buildReading({ file: this.#file, lines: this.#lines.lines, ...this.#log.end() });
  }

  #line(text: string, no: number): void {
    if (!this.#hasReturns || !text.includes("\r")) {
      this.#part(text, no);
      return;
    }
    for (const part of text.split("\r")) if (part !== "") this.#part(part, no);
  }

  #part(text: string, no: number): void {
    const short = text.length > MAX_LINE_CHARS ? text.slice(0, MAX_LINE_CHARS) : text;
    this.#log.line(this.#hasEscapes ? stripAnsi(short) : short, no);
  }
}
