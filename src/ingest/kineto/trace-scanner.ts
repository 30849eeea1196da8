/**
 * The outer structure of a trace, from bytes as they come: hands over each event of `traceEvents`, and the few other
 * values at the top that somebody wants. Bytes are gathered into one block, and what lies in it complete is read;
 * an event that reaches over the block's end is read again from its start when more bytes are there. So the inner
 * loops never stop in the middle of a token, and the size of chunks makes no difference.
 */
import {
  BAD,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  INCOMPLETE,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipSpace,
  stringEnd,
  valueEnd,
  ValueSkipper,
} from "./json-bytes.ts";

const BLOCK_BYTES = 1 << 20;
/** An event of this size is no event. The list of groups of a very large job has some megabytes. */
const MAX_VALUE_BYTES = 16 << 20;
/** White space between two events. */
const MAX_GAP_BYTES = 4096;
const EVENTS_KEY = "traceEvents";

export interface TraceVisitor {
  /** Reads the event at `from`; returns the position behind it, INCOMPLETE or BAD. */
  event(bytes: Uint8Array, from: number, end: number): number;
  wants(key: string): boolean;
  value(key: string, json: string): void;
}

const START = 0;
const AT_KEY = 1;
const AT_VALUE = 2;
const AT_EVENT = 3;
const SKIPPING = 4;
const RESYNCING = 5;
const ENDED = 6;
const LOST = 7;

export class TraceScanner {
  readonly #visitor: TraceVisitor;
  readonly #blockBytes: number;
  readonly #maxValueBytes: number;
  #block: Uint8Array;
  #length = 0;
  /** Bytes before the block. */
  #before = 0;
  #state = START;
  /** Where to go on after skipping. */
  #after = START;
  #skipper = new ValueSkipper();
  #key = "";
  #isArray = false;
  /** Events that could not be read, and where the first of them is. */
  badEvents = 0;
  firstBadByte = -1;
  /** Events and values too large to look at. */
  tooLarge = 0;

  constructor(visitor: TraceVisitor, blockBytes = BLOCK_BYTES, maxValueBytes = MAX_VALUE_BYTES) {
    this.#visitor = visitor;
    this.#blockBytes = blockBytes;
    this.#maxValueBytes = maxValueBytes;
    this.#block = new Uint8Array(blockBytes);
  }

  get bytes(): number {
    return this.#before + this.#length;
  }

  /** Whether the trace came to its end. */
  get isWhole(): boolean {
    return this.#state === ENDED;
  }

  /** Whether the outer structure is not JSON; what follows was not read. */
  get isLost(): boolean {
    return this.#state === LOST;
  }

  push(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#length === this.#block.length) this.#makeRoom();
      const take = Math.min(chunk.length - at, this.#block.length - this.#length);
      this.#block.set(chunk.subarray(at, at + take), this.#length);
      this.#length += take;
      at += take;
    }
  }

  end(): void {
    this.#scan();
  }

