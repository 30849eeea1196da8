/** Times by iteration, normal ones first, and what became of them in the slow ones. */
import { median } from "../../../maths/robust.ts";
import type { Durations, Split } from "./source.ts";

export function iterationsOf({ normal, slow }: Split): number[] {
  return [...normal, ...slow];
}

/** Sum of the places of each iteration. */
export function sums(durations: Durations, places: number, of?: readonly number[]): Float64Array {
  const series = new Float64Array(durations.length / places);
  for (let i = 0; i < series.length; i++) {
    if (of) for (const place of of) series[i]! += durations[i * places + place]!;
    else for (let place = 0; place < places; place++) series[i]! += durations[i * places + place]!;
  }
  return series;
}

/** How much more in the median slow iteration than in the median normal one. */
export function growth(series: Float64Array, { normal }: Split): number {
  return median(series.subarray(normal.length)) - median(series.subarray(0, normal.length));
}

/** The lesser of several sides' durations, element by element: nobody waits less than who came last. */
export function least(all: readonly Durations[]): Durations {
  const floor = Float64Array.from(all[0]!);
  for (const durations of all)
    for (let i = 0; i < floor.length; i++) if (durations[i]! < floor[i]!) floor[i] = durations[i]!;
  return floor;
}

/** Slow over normal; NaN where there is nothing to compare. */
export function ratio(series: Float64Array, { normal }: Split): number {
  return median(series.subarray(normal.length)) / median(series.subarray(0, normal.length));
}
