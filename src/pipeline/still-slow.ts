/** What a search of a stretch that still lasts says of when it ends. */
import { slowTimesOf } from "../model/facts.ts";
import type { Finding } from "../model/finding.ts";

/**
 * The last iteration that was compared is not the last slow one: a search has only a few slow iterations, and what looks
 * like so many spikes in them may as well go on. That somebody is slow no longer is seen later, by itself (docs/incidents.md).
 */
export function stillSlow(findings: readonly Finding[], slowFrom: number): Finding[] {
  return findings.map((finding) => {
    const times = slowTimesOf(finding);
    if (!times || times.until === null || times.until < slowFrom) return finding;
    return { ...finding, data: { ...times, until: null, to: null } };
  });
}
