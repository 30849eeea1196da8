/** Times in which a machine was unlike its peers in one metric. */
import type { View } from "./views.ts";

export interface Episode {
  readonly view: View;
  readonly machine: number;
  readonly fromS: number;
  readonly toS: number;
  /** Whether it lasts to the end of what was seen of the machine. */
  readonly isOpen: boolean;
  /** Mean deviation by the limit: 1 is just unlike. */
  readonly strength: number;
  /** Mean deviation in units of what peers differ by. */
  readonly sigmas: number;
}

/** An episode goes on while the deviation stays above this share of the limit: noise does not cut it in two. */
const HOLD = 0.5;
const MAX_GAP_BLOCKS = 2;
/** A machine that jumps about is unlike only beyond so many of its own jumps. */
const JUMPS = 4;
/** Share of its blocks that must be fully unlike. */
const LEAST_SHARE = 0.6;

export function episodesOf(view: View, isIgnored: (atS: number) => boolean): Episode[] {
  const { blocks, deviation, distance, limit, noise, jumps, role } = view.peers;
  const { count, startS, blockS } = blocks;
  const sign = view.side === "low" ? -1 : 1;
  const ignored = Uint8Array.from({ length: count }, (_, b) =>
    isIgnored(startS + (b + 0.5) * blockS) ? 1 : 0,
  );
  const episodes: Episode[] = [];
  for (let m = 0; m < role.length; m++) {
    const row = m * count;
    const limits = role[m]! * count;
    let from = -1;
    let last = -1;
    let unlike = 0;
    let strength = 0;
    let sigmas = 0;
    let seen = 0;
    let like = 0;
    let likeSince = 0;
    const close = (end: number): void => {
      // Two samples that are far off, with some like everybody's between them, are no state that lasts.
      const lasts = seen >= LEAST_SHARE * (seen + like);
      if (from >= 0 && unlike >= LEAST_SHARE * seen && lasts) {
        episodes.push({
          view,
          machine: m,
          fromS: startS + from * blockS,
          toS: startS + (last + 1) * blockS,
          isOpen: last >= end - 2,
          strength: strength / seen,
          sigmas: sigmas / seen,
        });
      }
      from = -1;
      unlike = strength = sigmas = seen = like = likeSince = 0;
    };
    let end = count;
    while (end > 0 && Number.isNaN(deviation[row + end - 1]!)) end--;
    for (let b = 0; b < end; b++) {
      // Unlike its peers as they are, and unlike its own habit: a machine at everybody's level has left nobody.
      const off = Math.min(sign * deviation[row + b]!, sign * distance[row + b]!);
      // A block without a sample neither says nor denies anything.
      if (off !== off) continue;
      const share = ignored[b] === 1 ? 0 : off / Math.max(limit[limits + b]!, JUMPS * jumps[m]!);
      if (share >= 1 && from < 0) from = b;
      if (from < 0) continue;
      if (share >= HOLD) {
        last = b;
        seen++;
        like += likeSince;
        likeSince = 0;
        if (share >= 1) unlike++;
        strength += share;
        sigmas += off / noise[limits + b]!;
      } else if (b - last > MAX_GAP_BLOCKS) close(end);
      else likeSince++;
    }
    close(end);
  }
  return episodes;
}
