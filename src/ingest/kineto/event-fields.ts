/**
 * One event's fields: numbers as numbers, texts as places in the bytes. One object serves all events of a file, so
 * that an event costs no memory.
 */
import * as Key from "./event-keys.ts";
import {
  BAD,
  CLOSE_BRACE,
  COLON,
  COMMA,
  INCOMPLETE,
  nestedEnd,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  scalarEnd,
  skipSpace,
  SPACE,
  stringEnd,
} from "./json-bytes.ts";

const MINUS = 45;
const POINT = 46;

/** A text between quotes, or a list with its brackets. `length` is -1 where the event has none. */
export interface Span {
  at: number;
  length: number;
}

const span = (): Span => ({ at: 0, length: -1 });

export class EventFields {
  /** First letter of "ph": X, i, s, f, M; 0 where there is none. */
  phase = 0;
  /**
   * Microseconds as the trace has them, whole and thousandths apart: nanoseconds since 1970 are no exact doubles.
   * NaN where the event has none.
   */
  tsUs = NaN;
  tsRestNs = 0;
  durNs = NaN;
  pid = NaN;
  tid = NaN;
  externalId = NaN;
  correlation = NaN;
  stream = NaN;
  device = NaN;
  inputNumel = NaN;
  outputNumel = NaN;
  groupSize = NaN;
  seq = NaN;
  srcRank = NaN;
  dstRank = NaN;
  readonly cat = span();
  readonly name = span();
  readonly inputDims = span();
  readonly inputType = span();
  readonly collective = span();
  readonly dtype = span();
  readonly groupName = span();
  readonly groupDesc = span();
  readonly groupRanks = span();

  readonly #parsed = new JsonNumber();

  /** Reads the event whose opening brace is at `from`; returns the position behind it. */
  read(bytes: Uint8Array, from: number, end: number): number {
    this.#reset();
    let at = from + 1;
    let isInArgs = false;
    for (;;) {
      while (at < end && (bytes[at]! <= SPACE || bytes[at] === COMMA)) at++;
      if (at >= end) return INCOMPLETE;
      if (bytes[at] === CLOSE_BRACE) {
        at++;
        if (!isInArgs) return at;
        isInArgs = false;
        continue;
      }
      if (bytes[at] !== QUOTE) return BAD;
      const keyFrom = at + 1;
      at = stringEnd(bytes, keyFrom, end);
      if (at < 0) return INCOMPLETE;
      const keys = isInArgs ? Key.OF_ARGS : Key.OF_EVENT;
      const key = Key.keyAt(keys, bytes, keyFrom, at - keyFrom);
      at = skipSpace(bytes, at + 1, end);
      if (at >= end) return INCOMPLETE;
      if (bytes[at] !== COLON) return BAD;
      at = skipSpace(bytes, at + 1, end);
      if (at >= end) return INCOMPLETE;
      const first = bytes[at]!;
      if (first === OPEN_BRACE && key === Key.ARGS) {
        isInArgs = true;
        at++;
      } else {
        at = this.#value(key, first, bytes, at, end);
        if (at < 0) return at;
      }
    }
  }

