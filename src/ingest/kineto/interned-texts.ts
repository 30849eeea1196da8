/**
 * Texts of a trace as numbers, found by their bytes: a string is made once for each distinct text, not for each
 * event. Kernel names have hundreds of bytes and come back millions of times.
 */
const FIRST_SLOTS = 1 << 10;
/** Distinct texts; only hostile files, or Python functions of every module there is, have more. */
const MAX_TEXTS = 1 << 17;
const MAX_BYTES = 64 << 20;
const MAX_TEXT_BYTES = 1 << 14;
const BACKSLASH = 92;

/** What texts beyond the limits are called. */
const TOO_MANY = "(one of too many names)";

export class InternedTexts {
  readonly texts: string[] = [];
  /** The bytes of all texts, one behind the other. */
  #arena = new Uint8Array(1 << 16);
  #used = 0;
  /** By number: where its bytes begin; and behind the last, where they end. */
  readonly #from: number[] = [0];
  #slots = new Int32Array(FIRST_SLOTS).fill(-1);
  #hashes: number[] = [];
  #overflow = -1;

  /** The number of a text, given as the bytes between its quotes. */
  intern(bytes: Uint8Array, at: number, givenLength: number): number {
    const length = Math.min(givenLength, MAX_TEXT_BYTES);
    let hash = length;
    for (let i = at; i < at + length; i++) hash = Math.imul(hash ^ bytes[i]!, 0x01000193);
    hash = (hash ^ (hash >>> 15)) >>> 0;
    const mask = this.#slots.length - 1;
    let slot = hash & mask;
    for (; this.#slots[slot]! >= 0; slot = (slot + 1) & mask) {
      const id = this.#slots[slot]!;
      if (this.#hashes[id] === hash && this.#isSame(id, bytes, at, length)) return id;
    }
    if (this.texts.length >= MAX_TEXTS || this.#used + length > MAX_BYTES) return this.#rest();
    const id = this.#add(decode(bytes, at, length), hash);
    this.#reserve(length);
    this.#arena.set(bytes.subarray(at, at + length), this.#used);
    this.#used += length;
    this.#from.push(this.#used);
    this.#slots[slot] = id;
    if (2 * this.texts.length > this.#slots.length) this.#rehash();
    return id;
  }

  #isSame(id: number, bytes: Uint8Array, at: number, length: number): boolean {
    const from = this.#from[id]!;
    if (this.#from[id + 1]! - from !== length) return false;
    const arena = this.#arena;
    for (let i = 0; i < length; i++) if (arena[from + i] !== bytes[at + i]) return false;
    return true;
  }

  #add(text: string, hash: number): number {
    this.#hashes.push(hash);
    return this.texts.push(text) - 1;
  }

  /** Has no bytes and no slot: nothing is ever found to be equal to it. */
  #rest(): number {
    if (this.#overflow < 0) {
      this.#overflow = this.#add(TOO_MANY, 0);
      this.#from.push(this.#used);
    }
    return this.#overflow;
  }

  #reserve(length: number): void {
    if (this.#used + length <= this.#arena.length) return;
    const larger = new Uint8Array(Math.max(2 * this.#arena.length, this.#used + length));
    larger.set(this.#arena.subarray(0, this.#used));
    this.#arena = larger;
  }

  #rehash(): void {
    const slots = new Int32Array(2 * this.#slots.length).fill(-1);
    const mask = slots.length - 1;
    for (const id of this.#slots) {
      if (id < 0) continue;
      let slot = this.#hashes[id]! & mask;
      while (slots[slot]! >= 0) slot = (slot + 1) & mask;
      slots[slot] = id;
    }
    this.#slots = slots;
  }
}

function decode(bytes: Uint8Array, at: number, length: number): string {
  const raw = Buffer.from(bytes.buffer, bytes.byteOffset + at, length).toString("utf8");
  if (!bytes.subarray(at, at + length).includes(BACKSLASH)) return raw;
  try {
    return JSON.parse(`"${raw}"`) as string;
  } catch {
    // Kineto escapes only some of what JSON wants escaped; paths of Windows come as they are.
    return raw;
  }
}
