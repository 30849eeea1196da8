/**
 * By which factor all ranks of a job became slower. More work, or lower clocks everywhere, lengthen everybody's own time by
 * the same factor: those who have more to do lose more milliseconds by it, and stand out from nobody.
 */
import { median } from "../../maths/robust.ts";
import { WARM_UP, type TimeBreakdown } from "./time-breakdown.ts";

/** Own time in some iterations and in the others. */
export interface OwnLevels {
  readonly usualMs: number;
  readonly slowMs: number;
}

/** Of what a rank's own time grew by, the least that its peers' factor does not explain. */
const ITS_OWN = 0.25;

export function ownLevels(
  { iteration, ownMs }: TimeBreakdown,
  isSlow: (iteration: number) => boolean,
): OwnLevels {
  const of = (wanted: boolean): number =>
    median(
      [...ownMs].filter((_, i) => iteration[i]! > WARM_UP && isSlow(iteration[i]!) === wanted),
    );
  return { usualMs: of(false), slowMs: of(true) };
}

/** 1 where most did not become slower, or nothing is known of them. */
export function commonFactor(levels: readonly OwnLevels[]): number {
  const factors = levels.flatMap(({ usualMs, slowMs }) =>
    usualMs > 0 && Number.isFinite(slowMs) ? [slowMs / usualMs] : [],
  );
  return factors.length > 0 ? Math.max(1, median(factors)) : 1;
}

/** How much of its own time's growth a rank shares with all: milliseconds an iteration. */
export function sharedMs(usualMs: number, factor: number): number {
  return Math.max(0, usualMs) * (factor - 1);
}

/** Whether nearly all that a rank became slower by is what all did. */
export function isShared(growthMs: number, usualMs: number, factor: number): boolean {
  return growthMs - sharedMs(usualMs, factor) < ITS_OWN * growthMs;
}
