/**
 * Pauses that ended: a file server that answers again, after which all who waited go on as if nothing had been. Such a
 * pause ended no job, even where nothing else tells what did.
 */
import { getOrInsert } from "../../base/group-by.ts";
import type { FaultMatch } from "../../library/matcher.ts";
import type { LogDigest } from "../../model/log-digest.ts";
import { isSequel } from "./indicating.ts";

type Known = readonly (FaultMatch | null)[];

/** The waiting process got an error and does not continue where it was: a soft mount's error. */
const GAVE_UP = /\b(?:timed out|gave up|giving up)\b/i;

/** By kept line: whether it tells of a pause whose end the same writer reports, before the job failed. */
export function resumed(digest: LogDigest, known: Known, isOutlived: Uint8Array): Uint8Array {
  const { kept } = digest;
  const isResumed = new Uint8Array(kept.length);
  const ends = byRecord(digest, known);
  const failuresMs = failureTimes(digest, known, isOutlived);
  known.forEach((match, i) => {
    const endedBy = match?.record.endedBy;
    if (match === null || endedBy === undefined || GAVE_UP.test(kept[i]!.text)) return;
    const { stream, line } = kept[i]!;
    const after = (ends.get(`${stream} ${endedBy}`) ?? []).filter((end) => kept[end]!.line > line);
    const end =
      after.find((one) => isSame(match, known[one]!)) ??
      // Of many alike lines the first and the last are kept: its own end may be one of those between.
      (hasEnoughEnds(digest, known, ends, i) ? after.at(-1) : undefined);
    if (end === undefined) return;
    const { timeMs: fromMs } = kept[i]!;
    const { timeMs: toMs } = kept[end]!;
    if (!failuresMs.some((ms) => ms >= fromMs && ms <= toMs)) isResumed[i] = 1;
  });
  return isResumed;
}

/** Kept lines by writer and record, in order. */
function byRecord({ kept }: LogDigest, known: Known): Map<string, number[]> {
  const lines = new Map<string, number[]>();
  known.forEach((match, i) => {
    if (!match) return;
    const key = `${kept[i]!.stream} ${match.record.id}`;
    getOrInsert(lines, key, () => []).push(i);
  });
  return lines;
}

function isSame({ captures: trouble }: FaultMatch, { captures: end }: FaultMatch): boolean {
  return Object.keys(trouble).every((key) => end[key] === undefined || end[key] === trouble[key]);
}

/** Whether ends were left out, as many pauses ended as began, and none began after the last end. */
function hasEnoughEnds(
  digest: LogDigest,
  known: Known,
  lines: ReadonlyMap<string, readonly number[]>,
  i: number,
): boolean {
  const { kept } = digest;
  const { id, endedBy } = known[i]!.record;
  const began = lines.get(`${kept[i]!.stream} ${id}`) ?? [];
  const ended = lines.get(`${kept[i]!.stream} ${endedBy}`) ?? [];
  if (kept[ended.at(-1) ?? i]!.line <= kept[began.at(-1)!]!.line) return false;
  const endings = timesWritten(digest, ended);
  return endings > ended.length && endings >= timesWritten(digest, began);
}

/** Of all lines of one writer that these stand for. */
function timesWritten({ kept, cells }: LogDigest, lines: readonly number[]): number {
  const stream = kept[lines[0]!]!.stream;
  const shapes = new Set(lines.map((i) => kept[i]!.shape));
  let sum = 0;
  for (let c = 0; c < cells.count; c++)
    if (cells.stream[c] === stream && shapes.has(cells.shape[c]!)) sum += cells.lines[c]!;
  return sum;
}

/** A server that answers again after the job died of the pause does not undo that. */
function failureTimes({ kept }: LogDigest, known: Known, isOutlived: Uint8Array): number[] {
  const pauseEnds = new Set(known.map((match) => match?.record.endedBy));
  return known.flatMap((match, i) => {
    if (!match || isOutlived[i] === 1 || pauseEnds.has(match.record.id)) return [];
    return isSequel(match.record) ? [kept[i]!.timeMs] : [];
  });
}
