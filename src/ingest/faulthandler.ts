/**
 * Reads the stacks that Python's faulthandler writes (signal handler, dump_traceback_later, fatal errors).
 * Defined in CPython: Python/traceback.c (dump_traceback, _Py_DumpTracebackThreads) and Modules/faulthandler.c.
 */
import type { Frame } from "../model/operators.ts";
import type { ThreadStack } from "../model/stacks.ts";

/** Python 3.14 puts the thread's name between id and colon. */
const HEADER =
  /^(Current thread|Thread) (0x[0-9a-fA-F]+)(?: \[([^\]]*)\])? \(most recent call first\):\s*$/;
const FRAME = /^ {2}File "(.*)", line (\d+|\?\?\?) in (.*)$/;
const FATAL = /^Fatal Python error: (.+)$/;

export function isFaulthandlerHeader(line: string): boolean {
  return line.includes("(most recent call first):") && HEADER.test(line);
}

interface OpenThread {
  readonly id: string;
  readonly name: string;
  readonly current: boolean;
  readonly line: number;
  readonly frames: Frame[];
  /** "<no Python frame>" or a frame was seen. */
  filled: boolean;
}

interface Dump {
  readonly threads: OpenThread[];
  broken: boolean;
}

interface FatalError {
  readonly text: string;
  readonly line: number;
}

export class FaulthandlerLines {
  #previous: Dump | null = null;
  #dump: Dump | null = null;
  #dumps = 0;
  readonly fatal: FatalError[] = [];

  /** How many dumps the file holds. */
  get dumps(): number {
    return this.#dumps;
  }

  /** Whether the line belongs to this format. */
  line(text: string, no: number): boolean {
    const header = text.includes("(most recent call first):") ? HEADER.exec(text) : null;
    if (header) {
      this.#open(header, no);
      return true;
    }
    const thread = this.#dump?.threads.at(-1);
    if (text.startsWith("  ")) {
      if (!this.#dump || !thread) return false;
      const frame = FRAME.exec(text);
      if (frame) {
        thread.filled = true;
        thread.frames.push({
          file: frame[1] as string,
          line: frame[2] === "???" ? 0 : Number(frame[2]),
          func: frame[3] as string,
        });
      } else if (text.startsWith("  <")) thread.filled = true;
      else if (text.trim() !== "..." && text.startsWith("  File")) this.#dump.broken = true;
      return true;
    }
    if (text.startsWith("Fatal Python error: ")) {
      const fatal = FATAL.exec(text);
      if (fatal && this.fatal.length < 100) this.fatal.push({ text, line: no });
      this.#startDump();
      return true;
    }
    if (text.startsWith("Timeout (")) {
      this.#startDump();
      return true;
    }
    return false;
  }

  /** The last complete dump; with `cutOff` (no newline at the end of the file) the one before is preferred. */
  end(cutOff: boolean): { threads: ThreadStack[]; incomplete: boolean } {
    const last = this.#dump;
    const before = this.#previous;
    if (!last || last.threads.length === 0) return { threads: stacks(before), incomplete: false };
    const incomplete = cutOff || !complete(last, before);
    if (incomplete && before && complete(before, null))
      return { threads: stacks(before), incomplete };
    return { threads: stacks(last), incomplete };
  }

  #open(header: RegExpExecArray, no: number): void {
    const id = header[2] as string;
    // Dumps follow each other without a mark; a thread that comes again belongs to the next one.
    if (!this.#dump || this.#dump.threads.some((t) => t.id === id)) this.#startDump();
    const dump = this.#dump;
    if (!dump) return;
    if (dump.threads.length === 0) this.#dumps++;
    dump.threads.push({
      id,
      name: header[3] ?? "",
      current: header[1] === "Current thread",
      line: no,
      frames: [],
      filled: false,
    });
  }

  #startDump(): void {
    if (this.#dump && this.#dump.threads.length > 0) {
      if (complete(this.#dump, this.#previous)) this.#previous = this.#dump;
    }
    this.#dump = { threads: [], broken: false };
  }
}

/** A cut dump lacks its last thread, which is the one that matters: the current (main) one. */
function complete(dump: Dump, before: Dump | null): boolean {
  if (dump.broken || dump.threads.length === 0 || dump.threads.some((t) => !t.filled)) return false;
  return !before?.threads.some((t) => t.current) || dump.threads.some((t) => t.current);
}

function stacks(dump: Dump | null): ThreadStack[] {
  if (!dump) return [];
  // Without a current thread (dump_traceback_later) the main thread is the oldest, and CPython lists that last.
  const marked = dump.threads.some((t) => t.current);
  const named = dump.threads.some((t) => t.name === "MainThread");
  return dump.threads.map((t, i) => ({
    name: t.name || t.id,
    isMain: marked ? t.current : named ? t.name === "MainThread" : i === dump.threads.length - 1,
    status: "",
    frames: t.frames,
    line: t.line,
  }));
}
