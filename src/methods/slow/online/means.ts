/** What a block of each rank was spent on, on average over some blocks. */
import type { KeptBlock } from "./kept-block.ts";

/** By place; shares of a block, and operators issued a millisecond. */
export interface Means {
  readonly inside: Float64Array;
  readonly late: Float64Array;
  readonly gpu: Float64Array;
  readonly onWire: Float64Array;
  readonly issued: Float64Array;
}

export function meansOf(blocks: readonly KeptBlock[], ranks: number): Means {
  const sums = {
    inside: new Float64Array(ranks),
    late: new Float64Array(ranks),
    gpu: new Float64Array(ranks),
    onWire: new Float64Array(ranks),
    issued: new Float64Array(ranks),
  };
  const heard = new Float64Array(ranks);
  for (const { block } of blocks)
    for (let place = 0; place < ranks; place++) {
      if (Number.isNaN(block.inside[place]!)) continue;
      heard[place]!++;
      sums.inside[place]! += block.inside[place]!;
      sums.late[place]! += block.late[place]!;
      sums.gpu[place]! += block.gpu[place]!;
      sums.onWire[place]! += block.onWire[place]!;
      sums.issued[place]! += block.issued[place]! / block.lengthMs;
    }
  for (const column of Object.values(sums))
    for (let place = 0; place < ranks; place++) column[place]! /= heard[place]!;
  return sums;
}

/** Of iterations in these blocks, milliseconds; NaN where they are not known. */
export function iterationMsOf(blocks: readonly KeptBlock[]): number {
  let [sum, known] = [0, 0];
  for (const { block } of blocks)
    if (!Number.isNaN(block.iterationMs)) [sum, known] = [sum + block.iterationMs, known + 1];
  return known === 0 ? NaN : sum / known;
}
