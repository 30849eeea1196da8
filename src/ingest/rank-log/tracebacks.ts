/**
 * Collects one writer's Python tracebacks. Defined in CPython: Lib/traceback.py, Python/pythonrun.c. Chained
 * tracebacks are one failure, that of the exception at the start of the chain; an exception that a DataLoader
 * worker handed over is the one inside ("Original Traceback").
 */
import { PYTHON_EXCEPTION, type FailureClass } from "../failure-class.ts";
import { classifyException } from "./classify.ts";

const HEADER = "Traceback (most recent call last)";
const FRAME = /^\s*File "([^"\n]{1,1000})", line (\d{1,9})(?:, in (.{1,300}))?/;
/** The class begins with a capital, but for a few old ones in the standard library. */
const EXCEPTION =
  /^((?:[A-Za-z_]\w{0,80}\.){0,12}(?:[A-Z_]\w{1,100}|(?<=\.)(?:error|timeout|gaierror|herror)))(?::(?: |$)|$)/;
const LONE_EXCEPTION =
  /^(?:[A-Za-z_]\w{0,80}\.){0,12}[A-Z]\w{1,100}(?:Error|Exception|Interrupt): ?\S/;
const NOT_AN_EXCEPTION =
  /^(?:INFO|WARNING|WARN|ERROR|DEBUG|CRITICAL|FATAL|TRACE|NOTE|Exception|Error|nccl\w+)\b/;
const CHAINED =
  /^(?:During handling of the above exception|The above exception was the direct cause)/;
