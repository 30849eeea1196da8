/**
 * A reader of Python pickles that holds data and nothing else. The format is defined by CPython's
 * Lib/pickletools.py; the dumps we read are protocol 2 as PyTorch's C++ pickler writes it
 * (torch/csrc/jit/serialization/pickler.cpp) or protocols 2 to 5 from a trainer's own pickle.dump.
 *
 * A pickle is a program. This machine knows only the opcodes that push plain data; it has no
 * instruction that imports, calls or builds, so an untrusted file can do nothing but be refused.
 *
 * Values live in one arena of typed arrays (kind + number), containers as slices of it: no object a
 * record. 20,000 entries make 2 million values; as objects they cost ten times the time and memory.
 */
export const NONE = 0;
export const BOOL = 1;
/** A number that a double holds exactly. */
export const INT = 2;
/** A 64-bit integer beyond 2^53, as the exact difference to `base`. */
export const BIG = 3;
export const FLOAT = 4;
/** Index of a string. */
export const STRING = 5;
/** Index of a container. */
export const LIST = 6;
export const TUPLE = 7;
export const DICT = 8;
/** Bytes: skipped, we never need them. */
export const OPAQUE = 9;

/** Opcodes that import, call or build: the reason why a stranger's pickle must never be loaded. */
const FORBIDDEN = new Map<number, string>([
  [0x63, "GLOBAL"],
  [0x93, "STACK_GLOBAL"],
  [0x52, "REDUCE"],
  [0x62, "BUILD"],
  [0x69, "INST"],
  [0x6f, "OBJ"],
  [0x81, "NEWOBJ"],
  [0x92, "NEWOBJ_EX"],
  [0x82, "EXT1"],
  [0x83, "EXT2"],
  [0x84, "EXT4"],
  [0x50, "PERSID"],
  [0x51, "BINPERSID"],
  [0x97, "NEXT_BUFFER"],
  [0x98, "READONLY_BUFFER"],
]);

export type PickleProblem =
  /** The file ends in the middle; what came before is kept. */
  | { readonly kind: "truncated"; readonly offset: number }
  /** It wants to import or call something. Nothing of it is used. */
  | { readonly kind: "refused"; readonly offset: number; readonly opcode: string }
  /** Not a pickle that we understand. */
  | { readonly kind: "malformed"; readonly offset: number; readonly why: string };

class Slots {
  kind: Uint8Array;
  num: Float64Array;
  length = 0;

  constructor(capacity: number) {
    this.kind = new Uint8Array(capacity);
    this.num = new Float64Array(capacity);
  }

  push(kind: number, num: number): void {
    if (this.length === this.kind.length) this.#grow(this.length + 1);
    this.kind[this.length] = kind;
    this.num[this.length++] = num;
  }

  append(from: Slots, start: number, end: number): void {
    const need = this.length + end - start;
    if (need > this.kind.length) this.#grow(need);
    const { kind, num } = this;
    const { kind: fromKind, num: fromNum } = from;
    let at = this.length;
    for (let i = start; i < end; i++, at++) {
      kind[at] = fromKind[i]!;
      num[at] = fromNum[i]!;
    }
    this.length = at;
  }

  #grow(need: number): void {
    const size = Math.max(need, this.kind.length * 2);
    const kind = new Uint8Array(size);
    const num = new Float64Array(size);
    kind.set(this.kind);
    num.set(this.num);
    this.kind = kind;
    this.num = num;
  }
}

/** The decoded file. Containers are walked with `first` / `next`, or with `items`. */
export class PickleData {
  readonly bytes: Buffer;
  readonly items: Slots;
  /** Exact value that BIG numbers are relative to. */
  base = 0n;
  baseHigh = 0;
  baseLow = 0;
  rootKind = NONE;
  rootNum = 0;
  problem: PickleProblem | null = null;
  /** What a decoder worked out about a container, so that references to it cost nothing. */
  readonly notes = new Map<number, number>();

  // A container is a chain of chunks, because APPENDS and SETITEMS may come in several batches.
  readonly firstChunk: number[] = [];
  readonly lastChunk: number[] = [];
  readonly chunkStart: number[] = [];
  readonly chunkEnd: number[] = [];
  readonly chunkNext: number[] = [];

  // Strings: interned by bytes, decoded on demand.
  readonly #offsets: number[] = [];
  readonly #lengths: number[] = [];
  readonly #texts: (string | undefined)[] = [];
  #table = new Int32Array(1024).fill(-1);

