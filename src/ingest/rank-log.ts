/**
 * Any text log of a training job: a rank's own, or that of many ranks in one file. One scanner goes through its lines
 * (./logs/scanner.ts) and digests them; the lines that tell of single ranks it hands on: what failed, what PyTorch's
 * watchdog says, how far the ranks got and how long iterations took, and torchrun's closing report. Which line formats
 * are read and where they are defined is said in the parts: ./rank-log/.
 */
import type { Reading } from "../model/reading.ts";
import { openLog } from "./log-engine.ts";
import type { PartialDigest } from "./logs/partial-digest.ts";
import type { LogEngine } from "./logs/scanner.ts";
import { LogLines } from "./rank-log/log-lines.ts";
import { buildReading } from "./rank-log/reading.ts";
import { isText, looksLikeLog } from "./rank-log/sniff.ts";
import type { Head, LogOpening, Reader, Sink } from "./reader.ts";

export const rankLog: Reader = {
  format: "rank-log",
  isLog: true,
  sniff: (head: Head): boolean => looksLikeLog(head),
  open: (file: string, known?: LogOpening): Sink => new RankLogSink(file, null, known),
};

/** The same with the user's own pattern for iteration lines, which may be all that tells that it is a log. */
export function rankLogWith(pattern: RegExp): Reader {
  return {
    format: rankLog.format,
    isLog: true,
    // Its lines may come late in the file: a user who gives a pattern means the files named with it.
    sniff: (head: Head): boolean => rankLog.sniff(head) || isText(head.text),
    open: (file: string, known?: LogOpening): Sink => new RankLogSink(file, pattern, known),
  };
}

class RankLogSink implements Sink {
  readonly #file: string;
  readonly #log: LogLines;
  readonly #engine: LogEngine;
  digest: PartialDigest | null = null;

  constructor(file: string, pattern: RegExp | null, known?: LogOpening) {
    this.#file = file;
    this.#log = new LogLines(pattern);
    this.#engine = openLog(file, (text, no, noted) => this.#log.line(text, no, noted), known);
  }

  push(chunk: Uint8Array): void {
    this.#engine.push(chunk);
  }

  end(): Reading {
    this.#engine.end();
    this.digest = this.#engine.digest();
    const { lines } = this.digest.parts[0]!;
    return buildReading({ file: this.#file, lines, ...this.#log.end() });
  }
}
