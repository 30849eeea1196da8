/** How far nodes' clocks are apart, as events that all of them write tell: "first" means nothing within that. */
import { median, spread } from "../../maths/robust.ts";
import type { EventMatrix } from "./spatial-matrix.ts";

export interface FirstOrder {
  /** By entry of the matrix: when it first was, with the node's clock put right; or its line, in a common file. */
  at(entry: number): number;
  /** Differences below this say nothing. Infinity where nothing is comparable. */
  readonly bound: number;
  readonly isTime: boolean;
}

const COMMON_SHARE = 0.9;
/** More common events make the offsets no better. */
const MOST_COMMON = 200;
const LEAST_COMMON = 3;
/** Deviations of what common events leave over that an order must exceed. */
const SURE = 4;
const LEAST_BOUND_MS = 50;
const TIMED_SHARE = 0.9;

/** `isUsable`: events before the failure; what breaks is not simultaneous. */
export function firstOrder(
  matrix: EventMatrix,
  isUsable: (template: number) => boolean,
  isOneFile: boolean,
): FirstOrder {
  const entries = matrix.column.length;
  let timed = 0;
  for (let entry = 0; entry < entries; entry++) if (!Number.isNaN(matrix.firstMs[entry]!)) timed++;
  if (timed < TIMED_SHARE * entries || entries === 0) return byLine(matrix, isOneFile);
  const { offsets, left } = clockOffsets(matrix, isUsable);
  const bound = left === null ? 0 : Math.max(LEAST_BOUND_MS, SURE * left);
  return {
    isTime: true,
    // Without common events clocks are taken as they are; then only seconds count.
    bound: left === null ? 5000 : bound,
    at: (entry) => matrix.firstMs[entry]! - offsets[matrix.nodeOf[entry]!]!,
  };
}

function byLine(matrix: EventMatrix, isOneFile: boolean): FirstOrder {
  return {
    isTime: false,
    bound: isOneFile ? 0 : Infinity,
    at: (entry) => matrix.firstLine[entry]!,
  };
}

function clockOffsets(
  matrix: EventMatrix,
  isUsable: (template: number) => boolean,
): { readonly offsets: Float64Array; readonly left: number | null } {
  const { rows, columns, eventStart, byEvent, nodeOf, firstMs } = matrix;
  const off: number[][] = Array.from({ length: rows }, () => []);
  let common = 0;
  for (let t = 0; t < columns && common < MOST_COMMON; t++) {
    const list = byEvent.subarray(eventStart[t], eventStart[t + 1]);
    if (list.length < COMMON_SHARE * rows || list.length < 2 || !isUsable(t)) continue;
    const times = Float64Array.from(list, (entry) => firstMs[entry]!);
    const middle = median(times.filter((time) => !Number.isNaN(time)));
    if (Number.isNaN(middle)) continue;
    common++;
    list.forEach((entry, i) => {
      if (!Number.isNaN(times[i]!)) off[nodeOf[entry]!]!.push(times[i]! - middle);
    });
  }
  const offsets = Float64Array.from(off, (list) => (list.length === 0 ? 0 : median(list)));
  if (common < LEAST_COMMON) return { offsets: new Float64Array(rows), left: null };
  const residuals = off.flatMap((list, node) => list.map((value) => value - offsets[node]!));
  return { offsets, left: spread(residuals, 0) };
}