  constructor(bytes: Buffer) {
    this.bytes = bytes;
    // A value takes two bytes or more, most of them in strings that are stored once.
    this.items = new Slots(Math.max(256, bytes.length >> 1));
  }

  setBase(value: bigint): void {
    this.base = value;
    this.baseHigh = Number(value >> 32n);
    this.baseLow = Number(value & 0xffffffffn);
  }

  get stringCount(): number {
    return this.#offsets.length;
  }

  text(id: number): string {
    return (this.#texts[id] ??= this.bytes.toString(
      "utf8",
      this.#offsets[id],
      this.#offsets[id]! + this.#lengths[id]!,
    ));
  }

  newContainer(): number {
    this.firstChunk.push(-1);
    this.lastChunk.push(-1);
    return this.firstChunk.length - 1;
  }

  addItems(container: number, from: Slots, start: number, end: number): void {
    if (end <= start) return;
    const at = this.items.length;
    this.items.append(from, start, end);
    const last = this.lastChunk[container]!;
    if (last >= 0 && this.chunkEnd[last] === at) {
      this.chunkEnd[last] = this.items.length;
      return;
    }
    const chunk = this.chunkStart.length;
    this.chunkStart.push(at);
    this.chunkEnd.push(this.items.length);
    this.chunkNext.push(-1);
    if (last < 0) this.firstChunk[container] = chunk;
    else this.chunkNext[last] = chunk;
    this.lastChunk[container] = chunk;
  }

  /** Item indices of a list, or of a dict's keys (the value follows its key). */
  forEachItem(container: number, step: 1 | 2, visit: (item: number) => void): void {
    for (let c = this.firstChunk[container] ?? -1; c >= 0; c = this.chunkNext[c]!) {
      const end = this.chunkEnd[c]! - (step - 1);
      for (let i = this.chunkStart[c]!; i < end; i += step) visit(i);
    }
  }

  /** Item index of the value under a text key, -1 where absent. */
  lookup(dict: number, key: string): number {
    let found = -1;
    this.forEachItem(dict, 2, (item) => {
      if (this.items.kind[item] === STRING && this.text(this.items.num[item]!) === key) {
        found = item + 1;
      }
    });
    return found;
  }

  internString(offset: number, length: number): number {
    const { bytes } = this;
    let hash = 0x811c9dc5;
    for (let i = offset; i < offset + length; i++) hash = Math.imul(hash ^ bytes[i]!, 0x01000193);
    let mask = this.#table.length - 1;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const id = this.#table[slot]!;
      if (id < 0) {
        const fresh = this.#offsets.length;
        this.#offsets.push(offset);
        this.#lengths.push(length);
        this.#texts.push(undefined);
        this.#table[slot] = fresh;
        if (fresh * 2 > mask) this.#rehash();
        return fresh;
      }
      if (this.#lengths[id] === length) {
        const other = this.#offsets[id]!;
        if (bytes.compare(bytes, other, other + length, offset, offset + length) === 0) return id;
      }
    }
  }

  #rehash(): void {
    const table = new Int32Array(this.#table.length * 2).fill(-1);
    const mask = table.length - 1;
    for (let id = 0; id < this.#offsets.length; id++) {
      const offset = this.#offsets[id]!;
      const end = offset + this.#lengths[id]!;
      let hash = 0x811c9dc5;
      for (let i = offset; i < end; i++) hash = Math.imul(hash ^ this.bytes[i]!, 0x01000193);
      let slot = hash & mask;
      while (table[slot]! >= 0) slot = (slot + 1) & mask;
      table[slot] = id;
    }
    this.#table = table;
  }
}

