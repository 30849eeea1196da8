/**
 * A reader of Python pickles that holds data and nothing else. The format is defined by CPython's
 * Lib/pickletools.py; the dumps we read are protocol 2 as PyTorch's C++ pickler writes it
 * (torch/csrc/jit/serialization/pickler.cpp) or protocols 2 to 5 from a trainer's own pickle.dump.
 *
 * A pickle is a program. This machine knows only the opcodes that push plain data; it has no
 * instruction that imports, calls or builds, so an untrusted file can do nothing but be refused.
 */
import {
  BIG,
  BOOL,
  DICT,
  FLOAT,
  INT,
  LIST,
  NONE,
  OPAQUE,
  PickleData,
  Slots,
  STRING,
  TUPLE,
  type PickleProblem,
} from "./pickle-data.ts";

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
        if (!setMemo(bytes[at]!)) return malformed("it stores a value that does not exist");
        at += 1;
        break;
      case 0x72: // LONG_BINPUT
        if (!setMemo(bytes.readUInt32LE(at)))
          return malformed("it stores a value that does not exist");
        at += 4;
        break;
      case 0x94: // MEMOIZE
        if (!setMemo(memo.length)) return malformed("it stores a value that does not exist");
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
          return malformed("a tuple of values that do not exist");
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
          return malformed("items for a container that does not exist");
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
            `opcode 0x${op.toString(16).padStart(2, "0")} is not allowed in a data pickle`,
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
