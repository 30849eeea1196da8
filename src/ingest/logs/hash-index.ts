/** Numbers pairs of 32-bit keys 0, 1, 2, … in the order of their coming: open addressing in typed arrays, no object a key. */
import { grown } from "../grown.ts";

export class HashIndex {
  #slots: Int32Array;
  #mask: number;
  a: Int32Array;
  b: Int32Array;
  size = 0;

  constructor(capacity = 1024) {
    let slots = 16;
    while (slots < capacity * 2) slots *= 2;
    this.#slots = new Int32Array(slots).fill(-1);
    this.#mask = slots - 1;
    this.a = new Int32Array(slots / 2);
    this.b = new Int32Array(slots / 2);
  }

  /** -1 where the pair is new. */
  find(a: number, b: number): number {
    const slots = this.#slots;
    const mask = this.#mask;
    for (let slot = mixed(a, b) & mask; ; slot = (slot + 1) & mask) {
      const index = slots[slot]!;
      if (index < 0 || (this.a[index] === a && this.b[index] === b)) return index;
    }
  }

  /** Only for pairs that are not there. */
  add(a: number, b: number): number {
    if ((this.size + 1) * 2 > this.#slots.length) this.#grow();
    const index = this.size++;
    this.a = grown(this.a, this.size);
    this.b = grown(this.b, this.size);
    this.a[index] = a;
    this.b[index] = b;
    this.#place(index);
    return index;
  }

  #grow(): void {
    this.#slots = new Int32Array(this.#slots.length * 2).fill(-1);
    this.#mask = this.#slots.length - 1;
    for (let index = 0; index < this.size; index++) this.#place(index);
  }

  #place(index: number): void {
    let slot = mixed(this.a[index]!, this.b[index]!) & this.#mask;
    while (this.#slots[slot]! >= 0) slot = (slot + 1) & this.#mask;
    this.#slots[slot] = index;
  }
}

function mixed(a: number, b: number): number {
  const h = Math.imul(a, 0x9e3779b1) ^ Math.imul(b, 0x85ebca6b);
  return h ^ (h >>> 15);
}
