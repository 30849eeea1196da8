/** The slow-down that the verdict is about: the first that the tracker hands over wastes most. */
import { slowTimesOf } from "../model/facts.ts";
import type { Finding } from "../model/finding.ts";

/** Below this the tracker is not sure enough of a change to base a verdict on it. */
const MIN_WEIGHT = 0.6;

export function slowDownOf(findings: readonly Finding[]): Finding | null {
  return findings.find((finding) => finding.weight >= MIN_WEIGHT && slowTimesOf(finding)) ?? null;
}
