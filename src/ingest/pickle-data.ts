/**
 * What a pickle holds, once decoded: values in one arena of typed arrays (kind + number), containers as
 * slices of it, strings interned by their bytes. No object a record: 20,000 entries make 2 million
 * values; as objects they cost ten times the time and memory.
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

export type PickleProblem =
  /** The file ends in the middle; what came before is kept. */
  | { readonly kind: "truncated"; readonly offset: number }
  /** It wants to import or call something. Nothing of it is used. */
  | { readonly kind: "refused"; readonly offset: number; readonly opcode: string }
  /** Not a pickle that we understand. */
  | { readonly kind: "malformed"; readonly offset: number; readonly why: string };

export class Slots {
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
