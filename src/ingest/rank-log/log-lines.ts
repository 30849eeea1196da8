/** Takes a log's lines one by one and collects what they tell. */
import { FirstAndLast } from "../first-and-last.ts";
import { looksStamped, parseStamp } from "../log-time.ts";
import type { Stamp } from "../log-time.ts";
import { NcclProcesses, parseNcclLine } from "../nccl-lines.ts";
import { isNotice } from "./classify.ts";
import { IterationLines } from "./iteration-lines.ts";
import { iterationOf, saysFinished } from "./iterations.ts";
import { beginsTerminate, loneFailure, ncclFailure } from "./lone-lines.ts";
import type { LoneFailure } from "./lone-lines.ts";
import { DUMP, WORLD_SIZE } from "./noteworthy.ts";
import { Prefix } from "./prefixes.ts";
import type { LogFindings } from "./reading.ts";
import type { Found, Stream } from "./stream.ts";
import { Streams } from "./streams.ts";
import { TorchrunReport } from "./torchrun.ts";
import type { OpenTorchrun } from "./torchrun.ts";
import type { Raised } from "./tracebacks.ts";
import { WatchdogLines } from "./watchdog.ts";
import type { OpenReport } from "./watchdog.ts";

const GLOG = /^\[?([EWIF])\d{3,4} \d\d:/;
/** Lines that are searched for a year before the file is taken to have none. */
const MAX_YEAR_SEARCHES = 10_000;
const TAB = 9;
const SPACE = 32;

export class LogLines {
  readonly #prefix = new Prefix();
  readonly #streams: Streams;
  readonly #found = new FirstAndLast<Found>();
  readonly #reports = new FirstAndLast<OpenReport>();
  readonly #failed = new FirstAndLast<OpenTorchrun>();
  readonly #watchdog: WatchdogLines;
  readonly #torchrun: TorchrunReport;
  readonly #processes = new NcclProcesses();
  readonly #iterations = new IterationLines((body) => this.#timeOf(body));
  readonly #pattern: RegExp | null;
  #worldSize = 0;
  /** A full time of this file, by which those without a year are dated. */
  #fullTimeMs: number | null = null;
  #yearSearches = 0;
  /** The last line of any writer that begins with a time. */
  #stamped = "";
  /** Whether any writer has reported a failure. */
  #troubled = false;

  /** `pattern`: what iteration lines look like, instead of the formats that we know. */
  constructor(pattern: RegExp | null) {
    this.#pattern = pattern;
    this.#streams = new Streams((raised, by) => this.#raised(raised, by));
    this.#watchdog = new WatchdogLines((report) => this.#reports.add(report));
    this.#torchrun = new TorchrunReport((failure) => {
      if (failure.local >= 0) this.#streams.learnLocal(failure.local, failure.rank);
      this.#failed.add(failure);
    });
  }

  /** `noteworthy`: what isNoteworthy() says of the line, or of one that differs in its numbers only. */
  line(text: string, no: number, noteworthy: boolean): void {
    this.#prefix.read(text);
    const isMatch = this.#pattern !== null && this.#byPattern(text, this.#pattern);
    const stream = this.#streams.of(this.#prefix);
    const body = this.#prefix.body;
    stream.lines++;
    if (isBlank(body)) {
      stream.tracebacks.blank();
      return;
    }
    const stamped = looksStamped(body);
    if (stamped) this.#stamp(body, stream);
    let iteration = -1;
    if (isMatch) iteration = this.#iterations.take(body, no, stream, stamped);
    else if (noteworthy && this.#pattern === null) {
      iteration = this.#iterations.line(body, iterationOf(body), no, stream, stamped);
    } else if (noteworthy) this.#iterations.pause(body, no, stream);
    if (iteration >= 0) {
      stream.lastIteration = iteration;
      stream.iterationLine = no;
    }
    const open = stream.tracebacks.active || this.#torchrun.active || stream.terminateLine > 0;
    const special = (noteworthy || open) && !isPlainIteration(body, iteration);
    if (special && this.#special(body, no, stream, stamped)) return;
    this.#remember(body, no, stream, stamped || iteration >= 0);
  }

  end(): Omit<LogFindings, "file" | "lines"> {
    for (const stream of this.#streams.all) stream.tracebacks.finish();
    this.#torchrun.end();
    return {
      streams: this.#streams,
      found: this.#found,
      reports: this.#reports,
      torchrun: this.#failed,
      groups: this.#watchdog.groups,
      processes: this.#processes,
      iterations: this.#iterations,
      worldSize: this.#watchdog.worldSize || this.#worldSize,
      fullTimeMs: this.#fullTimeMs,
    };
  }

  /** Whether the user's pattern matches; it may also say whose line it is. */
  #byPattern(text: string, pattern: RegExp): boolean {
    const { point } = this.#iterations;
    if (!point.readPattern(text, pattern)) return false;
    if (point.rank >= 0) this.#prefix.rank = point.rank;
    return true;
  }

  /** Whether the line is about a failure and so not one of the writer's last words. */
  #special(body: string, no: number, stream: Stream, stamped: boolean): boolean {
    this.#facts(body, no, stream);
    if (this.#torchrun.line(body, no)) return true;
    const nccl = body.includes(" NCCL ") ? parseNcclLine(body) : null;
    if (nccl && !nccl.isWarning) this.#processes.info(nccl);
    if (nccl) return this.#fail(ncclFailure(nccl), body, no, stream);
    if (body.includes("WorkNCCL(") || body.includes("[PG ") || body.includes("collective")) {
      this.#watchdog.line(body, no, this.#timeAt(body, stream), stream);
    }
    const level = stamped ? GLOG.exec(body)?.[1] : undefined;
    if (level === "I") return false;
    // torchrun's report quotes the traceback of the rank that it is about.
    const quoted = this.#torchrun.rank;
    const writer = quoted >= 0 ? this.#streams.ofRank(quoted) : stream;
    if (level === undefined && writer.tracebacks.line(body, no, stamped)) return true;
    if (beginsTerminate(body, no, writer)) return true;
    return this.#fail(loneFailure(body, no, writer), body, no, writer);
  }

  /** What lines say beside failures. */
  #facts(body: string, no: number, stream: Stream): void {
    if (saysFinished(body)) stream.finished = true;
    if (stream.dumpLine === 0 && DUMP.test(body)) stream.dumpLine = no;
    if (this.#worldSize > 0) return;
    const size = WORLD_SIZE.exec(body);
    if (size) this.#worldSize = Number(size[1]);
  }

  #raised(raised: Raised, stream: Stream): void {
    this.#add({ stream, stamp: this.#timeAt("", stream), about: null, ...raised });
  }

  #fail(failure: LoneFailure | null, body: string, no: number, stream: Stream): boolean {
    if (!failure) return false;
    this.#add({ ...failure, stream, line: no, stamp: this.#timeAt(body, stream), at: null });
    return true;
  }

  #add(found: Omit<Found, "progressLine">): void {
    const { stream } = found;
    const debris = this.#isTroubled(stream) && found.class.canBeAftermath === true;
    if (found.class.role === "own" && !debris) {
      this.#last(found.text, found.line, stream);
      // Somebody may end processes that had nothing left to do.
      if (found.class.cause !== "scheduler") stream.finished = false;
    }
    this.#found.add({ ...found, progressLine: stream.iterationLine });
    this.#troubled = true;
    stream.troubled = true;
  }

  /** Whether the writer has reported a failure; for lines without a prefix, whether any writer has. */
  #isTroubled(stream: Stream): boolean {
    return stream.troubled || (stream === this.#streams.plain && this.#troubled);
  }

  /** The last words of a writer: lines of its own, not the debris of a failure, nor what PyTorch notes beside them. */
  #remember(body: string, no: number, stream: Stream, ownLine: boolean): void {
    const level = ownLine ? GLOG.exec(body)?.[1] : undefined;
    if (this.#isTroubled(stream) && (!ownLine || level !== undefined)) return;
    // Warnings and errors are few. Asking the library of every line would take too long: reading.ts asks of the last.
    if (level !== undefined && level !== "I" && isNotice(body)) return;
    const first = body.charCodeAt(0);
    if (first === TAB || (first === SPACE && body.charCodeAt(1) === SPACE)) return;
    this.#last(body, no, stream);
  }

  #last(body: string, no: number, stream: Stream): void {
    stream.lastLine = no;
    stream.lastText = body;
    // Lines without a prefix follow, as a rule, on what the same process wrote with one.
    stream.lastStamped = stream === this.#streams.plain ? this.#stamped : stream.stamped;
  }

  #stamp(body: string, stream: Stream): void {
    stream.stamped = body;
    this.#stamped = body;
    if (this.#fullTimeMs !== null || this.#yearSearches >= MAX_YEAR_SEARCHES) return;
    this.#yearSearches++;
    this.#timeOf(body);
  }

  /** The time of a line: its own, or that of the last line before it that has one. */
  #timeAt(body: string, stream: Stream): Stamp | null {
    return this.#timeOf(body) ?? this.#timeOf(stream.stamped) ?? this.#timeOf(this.#stamped);
  }

  #timeOf(text: string): Stamp | null {
    const stamp = text === "" ? null : parseStamp(text);
    if (stamp?.hasYear) this.#fullTimeMs = stamp.ms;
    return stamp;
  }
}

/** A line that reports an iteration and nothing else: a watchdog may write behind a progress bar. */
function isPlainIteration(body: string, iteration: number): boolean {
  return iteration >= 0 && !/rror|Watchdog|Traceback/.test(body);
}

function isBlank(text: string): boolean {
  return text === "" || (text.charCodeAt(0) <= SPACE && text.trim() === "");
}