/** Decodes a whole pickle. Never throws: what is wrong is in `problem`. */
export function readPickle(bytes: Buffer): PickleData {
  const data = new PickleData(bytes);
  const stack = new Slots(4096);
  const marks: number[] = [];
  const memo = new Slots(1024);
  const size = bytes.length;
  let at = 0;
  let opcodeAt = 0;
  const stop = (problem: PickleProblem): PickleData => {
    data.problem = problem;
    closeOpenContainers(data, stack, marks);
    return data;
  };
  const malformed = (why: string): PickleData => stop({ kind: "malformed", offset: opcodeAt, why });

  const setMemo = (index: number): boolean => {
    // A memo index far beyond the number of values is an attempt to make us allocate.
    if (index > memo.length + 65536 || stack.length === 0) return false;
    while (memo.length <= index) memo.push(NONE, 0);
    memo.kind[index] = stack.kind[stack.length - 1]!;
    memo.num[index] = stack.num[stack.length - 1]!;
    return true;
  };
  const pushString = (length: number): void => {
    stack.push(STRING, data.internString(at, length));
    at += length;
  };

  for (;;) {
    opcodeAt = at;
    if (at >= size) return stop({ kind: "truncated", offset: at });
    const op = bytes[at++]!;
    const need = OPERAND_BYTES[op]!;
    if (need > 0 && at + need > size) return stop({ kind: "truncated", offset: opcodeAt });
    switch (op) {
      case 0x68: // BINGET
      case 0x6a: {
        // LONG_BINGET
        const index = op === 0x68 ? bytes[at]! : bytes.readUInt32LE(at);
        at += need;
        if (index >= memo.length) return malformed("it refers to a value that it never stored");
        stack.push(memo.kind[index]!, memo.num[index]!);
        break;
      }
      case 0x58: // BINUNICODE
      case 0x8c: // SHORT_BINUNICODE
      case 0x55: // SHORT_BINSTRING
      case 0x54: // BINSTRING
      case 0x8d: {
        // BINUNICODE8
        const length =
          op === 0x8c || op === 0x55
            ? bytes[at]!
            : op === 0x8d
              ? Number(bytes.readBigUInt64LE(at))
              : bytes.readUInt32LE(at);
        at += need;
        if (at + length > size) return stop({ kind: "truncated", offset: opcodeAt });
        pushString(length);
        break;
      }
      case 0x71: // BINPUT
        if (!setMemo(bytes[at]!)) return malformed("it stores a value that is not there");
        at += 1;
        break;
      case 0x72: // LONG_BINPUT
        if (!setMemo(bytes.readUInt32LE(at)))
          return malformed("it stores a value that is not there");
        at += 4;
        break;
      case 0x94: // MEMOIZE
        if (!setMemo(memo.length)) return malformed("it stores a value that is not there");
        break;
      case 0x4b: // BININT1
        stack.push(INT, bytes[at]!);
        at += 1;
        break;
      case 0x4d: // BININT2
        stack.push(INT, bytes[at]! | (bytes[at + 1]! << 8));
        at += 2;
        break;
      case 0x4a: // BININT
        stack.push(INT, bytes.readInt32LE(at));
        at += 4;
        break;
      case 0x8a: // LONG1
      case 0x8b: {
        // LONG4
        const length = op === 0x8a ? bytes[at]! : bytes.readInt32LE(at);
        at += need;
        if (length < 0 || length > 256) return malformed("an integer of unreasonable size");
        if (at + length > size) return stop({ kind: "truncated", offset: opcodeAt });
        pushLong(data, stack, at, length);
        at += length;
        break;
      }
      case 0x47: // BINFLOAT
        stack.push(FLOAT, bytes.readDoubleBE(at));
        at += 8;
        break;
      case 0x4e: // NONE
        stack.push(NONE, 0);
        break;
      case 0x88: // NEWTRUE
        stack.push(BOOL, 1);
        break;
      case 0x89: // NEWFALSE
        stack.push(BOOL, 0);
        break;
      case 0x28: // MARK
        marks.push(stack.length);
        break;
      case 0x7d: // EMPTY_DICT
        stack.push(DICT, data.newContainer());
        break;
      case 0x5d: // EMPTY_LIST
        stack.push(LIST, data.newContainer());
        break;
      case 0x29: // EMPTY_TUPLE
        stack.push(TUPLE, data.newContainer());
        break;
      case 0x85: // TUPLE1
      case 0x86: // TUPLE2
      case 0x87: // TUPLE3
      case 0x74: {
        // TUPLE
        const start = op === 0x74 ? (marks.pop() ?? -1) : stack.length - (op - 0x84);
        if (start < 0 || start > stack.length || start < (marks.at(-1) ?? 0)) {
          return malformed("a tuple of values that are not there");
        }
        const tuple = data.newContainer();
        data.addItems(tuple, stack, start, stack.length);
        stack.length = start;
        stack.push(TUPLE, tuple);
        break;
      }
      case 0x75: // SETITEMS
      case 0x65: // APPENDS
      case 0x73: // SETITEM
      case 0x61: {
        // APPEND
        const single = op === 0x73 ? 2 : op === 0x61 ? 1 : 0;
        const start = single > 0 ? stack.length - single : (marks.pop() ?? -1);
        const wanted = op === 0x75 || op === 0x73 ? DICT : LIST;
        if (start < 1 || start > stack.length || stack.kind[start - 1] !== wanted) {
          return malformed("items for a container that is not there");
        }
        if (wanted === DICT && (stack.length - start) % 2 !== 0) {
          return malformed("a key without a value");
        }
        data.addItems(stack.num[start - 1]!, stack, start, stack.length);
        stack.length = start;
        break;
      }
      case 0x30: // POP
        if (stack.length === 0) return malformed("POP of nothing");
        stack.length--;
        break;
      case 0x80: // PROTO
        if (bytes[at]! > 5) return malformed(`pickle protocol ${bytes[at]!}`);
        at += 1;
        break;
      case 0x95: // FRAME
        at += 8;
        break;
      case 0x43: // SHORT_BINBYTES
      case 0x42: // BINBYTES
      case 0x8e: // BINBYTES8
      case 0x96: {
        // BYTEARRAY8
        const length =
          op === 0x43
            ? bytes[at]!
            : op === 0x42
              ? bytes.readUInt32LE(at)
              : Number(bytes.readBigUInt64LE(at));
        at += need;
        if (at + length > size) return stop({ kind: "truncated", offset: opcodeAt });
        stack.push(OPAQUE, length);
        at += length;
        break;
      }
      case 0x2e: // STOP
        if (stack.length === 0) return malformed("it ends without a value");
        data.rootKind = stack.kind[stack.length - 1]!;
        data.rootNum = stack.num[stack.length - 1]!;
        return data;
      default: {
        const opcode = FORBIDDEN.get(op);
        if (opcode === undefined) {
          return malformed(
            `opcode 0x${op.toString(16).padStart(2, "0")} is not one of a data pickle`,
          );
        }
        data.problem = { kind: "refused", offset: opcodeAt, opcode };
        return data;
      }
    }
  }
}

