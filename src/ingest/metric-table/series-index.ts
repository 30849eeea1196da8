/**
 * Series by the bytes that stand before their values: `name{labels}`. Kept are two hashes of the bytes, not the bytes:
 * of a thousand machines they would be hundreds of megabytes, and 64 bits do not meet by chance.
 */
const FIRST_SLOTS = 1 << 12;
export const MAX_SERIES = 1 << 23;
const EMPTY = -2147483648;

export class SeriesIndex {
  #one = new Int32Array(FIRST_SLOTS);
  #two = new Int32Array(FIRST_SLOTS);
  #value = new Int32Array(FIRST_SLOTS).fill(EMPTY);
  #size = 0;
  #hashOne = 0;
  #hashTwo = 0;
  #slot = 0;

  get size(): number {
    return this.#size;
  }

  /** What was put for these bytes, undefined where nothing was; `put` then goes to the place that was found. */
  find(bytes: Uint8Array, from: number, end: number): number | undefined {
    let one = end - from;
    let two = 0x9e3779b9;
    let i = from;
    for (; i + 3 < end; i += 4) {
      const word = bytes[i]! | (bytes[i + 1]! << 8) | (bytes[i + 2]! << 16) | (bytes[i + 3]! << 24);
      one = Math.imul(one ^ word, 0x01000193);
      // Multiplying carries upwards only; without this the high bits of words would meet.
      one ^= one >>> 15;
      two = Math.imul(two + word, 0x85ebca6b) ^ (two >>> 13);
      two ^= two >>> 16;
    }
    for (; i < end; i++) {
      one = Math.imul(one ^ bytes[i]!, 0x01000193);
      two = Math.imul(two + bytes[i]!, 0x85ebca6b) ^ (two >>> 13);
    }
    this.#hashOne = (one ^ (one >>> 15)) | 0;
    this.#hashTwo = two | 0;
    this.#slot = this.#slotOf(this.#hashOne, this.#hashTwo);
    const value = this.#value[this.#slot]!;
    return value === EMPTY ? undefined : value;
  }

  put(value: number): void {
    this.#one[this.#slot] = this.#hashOne;
    this.#two[this.#slot] = this.#hashTwo;
    this.#value[this.#slot] = value;
    if (2 * ++this.#size > this.#value.length) this.#grow();
  }

  #slotOf(one: number, two: number): number {
    const mask = this.#value.length - 1;
    let slot = one & mask;
    while (this.#value[slot] !== EMPTY && (this.#one[slot] !== one || this.#two[slot] !== two)) {
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  #grow(): void {
    const [one, two, value] = [this.#one, this.#two, this.#value];
    this.#one = new Int32Array(2 * one.length);
    this.#two = new Int32Array(2 * one.length);
    this.#value = new Int32Array(2 * one.length).fill(EMPTY);
    for (let i = 0; i < value.length; i++) {
      if (value[i] === EMPTY) continue;
      const slot = this.#slotOf(one[i]!, two[i]!);
      this.#one[slot] = one[i]!;
      this.#two[slot] = two[i]!;
      this.#value[slot] = value[i]!;
    }
  }
}