/** Not the user's code: installed packages, the standard library, frozen and generated modules. */
const LIBRARY =
  /[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python|^<|^(?:\/usr\/lib|\/usr\/local\/lib)\/python/;
const MESSAGE_LINES = 8;
const MAX_FOREIGN_LINES = 60;

export interface Raised {
  readonly line: number;
  readonly text: string;
  readonly at: string | null;
  readonly class: FailureClass;
}

interface Exception {
  readonly line: number;
  readonly text: string;
  readonly more: string[];
  readonly at: string | null;
  /** The worker's own exception, inside the one that passes it on. */
  readonly isOriginal: boolean;
}

const IDLE = 0;
const FRAMES = 1;
const MESSAGE = 2;
const BETWEEN = 3;

export class Tracebacks {
  readonly #emit: (raised: Raised) => void;
  #state = IDLE;
  #chain: Exception[] = [];
  #at: string | null = null;
  #frames = 0;
  #blanks = 0;
  #foreign = 0;
  /** Line of "Exception ignored in …": what follows at once is noise of a process that is leaving. */
  #ignoredLine = Number.NEGATIVE_INFINITY;
  #ignored = false;
  #original = false;

  constructor(emit: (raised: Raised) => void) {
    this.#emit = emit;
  }

  get active(): boolean {
    return this.#state !== IDLE;
  }

  /** Whether the line belongs to a traceback. `fresh`: it begins with a time or a log level of its own. */
  line(body: string, no: number, fresh: boolean): boolean {
    if (body.includes(HEADER)) {
      this.#begin(body.includes("Original Traceback"), no);
      return true;
    }
    if (this.#state === IDLE) return this.#start(body, no);
    if (this.#state === FRAMES) return this.#frame(body, no, fresh);
    return this.#after(body, no, fresh);
  }

  blank(): void {
    if (this.#state === IDLE) return;
    // A blank line stands between the links of a chain; after two nothing more comes.
    if (++this.#blanks > 2) this.finish();
  }

  /** Hands over what has been collected. */
  finish(): void {
    const chain = this.#chain;
    this.#chain = [];
    this.#state = IDLE;
    this.#frames = 0;
    this.#at = null;
    const ignored = this.#ignored;
    this.#ignored = this.#original = false;
    if (chain.length === 0 || ignored) return;
    const classes = chain.map((e) => classifyException(e.text, e.more));
    const original = chain.findIndex((e) => e.isOriginal);
    const firstOwn = classes.findIndex((c) => c.role === "own");
    const chosen = original >= 0 ? original : Math.max(0, firstOwn);
    const exception = chain[chosen] as Exception;
    const found = classes[chosen] as FailureClass;
    this.#emit({
      line: exception.line,
      text: telling(exception, found),
      at: exception.at ?? chain.find((e) => e.at !== null)?.at ?? null,
      class: found,
    });
  }

  #begin(original: boolean, no: number): void {
    if (this.#state === MESSAGE && !original) this.finish();
    if (this.#state === IDLE) this.#ignored = no - this.#ignoredLine <= 3;
    this.#state = FRAMES;
    this.#frames = 0;
    this.#at = null;
    this.#blanks = this.#foreign = 0;
    this.#original = original;
  }

  #start(body: string, no: number): boolean {
    if (body.startsWith("Exception ignored in")) {
      this.#ignoredLine = no;
      return true;
    }
    if (body.includes('File "') && FRAME.test(body)) {
      // The header is missing: cut off, or swallowed by a progress bar.
      this.#begin(false, no);
      return this.#frame(body, no, false);
    }
    if (!LONE_EXCEPTION.test(body) || NOT_AN_EXCEPTION.test(body)) return false;
    this.#exception(body, no);
    return true;
  }

  #frame(body: string, no: number, fresh: boolean): boolean {
    const frame = body.includes('File "') ? FRAME.exec(body) : null;
    if (frame) {
      this.#frames++;
      this.#foreign = 0;
      const path = frame[1] as string;
      if (!LIBRARY.test(path)) {
        const name = path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);
        this.#at = `${name}:${frame[2]}${frame[3] ? ` ${frame[3]}` : ""}`;
      }
      return true;
    }
    if (body.startsWith("  ") || body.startsWith("\t")) return true;
    if (this.#frames > 0 && !fresh && EXCEPTION.test(body) && !NOT_AN_EXCEPTION.test(body)) {
      this.#exception(body, no);
      return true;
    }
    // Another writer's line in between, or a source line that lost its indentation.
    if (++this.#foreign > MAX_FOREIGN_LINES) this.finish();
    return false;
  }

  #exception(body: string, no: number): void {
    this.#chain.push({ line: no, text: body, more: [], at: this.#at, isOriginal: this.#original });
    this.#original = false;
    this.#state = MESSAGE;
    this.#blanks = this.#foreign = 0;
  }

  #after(body: string, no: number, fresh: boolean): boolean {
    if (CHAINED.test(body)) {
      this.#state = BETWEEN;
      this.#blanks = 0;
      return true;
    }
    const last = this.#chain.at(-1);
    if (this.#state === BETWEEN || fresh || this.#blanks > 0 || !last) {
      // Nothing of the chain: something else begins.
      if (this.#state === BETWEEN && ++this.#foreign < 5) return false;
      this.finish();
      return fresh ? false : this.#start(body, no);
    }
    if (LONE_EXCEPTION.test(body) && !NOT_AN_EXCEPTION.test(body)) {
      // Two writers without prefixes: the other one's exception.
      const at = this.#at;
      this.finish();
      this.#at = at;
      this.#exception(body, no);
      return true;
    }
    if (last.more.length >= MESSAGE_LINES) {
      this.finish();
      return false;
    }
    last.more.push(body.slice(0, 300));
    return true;
  }
}

/** The exception's line, with the deciding line of its message, where that was another one. */
function telling(exception: Exception, found: FailureClass): string {
  if (found.signature === PYTHON_EXCEPTION || exception.more.length === 0) return exception.text;
  if (classifyException(exception.text, []).signature === found.signature) return exception.text;
  const line = exception.more.find((m) => classifyException(m, []).signature === found.signature);
  return line === undefined ? exception.text : `${exception.text.slice(0, 200)} … ${line.trim()}`;
}
