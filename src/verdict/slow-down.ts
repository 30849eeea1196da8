/** The slow-down that the verdict is about: the first that the tracker hands over wastes most. */
import type { Finding } from "../model/finding.ts";

/** Below this the tracker is not sure enough of a change to base a verdict on it. */
const MIN_WEIGHT = 0.6;

export function slowDownOf(findings: readonly Finding[]): Finding | null {
  return (
    findings.find(({ data, weight }) => data["slowDown"] === true && weight >= MIN_WEIGHT) ?? null
  );
}
