/** Blocks in the order of their lines; where they are too many, the middle of each stream's goes first. */
import type { LogBlock } from "../../model/log-digest.ts";

/**
 * Which rows stay where there are too many: of every stream the first eighth, where it is healthy, and the latter half,
 * where it fails. Streams with few rows keep them all.
 */
const FEW = 16;

export class BlockList {
  readonly #most: number;
  /** Characters of tracebacks that there is room for; beyond it a block keeps what it says, and where it stands. */
  #room: number;
  list: LogBlock[] = [];
  dropped = 0;

  constructor(most: number, room: number) {
    this.#most = most;
    this.#room = room;
  }

  add(given: LogBlock): void {
    const block = this.#fitted(given);
    if (this.list.length >= this.#most) this.#thin();
    if (this.list.length >= this.#most) this.dropped++;
    else this.list.push(block);
  }

  #fitted(block: LogBlock): LogBlock {
    const { rows, ...rest } = block;
    if (!rows) return block;
    const chars = rows.reduce((sum, { text }) => sum + text.length, 0);
    if (chars > this.#room) return rest;
    this.#room -= chars;
    return block;
  }

  #thin(): void {
    const { list } = this;
    const stays = withoutMiddle(list.length, (row) => list[row]!.stream);
    this.list = list.filter((_, row) => stays[row] === 1);
    this.dropped += list.length - this.list.length;
  }
}

/** 1 for rows that stay. `streamOf`: by row, in the order of time. */
export function withoutMiddle(count: number, streamOf: (row: number) => number): Uint8Array {
  const total = new Map<number, number>();
  for (let row = 0; row < count; row++)
    total.set(streamOf(row), (total.get(streamOf(row)) ?? 0) + 1);
  const seen = new Map<number, number>();
  const stays = new Uint8Array(count);
  for (let row = 0; row < count; row++) {
    const stream = streamOf(row);
    const at = seen.get(stream) ?? 0;
    seen.set(stream, at + 1);
    const all = total.get(stream)!;
    stays[row] = all < FEW || at < all / 8 || at >= all / 2 ? 1 : 0;
  }
  return stays;
}
