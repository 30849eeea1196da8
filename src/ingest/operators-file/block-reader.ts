/**
 * Takes values out of the blocks of operators.flop as their bytes come by: those of all lanes, or of lane 0 alone.
 * A block holds three arrays of `count × lanes` doubles, operator by operator, so lane 0's values are every
 * lanes-th: the rest of a block, which may be gigabytes, is then passed over and never held.
 */
import type { FlopHeader } from "./header.ts";

const DOUBLE = 8;
const HEAD_VALUES = 4;

export interface Block {
  readonly iteration: number;
  readonly stage: number;
  /** Lanes that were taken; the value of operator o and lane l stands at o × lanes + l. */
  readonly lanes: number;
  readonly issueNs: Float64Array;
  readonly startNs: Float64Array;
  readonly endNs: Float64Array;
}

interface BlockVisitor {
  /** Asked at the head of each block, before its values: whether those of all lanes are wanted. */
  wantsAll(stage: number): boolean;
  /** The arrays are used again for the next block. */
  block(block: Block): void;
}

export class BlockReader {
  readonly #header: FlopHeader;
  readonly #visitor: BlockVisitor;
  readonly #head = new Float64Array(HEAD_VALUES);
  #values = new Float64Array(0);
  /** Of the current block. */
  #lanes = 1;
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

  constructor(header: FlopHeader, visitor: BlockVisitor) {
    this.#header = header;
    this.#visitor = visitor;
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
    if (!this.#inHead) this.#skip = (this.#header.lanes - this.#lanes) * DOUBLE;
    if (this.#taken === this.#wanted && this.#skip === 0) this.#finish();
  }

  #finish(): void {
    this.#taken = 0;
    if (this.#inHead) this.#begin();
    else this.#hand();
  }

  #begin(): void {
    const [, stage, count, lanes] = this.#head;
    const known = this.#header.stages[stage!];
    this.#badHead = known?.count !== count || lanes !== this.#header.lanes;
    if (this.#badHead) return;
    this.#lanes = this.#visitor.wantsAll(stage!) ? this.#header.lanes : 1;
    this.#wanted = 3 * count! * this.#lanes;
    if (this.#values.length < this.#wanted) this.#values = new Float64Array(this.#wanted);
    this.#inHead = false;
    if (count === 0) this.#hand();
  }

  #hand(): void {
    const [iteration, stage, count] = this.#head;
    const size = count! * this.#lanes;
    this.#inHead = true;
    this.#wanted = HEAD_VALUES;
    this.#taken = 0;
    this.#visitor.block({
      iteration: iteration!,
      stage: stage!,
      lanes: this.#lanes,
      issueNs: this.#values.subarray(0, size),
      startNs: this.#values.subarray(size, 2 * size),
      endNs: this.#values.subarray(2 * size, 3 * size),
    });
  }
}
