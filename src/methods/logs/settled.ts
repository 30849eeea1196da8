/** Troubles that were over again: which they are, and where they count all the same. */
import type { FaultMatch } from "../../library/matcher.ts";
import type { LogDigest } from "../../model/log-digest.ts";
import { isSequel } from "./indicating.ts";
import { goingOn, mentioned, over, reportedOn, survived } from "./known-lines.ts";
import type { LogTemplates } from "./spatial-matrix.ts";

/** By kept line: whether its writer said that it was over, only reported it, lived on, or said that it continues. */
export function settled(digest: LogDigest, known: readonly (FaultMatch | null)[]): Uint8Array {
  return either(
    over(digest),
    mentioned(digest),
    survived(digest, known),
    goingOn(digest),
    reportedOn(digest),
  );
}

/** By kept line: the surer signs alone, that is what its writer said or wrote after it. */
export function saidOver(digest: LogDigest): Uint8Array {
  return either(over(digest), mentioned(digest));
}

function either(...signs: readonly Uint8Array[]): Uint8Array {
  return signs[0]!.map((_, i) => (signs.some((sign) => sign[i] === 1) ? 1 : 0));
}

/**
 * Troubles that were over again count only where nothing else tells of the failure. Beside another root any sign will
 * do. Beside those who only met the failure's end, its writer must have said so, or gone on: a process whose main thread
 * died of it often hangs until its watchdog speaks, and a message that goes on to say what is skipped may be the last.
 */
export function leaveOutSettled(
  digest: LogDigest,
  known: readonly (FaultMatch | null)[],
  isSettled: Uint8Array,
  isOutlived: Uint8Array,
): void {
  const isRoot = (i: number): boolean => known[i]?.record.role === "root" && isOutlived[i] === 0;
  const hasRoot = known.some((_, i) => isRoot(i) && isSettled[i] === 0);
  const hasSequel = known.some(
    (match, i) => match && isSequel(match.record) && isOutlived[i] === 0 && isSettled[i] === 0,
  );
  if (!hasRoot && !hasSequel) return;
  const signs = hasRoot ? isSettled : saidOver(digest);
  known.forEach((_, i) => {
    if (isRoot(i) && signs[i] === 1) isOutlived[i] = 1;
  });
}

const SETTLED = 0.15;

/** An event whose every line was outlived says as little about its node as about the job. */
export function lowerSettled(
  weights: Float64Array,
  { kept }: LogDigest,
  templates: LogTemplates,
  isOutlived: Uint8Array,
): void {
  const open = new Set<number>();
  kept.forEach(({ shape }, i) => {
    if (isOutlived[i] === 0) open.add(templates.of[shape]!);
  });
  for (const { shape } of kept) {
    const template = templates.of[shape]!;
    if (!open.has(template)) weights[template] = Math.min(weights[template]!, SETTLED);
  }
}
