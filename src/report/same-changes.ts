/** Ranks that wait for each other slow down together: whether two series tell the same story. */
import type { TrackedSeries } from "../model/series.ts";

/** Ranks see a change an iteration or two apart. */
const TOLERANCE = 2;

export function sameChanges(a: TrackedSeries, b: TrackedSeries): boolean {
  return (
    a.series.basis === b.series.basis &&
    a.changePoints.length === b.changePoints.length &&
    fluctuates(a) === fluctuates(b) &&
    a.changePoints.every(({ iteration, direction }, k) => {
      const other = b.changePoints[k]!;
      return direction === other.direction && Math.abs(iteration - other.iteration) <= TOLERANCE;
    })
  );
}

function fluctuates({ episodes }: TrackedSeries): boolean {
  return episodes.some(({ type }) => type === "fluctuation");
}

/** Lists of items that are alike, in the order in which the first of each stands. */
export function grouped<T>(items: readonly T[], areAlike: (a: T, b: T) => boolean): T[][] {
  const groups: T[][] = [];
  for (const one of items) {
    const group = groups.find(([first]) => areAlike(first!, one));
    if (group) group.push(one);
    else groups.push([one]);
  }
  return groups;
}
