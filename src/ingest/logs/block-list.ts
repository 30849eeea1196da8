/** Blocks in the order of their lines; where they are too many, the middle of each stream's goes first. */
import type { LogBlock } from "../../model/log-digest.ts";
import { withoutMiddle } from "./without-middle.ts";

export class BlockList {
  readonly #most: number;
  list: LogBlock[] = [];
  dropped = 0;

  constructor(most: number) {
    this.#most = most;
  }

  add(block: LogBlock): void {
    if (this.list.length >= this.#most) this.#thin();
    if (this.list.length >= this.#most) this.dropped++;
    else this.list.push(block);
  }

  #thin(): void {
    const { list } = this;
    const stays = withoutMiddle(list.length, (row) => list[row]!.stream);
    this.list = list.filter((_, row) => stays[row] === 1);
    this.dropped += list.length - this.list.length;
  }
}
