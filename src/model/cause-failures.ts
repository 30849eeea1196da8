import { getOrInsert } from "../base/group-by.ts";
import type { Job } from "./job.ts";
import type { LogCause } from "./log-report.ts";
import type { LogFailure } from "./log.ts";

/** A traceback's place may be any of its lines. */
const SAME_BLOCK_LINES = 40;

/**
 * Which processes tell of a cause themselves: failures at the lines that name it, or as near to them as one traceback is
 * long. Empty for what others say: the kernel, a monitor, a comparison of nodes.
 */
export function failuresOf({ failures }: Job, { places }: Pick<LogCause, "places">): LogFailure[] {
  const lines = new Map<string, number[]>();
  for (const { file, line } of places) {
    if (line === undefined) continue;
    getOrInsert(lines, file, () => []).push(line);
  }
  const own = failures.filter(({ role }) => role === "own");
  const distance = ({ file, line }: LogFailure): number =>
    (lines.get(file) ?? []).reduce((least, at) => Math.min(least, Math.abs(at - line)), Infinity);
  const exact = own.filter((failure) => distance(failure) === 0);
  return exact.length > 0 ? exact : own.filter((one) => distance(one) <= SAME_BLOCK_LINES);
}
