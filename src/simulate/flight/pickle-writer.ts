/**
 * Python pickles, protocol 2, byte for byte as PyTorch's C++ pickler writes them
 * (torch/csrc/jit/serialization/pickler.cpp): every string is memoised by value, a container only when
 * it occurs more than once, lists and dicts are filled by one APPENDS or SETITEMS even when empty, and
 * an int64 is always eight bytes.
 */
export type PyValue =
  | string
  | number
  | bigint
  | boolean
  | null
  | PyFloat
  | PyTuple
  | PyShared
  | readonly PyValue[]
  | ReadonlyMap<string, PyValue>
  | PyRecord;

/** A dict with fixed keys; undefined ones are left out. For keys that look like integers use a Map. */
export interface PyRecord {
  readonly [key: string]: PyValue | undefined;
}

/** JavaScript numbers are ints here; a float says so. */
export class PyFloat {
  readonly value: number;
  constructor(value: number) {
    this.value = value;
  }
}

export class PyTuple {
  readonly items: readonly PyValue[];
  constructor(items: readonly PyValue[]) {
    this.items = items;
  }
}

/** A container that several places refer to; `uses` must be final before it is written. */
export class PyShared {
  readonly value: PyValue;
  uses = 0;
  constructor(value: PyValue) {
    this.value = value;
  }
}

const OP = {
  PROTO: 0x80,
  STOP: 0x2e,
  MARK: 0x28,
  EMPTY_DICT: 0x7d,
  SETITEMS: 0x75,
  EMPTY_LIST: 0x5d,
  APPENDS: 0x65,
  EMPTY_TUPLE: 0x29,
  TUPLE1: 0x85,
  TUPLE2: 0x86,
  TUPLE3: 0x87,
  TUPLE: 0x74,
  BINUNICODE: 0x58,
  BINPUT: 0x71,
  LONG_BINPUT: 0x72,
  BINGET: 0x68,
  LONG_BINGET: 0x6a,
  BININT1: 0x4b,
  BININT2: 0x4d,
  BININT: 0x4a,
  LONG1: 0x8a,
  BINFLOAT: 0x47,
  NEWTRUE: 0x88,
  NEWFALSE: 0x89,
  NONE: 0x4e,
} as const;

export function pickle(value: PyValue): Uint8Array {
  const writer = new PickleWriter();
  writer.op(OP.PROTO);
  writer.op(2);
  writer.value(value);
  // The caller still holds the outermost dict, so the C++ side sees two references and memoises it.
  const isContainer = typeof value === "object" && value !== null && !(value instanceof PyFloat);
  if (isContainer) writer.put();
  writer.op(OP.STOP);
  return writer.bytes();
}

class PickleWriter {
  #buffer = Buffer.allocUnsafe(16384);
  #length = 0;
  #memo = 0;
  readonly #strings = new Map<string, number>();
  readonly #shared = new Map<PyShared, number>();

  bytes(): Uint8Array {
    // A copy of the right size: the buffer may be twice as long and the caller may keep thousands.
    return new Uint8Array(this.#buffer.subarray(0, this.#length));
  }

  op(code: number): void {
    this.#room(1);
    this.#buffer[this.#length++] = code;
  }

  value(value: PyValue): void {
    if (typeof value === "string") this.#string(value);
    else if (typeof value === "number") this.#int(value);
    else if (typeof value === "boolean") this.op(value ? OP.NEWTRUE : OP.NEWFALSE);
    else if (value === null) this.op(OP.NONE);
    else if (typeof value === "bigint") this.#long(value);
    else if (Array.isArray(value)) this.#list(value as readonly PyValue[]);
    else if (value instanceof PyFloat) this.#float(value.value);
    else if (value instanceof PyTuple) this.#tuple(value.items);
    else if (value instanceof PyShared) this.#sharedValue(value);
    else if (value instanceof Map) this.#map(value as ReadonlyMap<string, PyValue>);
    else this.#record(value as PyRecord);
  }

  /** Gives what was just written the next memo number, and returns it. */
  put(): number {
    const id = this.#memo++;
    this.#memoOp(OP.BINPUT, OP.LONG_BINPUT, id);
    return id;
  }

  #room(bytes: number): void {
    if (this.#length + bytes <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#length + bytes));
    this.#buffer.copy(larger, 0, 0, this.#length);
    this.#buffer = larger;
  }

  #memoOp(short: number, long: number, id: number): void {
    this.#room(5);
    if (id <= 255) {
      this.#buffer[this.#length++] = short;
      this.#buffer[this.#length++] = id;
    } else {
      this.#buffer[this.#length++] = long;
      this.#length = this.#buffer.writeUInt32LE(id, this.#length);
    }
  }

