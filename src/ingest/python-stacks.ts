/**
 * Python stacks of hung processes: faulthandler text (./faulthandler.ts), py-spy text and py-spy JSON
 * (./py-spy.ts), distinguished by content. A file may hold several processes and several dumps.
 */
import { LineSplitter } from "../base/lines.ts";
import type { LogFailure } from "../model/log.ts";
import type { Defect, Reading } from "../model/reading.ts";
import type { StackDump } from "../model/stacks.ts";
import { FaulthandlerLines, isFaulthandlerHeader } from "./faulthandler.ts";
import { JsonObjects } from "./json-objects.ts";
import { isPySpyThread, PySpyStacks } from "./py-spy.ts";
import { rankFromName } from "./reader.ts";
import type { Head, Reader, Sink } from "./reader.ts";

const FORMAT = "python-stacks";
/** Lines of another kind that may stand before the first stack ("Timeout (0:05:00)!", a title). */
const PREAMBLE_LINES = 12;
const SPACE = /^\s$/;

const RAISED = /^Traceback \(most recent call last\):/m;

export const pythonStacks: Reader = {
  format: FORMAT,
  sniff(head: Head): boolean {
    const text = head.text;
    if (/^\s*\[\s*\{/.test(text)) return text.includes('"frames"') && text.includes('"thread_');
    // Only who lives on raises: a log.
    if (RAISED.test(text)) return false;
    const lines = text.slice(0, 8192).split("\n", PREAMBLE_LINES);
    const first = lines.findIndex(
      (l) => isFaulthandlerHeader(l.trimEnd()) || isPySpyThread(l.trimEnd()),
    );
    // A training log may carry a dump too; there, other lines stand before it.
    return first >= 0 && lines.slice(0, first).every(isPreamble);
  },
  open(file: string): Sink {
    return new StackSink(file);
  },
};

function isPreamble(line: string): boolean {
  return (
    line.trim() === "" ||
    /^(Process \d+: |Python v\d|Timeout \(|Fatal Python error: |Python runtime state: )/.test(
      line,
    ) ||
    (line.length < 60 && !/\d\d:\d\d:\d\d|\[rank\d/.test(line))
  );
}

class StackSink implements Sink {
  readonly #file: string;
  readonly #faulthandler = new FaulthandlerLines();
  readonly #pySpy = new PySpyStacks();
  readonly #lines: LineSplitter;
  readonly #json: JsonObjects;
  #mode: "unknown" | "text" | "json" = "unknown";
  #lastByte = 10;
  #foreign = 0;
  #badObjects = 0;

  constructor(file: string) {
    this.#file = file;
    this.#lines = new LineSplitter((text, no) => this.#line(text, no));
    this.#json = new JsonObjects(1, (text, line) => this.#object(text, line));
  }

  push(chunk: Uint8Array): void {
    if (chunk.length === 0) return;
    this.#lastByte = chunk[chunk.length - 1] as number;
    if (this.#mode === "unknown") {
      const first = chunk.find((c) => !SPACE.test(String.fromCharCode(c)));
      if (first !== undefined) this.#mode = first === 91 ? "json" : "text";
    }
    // Until the first character decides, both count the blank lines.
    if (this.#mode !== "text") this.#json.push(chunk);
    if (this.#mode !== "json") this.#lines.push(chunk);
  }

  end(): Reading {
    this.#lines.end();
    const defects: Defect[] = [];
    const say = (what: string): void => void defects.push({ file: this.#file, what });
    const processes = this.#pySpy.end();
    const own = this.#faulthandler.end(this.#lastByte !== 10);
    if (own.threads.length > 0) processes.push({ pid: null, threads: own.threads });
    if (own.incomplete) {
      const kept = this.#faulthandler.dumps > 1 ? "; kept the one before it" : "";
      say(`the last stack dump is cut off${kept}`);
    }
    if (this.#badObjects > 0) say(`${this.#badObjects} JSON objects are not stacks of a thread`);
    if (this.#mode === "json" && this.#json.unfinished) say("the JSON ends in the middle");
    if (this.#foreign > 0) say(`${this.#foreign} lines do not belong to a stack dump`);
    if (processes.length === 0) say("holds no Python stack");
    const stacks: StackDump[] = processes.map((p) => ({ file: this.#file, ...p }));
    const rank = rankOfFile(this.#file, stacks);
    return {
      file: this.#file,
      format: FORMAT,
      rank,
      records: stacks.reduce((n, s) => n + s.threads.length, 0),
      defects,
      stacks,
      failures: this.#faulthandler.fatal.map((f): LogFailure => {
        const segfault = !/Abort/.test(f.text);
        return {
          rank,
          file: this.#file,
          line: f.line,
          timeMs: null,
          // abort() is how PyTorch's watchdog and assertions in C++ end a process; who was first is not said here.
          role: segfault ? "own" : "echo",
          cause: segfault ? "user-program" : "unknown",
          signature: segfault ? "python.fatal" : "python.fatal-abort",
          text: f.text.slice(0, 400),
          at: null,
        };
      }),
    };
  }

  #line(text: string, no: number): void {
    if (text === "") return;
    if (!this.#faulthandler.line(text, no) && !this.#pySpy.line(text, no)) this.#foreign++;
  }

  #object(text: string, line: number): void {
    try {
      if (this.#pySpy.json(JSON.parse(text), line)) return;
    } catch {
      // Counted below, as every object that is not a thread.
    }
    this.#badObjects++;
  }
}

/** The number in a stack file's name is as often a pid as a rank. */
function rankOfFile(file: string, stacks: readonly StackDump[]): number | null {
  const named = rankFromName(file);
  if (/rank[-_.]?\d/i.test(file.slice(file.lastIndexOf("/") + 1))) return named;
  if (named === null || named > 99_999 || stacks.length > 1) return null;
  return stacks.some((s) => s.pid === named) ? null : named;
}
