/** Ranks that wait for each other slow down together: series that say the same are drawn once. */
import type { Rank } from "../../model/ids.ts";
import type { TrackedSeries } from "../../model/series.ts";

export interface SeriesGroup {
  /** The one that lost most time. */
  readonly shown: TrackedSeries;
  /** Ranks of the others, ascending. */
  readonly alike: readonly Rank[];
}

/** Ranks see a change an iteration or two apart. */
const TOLERANCE = 2;

/** In the order in which the first of each group stands in the list. */
export function groupSeries(tracked: readonly TrackedSeries[]): SeriesGroup[] {
  const groups: TrackedSeries[][] = [];
  for (const one of tracked) {
    const group = groups.find(([first]) => saysTheSame(first!, one));
    if (group) group.push(one);
    else groups.push([one]);
  }
  return groups.map((members) => {
    const shown = members.reduce((a, b) => (b.wastedMs > a.wastedMs ? b : a));
    const others = members.filter((one) => one !== shown).map(({ series }) => series.rank!);
    const alike = [...new Set(others)].sort((a, b) => a - b);
    return { shown, alike };
  });
}

function saysTheSame(a: TrackedSeries, b: TrackedSeries): boolean {
  if (a.series.rank === null || b.series.rank === null) return false;
  return (
    a.series.basis === b.series.basis &&
    a.changePoints.length === b.changePoints.length &&
    fluctuates(a) === fluctuates(b) &&
    a.changePoints.every((change, k) => {
      const other = b.changePoints[k]!;
      const apart = Math.abs(change.iteration - other.iteration);
      return change.direction === other.direction && apart <= TOLERANCE;
    })
  );
}

function fluctuates({ episodes }: TrackedSeries): boolean {
  return episodes.some(({ type }) => type === "fluctuation");
}
