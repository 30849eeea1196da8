/**
 * Is it the slow rank's GPU or its CPU? Two witnesses. Of the time that the others wait for it, which part passed between its call and
 * its operator's start: only a GPU that is behind makes calls wait. And whether its CPU calls later than the others' by as much: a
 * slow CPU does. A CPU that waits for its own GPU in every iteration is late, too, and its calls find the GPU idle: where the first
 * witness says CPU and the second one nothing, the record hardly tells.
 */
import { median } from "../../maths/robust.ts";
import { type Account, growthAt, row } from "./account.ts";

/**
 * Log odds of the GPU: fitted on 68 slow ranks of recorded jobs. Whole families left out, 65 are right, and what is wrong stands
 * below 0.8; further witnesses (queues, pauses between calls, calls that explain a lead in full) made it worse.
 */
const GPU_ODDS = -0.5;
const PER_PART = 6.5;
const PER_LATENESS = -4;
/** Where no collective tells: as usual where a slow CPU and a slow GPU are as probable. */
const UNKNOWN_PART = 0.3;

export interface GpuOrCpu {
  /** Part of the others' waiting that its GPU was behind; NaN where nothing tells. */
  readonly gpuPart: number;
  /** How much later its CPU calls than the others', as a share of its lead. */
  readonly lateness: number;
  /** That it is its GPU. */
  readonly probability: number;
}

/** `lead`: of the rank since the moment, shares of a block. */
export function gpuOrCpu(account: Account, place: number, moment: number, lead: number): GpuOrCpu {
  const { blocks, calls } = account;
  const [waited, waitedGpu] = [calls.waited, calls.waitedGpu].map((column) =>
    row(column, place, blocks)
      .subarray(moment)
      .reduce((sum, share) => sum + share, 0),
  ) as [number, number];
  const gpuPart = waited > 0 ? waitedGpu / waited : NaN;
  const lateness = Math.min(1, Math.max(0, latenessOf(account, place, moment) / lead)) || 0;
  const part = Number.isNaN(gpuPart) ? UNKNOWN_PART : gpuPart;
  const odds = GPU_ODDS + PER_PART * part + PER_LATENESS * lateness;
  return { gpuPart, lateness, probability: 1 / (1 + Math.exp(-odds)) };
}

/** How much later its calls come than its peers', or over how much more time they are spread: whichever grew more. */
function latenessOf(account: Account, place: number, moment: number): number {
  const { calls, blocks, issuing } = account;
  const behind = row(moment === 0 ? calls.behindRole : calls.behind, place, blocks);
  const spread = moment === 0 ? 0 : beyondOthers(account, issuing, place, moment);
  return Math.max(0, growthAt(behind, moment) || 0, spread || 0);
}

/** Growth since a moment beyond that of the other ranks. */
function beyondOthers(
  { ranks, blocks }: Account,
  column: Float64Array,
  place: number,
  moment: number,
): number {
  const growths = ranks.map((_, other) => growthAt(row(column, other, blocks), moment));
  return growths[place]! - median(growths.filter((_, other) => other !== place));
}
