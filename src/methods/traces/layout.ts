/**
 * Matrix products whose layout tensor cores cannot read (FLARE §7.3.2: a weight of 8192 × 8484 at a third of the
 * FLOPS). The trace itself proves it: a shape that is not aligned, and FLOPS far below those of an aligned product of
 * like size, in this run or in healthy ones.
 */
import type { FlopsRow, RankProfile } from "../../model/trace-profile.ts";
import { misalignedOf, type Misaligned } from "./gemm-shape.ts";

export interface BadLayout {
  readonly row: FlopsRow;
  readonly misaligned: Misaligned;
  /** TFLOPS of the aligned product that it is held against, and its shape. */
  readonly peer: FlopsRow;
  /** Share of the step that the layout costs. */
  readonly cost: number;
}

/** Kernels for unaligned data reach a half to a third; above this the library has found a way. */
const FAR_BELOW = 0.75;
/** Products of like size: within this factor of each other in operations. */
const LIKE_SIZE = 8;

export function badLayouts(
  { flops }: RankProfile,
  references: readonly RankProfile[],
  leastShare: number,
): BadLayout[] {
  const aligned = [...flops, ...references.flatMap((other) => other.flops)].filter(
    (row) => misaligned(row) === null && row.overlapped < row.count,
  );
  return flops.flatMap((row): BadLayout[] => {
    const found = misaligned(row);
    if (!found || row.overlapped === row.count) return [];
    const peers = aligned.filter((other) => {
      const ratio = work(other) / work(row);
      return other.elementBytes === row.elementBytes && ratio < LIKE_SIZE && ratio > 1 / LIKE_SIZE;
    });
    // The middle one: the best of many shapes is a lucky tile.
    const peer = peers.toSorted((a, b) => a.tflops - b.tflops)[peers.length >> 1];
    if (!peer || row.tflops >= FAR_BELOW * peer.tflops) return [];
    const cost = row.share * (1 - row.tflops / peer.tflops);
    return cost < leastShare ? [] : [{ row, misaligned: found, peer, cost }];
  });
}

function misaligned({ bmkn: [batch, m, k, n], elementBytes }: FlopsRow): Misaligned | null {
  return misalignedOf({ batch, m, k, n, elementBytes });
}

function work({ bmkn: [batch, m, k, n] }: FlopsRow): number {
  return batch * m * k * n;
}