  #value(key: number, first: number, bytes: Uint8Array, at: number, end: number): number {
    if (first === QUOTE) {
      const close = stringEnd(bytes, at + 1, end);
      if (close < 0) return INCOMPLETE;
      if (key !== Key.OTHER) this.#text(key, bytes, at + 1, close);
      return close + 1;
    }
    if (first === OPEN_BRACE || first === OPEN_BRACKET) {
      const behind = nestedEnd(bytes, at, end);
      if (behind < 0) return INCOMPLETE;
      if (key === Key.INPUT_DIMS) set(this.inputDims, at, behind);
      else if (key === Key.INPUT_TYPE) set(this.inputType, at, behind);
      return behind;
    }
    const behind = scalarEnd(bytes, at, end);
    if (behind < 0) return behind;
    if (key !== Key.OTHER) {
      this.#parsed.parse(bytes, at, behind);
      if (key === Key.GROUP_NAME) set(this.groupName, at, behind);
      else this.#number(key);
    }
    return behind;
  }

  #text(key: number, bytes: Uint8Array, at: number, end: number): void {
    switch (key) {
      case Key.PH:
        this.phase = end > at ? bytes[at]! : 0;
        break;
      case Key.CAT:
        set(this.cat, at, end);
        break;
      case Key.NAME:
        set(this.name, at, end);
        break;
      case Key.COLLECTIVE_NAME:
        set(this.collective, at, end);
        break;
      case Key.DTYPE:
        set(this.dtype, at, end);
        break;
      case Key.GROUP_NAME:
        set(this.groupName, at, end);
        break;
      case Key.GROUP_DESC:
        set(this.groupDesc, at, end);
        break;
      case Key.GROUP_RANKS:
        set(this.groupRanks, at, end);
        break;
      default:
        // Older releases quote numbers: "tid": "25738", "stream 7".
        this.#parsed.parse(bytes, afterWord(bytes, at, end), end);
        this.#number(key);
    }
  }

  #number(key: number): void {
    const { whole: value, thousandths } = this.#parsed;
    switch (key) {
      case Key.TS:
        this.tsUs = value;
        this.tsRestNs = thousandths;
        break;
      case Key.DUR:
        this.durNs = value * 1000 + thousandths;
        break;
      case Key.PID:
        this.pid = value;
        break;
      case Key.TID:
        this.tid = value;
        break;
      case Key.EXTERNAL_ID:
        this.externalId = value;
        break;
      case Key.CORRELATION:
        this.correlation = value;
        break;
      case Key.STREAM:
        this.stream = value;
        break;
      case Key.DEVICE:
        this.device = value;
        break;
      case Key.IN_NUMEL:
        this.inputNumel = value;
        break;
      case Key.OUT_NUMEL:
        this.outputNumel = value;
        break;
      case Key.GROUP_SIZE:
        this.groupSize = value;
        break;
      case Key.SEQ:
        this.seq = value;
        break;
      case Key.SRC_RANK:
        this.srcRank = value;
        break;
      case Key.DST_RANK:
        this.dstRank = value;
        break;
    }
  }

  #reset(): void {
    this.phase = 0;
    this.tsUs = this.durNs = this.pid = this.tid = NaN;
    this.externalId = this.correlation = this.stream = this.device = NaN;
    this.inputNumel = this.outputNumel = this.groupSize = this.seq = NaN;
    this.srcRank = this.dstRank = NaN;
    this.tsRestNs = 0;
    this.cat.length = this.name.length = this.inputDims.length = this.inputType.length = -1;
    this.collective.length = this.dtype.length = -1;
    this.groupName.length = this.groupDesc.length = this.groupRanks.length = -1;
  }
}

function set(target: Span, at: number, end: number): void {
  target.at = at;
  target.length = end - at;
}

function afterWord(bytes: Uint8Array, at: number, end: number): number {
  for (let i = end; i > at; i--) if (bytes[i - 1] === SPACE) return i;
  return at;
}

/**
 * A number in two parts, whole and thousandths: microseconds since 1970 with three decimals are no exact double, their
 * parts are. One object serves all numbers of a file.
 */
class JsonNumber {
  /** NaN for what is no number. */
  whole = NaN;
  /** Rounded; of the same sign as the number. */
  thousandths = 0;

  parse(bytes: Uint8Array, from: number, end: number): void {
    let at = from;
    const isNegative = bytes[at] === MINUS;
    if (isNegative) at++;
    const digits = at;
    let whole = 0;
    while (at < end && isDigit(bytes[at]!)) whole = whole * 10 + (bytes[at++]! - 48);
    let isOdd = at === digits || whole > Number.MAX_SAFE_INTEGER;
    let rest = 0;
    if (at < end && bytes[at] === POINT) {
      at++;
      for (let i = 0; i < 4; i++) {
        const digit = at < end && isDigit(bytes[at]!) ? bytes[at++]! - 48 : 0;
        if (i < 3) rest = rest * 10 + digit;
        else if (digit >= 5) rest++;
      }
      while (at < end && isDigit(bytes[at]!)) at++;
    }
    isOdd ||= at < end;
    if (isOdd) this.#parseOdd(bytes, from, end);
    else {
      this.whole = isNegative ? -whole : whole;
      this.thousandths = isNegative ? -rest : rest;
    }
  }

  /** Exponents, very long numbers, hexadecimal streams, words. */
  #parseOdd(bytes: Uint8Array, from: number, end: number): void {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset + from, end - from).toString("latin1");
    const value = text === "" ? NaN : Number(text);
    const isFinite = Number.isFinite(value);
    this.whole = isFinite ? Math.trunc(value) : NaN;
    this.thousandths = isFinite ? Math.round((value - this.whole) * 1000) : 0;
  }
}

function isDigit(byte: number): boolean {
  return byte >= 48 && byte <= 57;
}
