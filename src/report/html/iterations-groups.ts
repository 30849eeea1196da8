/** Ranks that wait for each other slow down together: series that say the same are drawn once. */
import type { Rank } from "../../model/ids.ts";
import type { TrackedSeries } from "../../model/series.ts";
import { grouped, sameChanges } from "../same-changes.ts";

export interface SeriesGroup {
  /** The one that lost most time. */
  readonly shown: TrackedSeries;
  /** Ranks of the others, ascending. */
  readonly alike: readonly Rank[];
}

/** In the order in which the first of each group stands in the list. */
export function groupSeries(tracked: readonly TrackedSeries[]): SeriesGroup[] {
  return grouped(tracked, areAlike).map((members) => {
    const shown = members.reduce((a, b) => (b.wastedMs > a.wastedMs ? b : a));
    const others = members.filter((one) => one !== shown).map(({ series }) => series.rank!);
    const alike = [...new Set(others)].sort((a, b) => a - b);
    return { shown, alike };
  });
}

/** Only ranks: the others are named by their numbers. */
function areAlike(a: TrackedSeries, b: TrackedSeries): boolean {
  return a.series.rank !== null && b.series.rank !== null && sameChanges(a, b);
}
