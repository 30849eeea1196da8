/** Is it the slow rank's GPU or its CPU? What of its own time grew: issued and not started, or not issued. */
import { median } from "../../../maths/robust.ts";
import type { Means } from "./means.ts";

/**
 * Where a rank's GPU is seen for no larger part of its own time, its CPU waits for it before each call (XLA's loops, copies to the
 * host): then late calls may be the one or the other.
 */
const SEEN_PART = 0.02;
/** A CPU that waits for its own GPU calls late: a quarter of the growth seen on the GPU means the GPU. */
const MIDDLE = 0.25;
const SLOPE = 10;
/** From this probability on one of them is named. */
const NAMED_FROM = 0.75;
/** What to expect where nothing grew. */
const UNKNOWN_PART = 0.3;
/** Share of a block that is nothing: a factor of what was nothing says nothing. */
const NOTHING = 0.002;

interface CauseOdds {
  readonly cause: "gpu-slow" | "cpu-stall" | null;
  readonly probability: number;
}

export function causeOf(places: readonly number[], before: Means, since: Means): CauseOdds {
  const parts = places.map((place) => {
    const gpu = beyondOthers(place, before.gpu, since.gpu);
    const late = beyondOthers(place, before.late, since.late);
    const part = gpu + late > 0 ? gpu / (gpu + late) : UNKNOWN_PART;
    const seen = Math.max(seenPart(place, before), seenPart(place, since));
    const isKnown = seen / (seen + SEEN_PART);
    return isKnown * (part + alike(place, before, since) / 2 - MIDDLE);
  });
  const gpu = 1 / (1 + Math.exp(-SLOPE * median(parts)));
  const probability = Math.max(gpu, 1 - gpu);
  if (probability < NAMED_FROM) return { cause: null, probability };
  return { cause: gpu >= 0.5 ? "gpu-slow" : "cpu-stall", probability };
}

/** Of the time outside operators, what its GPU is seen to take. */
function seenPart(place: number, { gpu, late }: Means): number {
  return (gpu[place]! + NOTHING / 2) / (gpu[place]! + late[place]! + NOTHING);
}

function beyondOthers(place: number, before: Float64Array, since: Float64Array): number {
  const growths = since.map((share, other) => share - before[other]!);
  const others = growths.filter((growth, other) => other !== place && !Number.isNaN(growth));
  return Math.max(0, growths[place]! - (others.length > 0 ? median(others) : 0));
}

/** How much of its CPU's growth its GPU's time shared, an operator issued: 0 to 1. */
function alike(place: number, before: Means, since: Means): number {
  const factor = (column: "gpu" | "late"): number =>
    (since[column][place]! + NOTHING) /
    since.issued[place]! /
    ((before[column][place]! + NOTHING) / before.issued[place]!);
  const [gpu, late] = [factor("gpu"), factor("late")];
  return late > 1 ? Math.max(0, Math.min(1, Math.log(gpu) / Math.log(Math.max(gpu, late)))) : 0;
}