  #makeRoom(): void {
    this.#scan();
    if (this.#length < this.#block.length) return;
    // One value fills the whole block.
    if (this.#length < this.#maxValueBytes) {
      const larger = new Uint8Array(2 * this.#length);
      larger.set(this.#block);
      this.#block = larger;
      return;
    }
    this.tooLarge++;
    this.#skip(this.#state === AT_EVENT ? AT_EVENT : AT_KEY);
    this.#scan();
  }

  #scan(): void {
    const bytes = this.#block;
    const end = this.#length;
    let at = 0;
    while (at < end) {
      const next = this.#step(bytes, at, end);
      if (next < 0) break;
      at = next;
    }
    if (at === 0) return;
    bytes.copyWithin(0, at, end);
    this.#before += at;
    this.#length = end - at;
    // A block that had to grow for one value goes back to its size.
    if (bytes.length > this.#blockBytes && this.#length < this.#blockBytes) {
      this.#block = bytes.slice(0, this.#blockBytes);
    }
  }

  /** One token further; INCOMPLETE where more bytes are needed. */
  #step(bytes: Uint8Array, from: number, end: number): number {
    if (this.#state === SKIPPING) {
      const behind = this.#skipper.skip(bytes, from, end);
      if (behind < 0) return end;
      this.#state = this.#after;
      return behind;
    }
    if (this.#state === RESYNCING) return this.#resync(bytes, from, end);
    if (this.#state === ENDED || this.#state === LOST) return end;
    const at = skipSpace(bytes, from, end);
    if (at >= end) return end;
    if (this.#state === AT_EVENT) return this.#eventStep(bytes, at, end);
    if (this.#state === AT_VALUE) return this.#valueStep(bytes, at, end);
    if (this.#state === AT_KEY) return this.#keyStep(bytes, at, end);
    return this.#startStep(bytes, at, end);
  }

  #startStep(bytes: Uint8Array, at: number, end: number): number {
    if (bytes[at] === 0xef) {
      if (at + 3 > end) return INCOMPLETE;
      return bytes[at + 1] === 0xbb && bytes[at + 2] === 0xbf ? at + 3 : this.#lose(end);
    }
    this.#isArray = bytes[at] === OPEN_BRACKET;
    if (!this.#isArray && bytes[at] !== OPEN_BRACE) return this.#lose(end);
    this.#state = this.#isArray ? AT_EVENT : AT_KEY;
    return at + 1;
  }

  #keyStep(bytes: Uint8Array, at: number, end: number): number {
    if (bytes[at] === COMMA) return at + 1;
    if (bytes[at] === CLOSE_BRACE) {
      this.#state = ENDED;
      return at + 1;
    }
    if (bytes[at] !== QUOTE) return this.#lose(end);
    const close = stringEnd(bytes, at + 1, end);
    if (close < 0) return INCOMPLETE;
    const colon = skipSpace(bytes, close + 1, end);
    if (colon >= end) return INCOMPLETE;
    if (bytes[colon] !== COLON) return this.#lose(end);
    this.#key = textOf(bytes, at + 1, close);
    this.#state = AT_VALUE;
    return colon + 1;
  }

  #valueStep(bytes: Uint8Array, at: number, end: number): number {
    if (this.#key === EVENTS_KEY && bytes[at] === OPEN_BRACKET) {
      this.#state = AT_EVENT;
      return at + 1;
    }
    if (!this.#visitor.wants(this.#key)) {
      this.#skip(AT_KEY);
      return at;
    }
    const behind = valueEnd(bytes, at, end);
    if (behind === BAD) return this.#lose(end);
    if (behind < 0) return INCOMPLETE;
    this.#visitor.value(this.#key, textOf(bytes, at, behind));
    this.#state = AT_KEY;
    return behind;
  }

  #eventStep(bytes: Uint8Array, at: number, end: number): number {
    const byte = bytes[at]!;
    if (byte === COMMA) return at + 1;
    if (byte === CLOSE_BRACKET) {
      this.#state = this.#isArray ? ENDED : AT_KEY;
      return at + 1;
    }
    const behind = byte === OPEN_BRACE ? this.#visitor.event(bytes, at, end) : BAD;
    if (behind !== BAD) return behind;
    if (this.badEvents++ === 0) this.firstBadByte = this.#before + at;
    this.#state = RESYNCING;
    return at + 1;
  }

  /**
   * After an event that is not JSON: on to where one event ends and the next begins, `}, {"`, or where the events end,
   * `}]`. Events hold no list of objects, so that neither stands inside one.
   */
  #resync(bytes: Uint8Array, from: number, end: number): number {
    let at = from;
    for (;;) {
      at = bytes.indexOf(CLOSE_BRACE, at);
      if (at < 0 || at >= end) return end;
      const next = eventBoundary(bytes, at, end);
      if (next > 0) break;
      if (next === INCOMPLETE) return at === from ? INCOMPLETE : at;
      at++;
    }
    this.#state = AT_EVENT;
    return at + 1;
  }

  #skip(after: number): void {
    this.#skipper = new ValueSkipper();
    this.#after = after;
    this.#state = SKIPPING;
  }

  #lose(end: number): number {
    this.#state = LOST;
    return end;
  }
}

function textOf(bytes: Uint8Array, from: number, end: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + from, end - from).toString("utf8");
}

/** Whether the brace at `at` ends an event before another, or before the end of all; INCOMPLETE, BAD, or a place. */
function eventBoundary(bytes: Uint8Array, at: number, end: number): number {
  const limit = Math.min(end, at + MAX_GAP_BYTES);
  let next = skipSpace(bytes, at + 1, limit);
  if (next < limit && bytes[next] === CLOSE_BRACKET) return next;
  if (next < limit) {
    if (bytes[next] !== COMMA) return BAD;
    next = skipSpace(bytes, next + 1, limit);
  }
  if (next < limit) {
    if (bytes[next] !== OPEN_BRACE) return BAD;
    next = skipSpace(bytes, next + 1, limit);
  }
  if (next < limit) return bytes[next] === QUOTE ? next : BAD;
  return limit < at + MAX_GAP_BYTES ? INCOMPLETE : BAD;
}
