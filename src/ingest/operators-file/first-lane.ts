/**
 * Takes the values of lane 0 out of the blocks of operators.flop as their bytes come by. A block holds three
 * arrays of `count × lanes` doubles, operator by operator, so the values wanted are every lanes-th: the rest
 * of a block, which may be gigabytes, is passed over and never held.
 */
import type { FlopHeader } from "./header.ts";

const DOUBLE = 8;
const HEAD_VALUES = 4;

export interface Block {
  readonly iteration: number;
  readonly stage: number;
  readonly issueNs: Float64Array;
  readonly startNs: Float64Array;
  readonly endNs: Float64Array;
}

export class FirstLane {
  readonly #header: FlopHeader;
  /** The arrays are used again for the next block. */
  readonly #onBlock: (block: Block) => void;
  readonly #head = new Float64Array(HEAD_VALUES);
  readonly #values: Float64Array;
  /** A double that lies across two chunks. */
  readonly #piece = new Uint8Array(DOUBLE);
  #pieceBytes = 0;
  #inHead = true;
  /** Values taken of the current head or block, and how many it has. */
  #taken = 0;
  #wanted = HEAD_VALUES;
  /** Bytes to pass over before the next value. */
  #skip = 0;
  #badHead = false;

  constructor(header: FlopHeader, onBlock: (block: Block) => void) {
    this.#header = header;
    this.#onBlock = onBlock;
    const most = header.stages.reduce((n, { count }) => Math.max(n, count), 0);
    this.#values = new Float64Array(3 * most);
  }

  /** Whether a block did not say what the header says; what follows it cannot be found. */
  get isLost(): boolean {
    return this.#badHead;
  }

  /** Whether the bytes so far end inside a block. */
  get isInside(): boolean {
    return !this.#inHead || this.#taken > 0 || this.#pieceBytes > 0;
  }

  push(chunk: Uint8Array): void {
    const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let at = 0;
    while (at < chunk.length && !this.#badHead) {
      if (this.#skip > 0) {
        const step = Math.min(this.#skip, chunk.length - at);
        this.#skip -= step;
        at += step;
        if (this.#skip > 0) return;
        if (this.#taken === this.#wanted) this.#finish();
      } else if (this.#pieceBytes === 0 && at + DOUBLE <= chunk.length) {
        this.#take(view.getFloat64(at, true));
        at += DOUBLE;
      } else {
        this.#piece[this.#pieceBytes++] = chunk[at++]!;
        if (this.#pieceBytes < DOUBLE) continue;
        this.#pieceBytes = 0;
        this.#take(new DataView(this.#piece.buffer).getFloat64(0, true));
      }
    }
  }

  #take(value: number): void {
    (this.#inHead ? this.#head : this.#values)[this.#taken++] = value;
    if (!this.#inHead) this.#skip = (this.#header.lanes - 1) * DOUBLE;
    if (this.#taken === this.#wanted && this.#skip === 0) this.#finish();
  }

  #finish(): void {
    this.#taken = 0;
    if (!this.#inHead) {
      const { count } = this.#header.stages[this.#head[1]!]!;
      this.#onBlock({
        iteration: this.#head[0]!,
        stage: this.#head[1]!,
        issueNs: this.#values.subarray(0, count),
        startNs: this.#values.subarray(count, 2 * count),
        endNs: this.#values.subarray(2 * count, 3 * count),
      });
      this.#inHead = true;
      this.#wanted = HEAD_VALUES;
      return;
    }
    const [, stage, count, lanes] = this.#head;
    const known = this.#header.stages[stage!];
    this.#badHead = known?.count !== count || lanes !== this.#header.lanes;
    this.#inHead = this.#badHead;
    this.#wanted = 3 * count!;
    if (count === 0 && !this.#badHead) this.#finish();
  }
}