  #string(text: string): void {
    const known = this.#strings.get(text);
    if (known !== undefined) return this.#memoOp(OP.BINGET, OP.LONG_BINGET, known);
    const byteLength = Buffer.byteLength(text);
    this.#room(5 + byteLength);
    this.#buffer[this.#length++] = OP.BINUNICODE;
    this.#length = this.#buffer.writeUInt32LE(byteLength, this.#length);
    this.#length += this.#buffer.write(text, this.#length);
    this.#strings.set(text, this.put());
  }

  #int(value: number): void {
    this.#room(5);
    if (value >= 0 && value <= 0xff) {
      this.#buffer[this.#length++] = OP.BININT1;
      this.#buffer[this.#length++] = value;
    } else if (value >= 0 && value <= 0xffff) {
      this.#buffer[this.#length++] = OP.BININT2;
      this.#length = this.#buffer.writeUInt16LE(value, this.#length);
    } else if (value >= -0x80000000 && value <= 0x7fffffff) {
      this.#buffer[this.#length++] = OP.BININT;
      this.#length = this.#buffer.writeInt32LE(value, this.#length);
    } else this.#long(BigInt(value));
  }

  #long(value: bigint): void {
    this.#room(10);
    this.#buffer[this.#length++] = OP.LONG1;
    this.#buffer[this.#length++] = 8;
    this.#length = this.#buffer.writeBigInt64LE(value, this.#length);
  }

  #float(value: number): void {
    this.#room(9);
    this.#buffer[this.#length++] = OP.BINFLOAT;
    this.#length = this.#buffer.writeDoubleBE(value, this.#length);
  }

  #list(items: readonly PyValue[]): void {
    this.op(OP.EMPTY_LIST);
    this.op(OP.MARK);
    for (const item of items) this.value(item);
    this.op(OP.APPENDS);
  }

  #tuple(items: readonly PyValue[]): void {
    if (items.length > 3) this.op(OP.MARK);
    for (const item of items) this.value(item);
    this.op([OP.EMPTY_TUPLE, OP.TUPLE1, OP.TUPLE2, OP.TUPLE3][items.length] ?? OP.TUPLE);
  }

  #map(map: ReadonlyMap<string, PyValue>): void {
    this.op(OP.EMPTY_DICT);
    this.op(OP.MARK);
    for (const [key, item] of map) {
      this.#string(key);
      this.value(item);
    }
    this.op(OP.SETITEMS);
  }

  #record(record: PyRecord): void {
    this.op(OP.EMPTY_DICT);
    this.op(OP.MARK);
    for (const key in record) {
      const item = record[key];
      if (item === undefined) continue;
      this.#string(key);
      this.value(item);
    }
    this.op(OP.SETITEMS);
  }

  #sharedValue(shared: PyShared): void {
    const known = this.#shared.get(shared);
    if (known !== undefined) return this.#memoOp(OP.BINGET, OP.LONG_BINGET, known);
    this.value(shared.value);
    if (shared.uses > 1) this.#shared.set(shared, this.put());
  }
}
