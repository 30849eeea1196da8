/** What a search of a stretch that still lasts says of when it began and when it ends. */
import { slowTimesOf } from "../model/facts.ts";
import type { Finding } from "../model/finding.ts";
import type { Rank } from "../model/ids.ts";

/** The stretch that was searched. */
export interface Stretch {
  readonly slowFrom: number;
  readonly from: string | null;
  /** The first slow iteration that was compared: of a stretch that lasts longer, a later one. */
  readonly comparedFrom: number;
  readonly accused: ReadonlySet<Rank>;
}

/** Iterations by which two witnesses of one change may differ. */
const SAME_CHANGE = 2;

/**
 * The last iteration that was compared is not the last slow one: a search has only a few slow iterations, and what looks
 * like so many spikes in them may as well go on. That somebody is slow no longer is seen later, by itself (docs/incidents.md).
 * Nor did it begin with the first that was compared, where who is accused already is slow in all of them.
 */
export function stillSlow(findings: readonly Finding[], stretch: Stretch): Finding[] {
  const { slowFrom, from, comparedFrom, accused } = stretch;
  return findings.map((finding) => {
    const times = slowTimesOf(finding);
    if (!times || (times.until !== null && times.until < slowFrom)) return finding;
    const ranks = finding.accuses.flatMap((one) => one.ranks);
    const isKnown = ranks.length > 0 && ranks.every((rank) => accused.has(rank));
    const late = times.iteration - comparedFrom;
    const since = isKnown && late >= 0 && late <= SAME_CHANGE ? { iteration: slowFrom, from } : {};
    const end = times.until === null ? {} : { until: null, to: null };
    return { ...finding, data: { ...times, ...since, ...end } };
  });
}