/** Fixed operand bytes after each opcode that has some. */
const OPERAND_BYTES = new Uint8Array(256);
for (const [bytes, opcodes] of [
  [1, [0x68, 0x71, 0x4b, 0x8c, 0x55, 0x8a, 0x80, 0x43]],
  [2, [0x4d]],
  [4, [0x6a, 0x72, 0x4a, 0x58, 0x54, 0x8b, 0x42]],
  [8, [0x47, 0x8d, 0x95, 0x8e, 0x96]],
] as const) {
  for (const opcode of opcodes) OPERAND_BYTES[opcode] = bytes;
}

function pushLong(data: PickleData, stack: Slots, at: number, length: number): void {
  const { bytes } = data;
  if (length === 8) {
    // The common case, nanoseconds since 1970: without a bigint each.
    const high = bytes.readInt32LE(at + 4);
    const low = bytes.readUInt32LE(at);
    if (high >= -0x200000 && high < 0x200000) {
      stack.push(INT, high * 4294967296 + low);
      return;
    }
    if (data.base === 0n) data.setBase(bytes.readBigInt64LE(at));
    stack.push(BIG, (high - data.baseHigh) * 4294967296 + (low - data.baseLow));
    return;
  }
  let value = 0n;
  for (let i = length - 1; i >= 0; i--) value = (value << 8n) | BigInt(bytes[at + i]!);
  if (length > 0 && bytes[at + length - 1]! >= 0x80) value -= 1n << BigInt(8 * length);
  if (value >= -9007199254740991n && value <= 9007199254740991n) {
    stack.push(INT, Number(value));
    return;
  }
  if (data.base === 0n) data.setBase(value);
  stack.push(BIG, Number(value - data.base));
}

/**
 * A truncated file still has whole entries in it: hand the items that wait on the stack to their
 * containers, as if the missing APPENDS and SETITEMS had come, and make the outermost value the root.
 */
function closeOpenContainers(data: PickleData, stack: Slots, marks: number[]): void {
  while (marks.length > 0) {
    const start = marks.pop()!;
    const kind = start > 0 ? stack.kind[start - 1] : NONE;
    if (kind === DICT) {
      data.addItems(stack.num[start - 1]!, stack, start, start + ((stack.length - start) & ~1));
    } else if (kind === LIST) {
      data.addItems(stack.num[start - 1]!, stack, start, stack.length);
    }
    stack.length = start;
  }
  if (stack.length > 0) {
    data.rootKind = stack.kind[0]!;
    data.rootNum = stack.num[0]!;
  }
}
