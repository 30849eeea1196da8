import type { Reading } from "../model/reading.ts";
import type { FormReader } from "./logs/form-reader.ts";
import type { PartialDigest } from "./logs/partial-digest.ts";
import { RING_NAME } from "./probe-ring/layout.ts";

/** The beginning of a file, enough to recognise its format. */
export interface Head {
  /** Base name of the file, with compression endings removed. */
  readonly name: string;
  readonly bytes: Uint8Array;
  /** The same bytes as text (bytes above 127 are kept one to one, so that patterns stay cheap). */
  readonly text: string;
  /** Whether somebody named the file, so that its name does not decide what it is. */
  readonly isGiven?: boolean;
}

/** Takes a file's bytes as they come. Never throws for bad data: what is wrong goes into defects. */
export interface Sink {
  push(chunk: Uint8Array): void;
  end(): Reading;
  /** After the end, where the file is a log: all that its lines say. */
  readonly digest?: PartialDigest | null;
}

/** What a log's reader may know beforehand. */
export interface LogOpening {
  /** Forms of lines that were read before; one log at a time may use them. */
  readonly forms?: () => FormReader;
  /** When the file was last written to. */
  readonly latestMs?: number;
}

/** One file format. */
export interface Reader {
  readonly format: string;
  /** Whether its sinks digest lines: one of them at a time. */
  readonly isLog?: true;
  /** Whether the file is of this format. The first reader that says yes gets it. */
  sniff(head: Head): boolean;
  open(file: string, known?: LogOpening): Sink;
}

/** How many bytes a sniffer may see. */
export const HEAD_BYTES = 65536;

/** "dumps/rank_12.log" → 12: the last number of a file's name, the way ranks are put there everywhere. */
export function rankFromName(file: string): number | null {
  const name = file.slice(file.lastIndexOf("/") + 1);
  // What lies beside a probe's ring: the number behind the rank is the process.
  const ring = RING_NAME.exec(name);
  if (ring) return ring[1] === "x" ? null : Number(ring[1]);
  const marked = /rank[-_.]?(\d{1,6})(?!\d)/i.exec(name);
  if (marked) return Number(marked[1]);
  const last = /(\d{1,6})(?!.*\d)/.exec(name.replace(/\.(json|pkl|pickle|txt|log|out|err)$/i, ""));
  return last ? Number(last[1]) : null;
}
