/** What is missing or wrong, in words. */
import type { LogFile } from "../../model/log-digest.ts";
import { count, thousands } from "../../base/text.ts";
import type { FilePart, LeftOut } from "./partial-digest.ts";
import { MOST_STREAMS } from "./stream-table.ts";

export function fileOf(name: string, part: FilePart): LogFile {
  const { bytes, lines, cutLines, nulLines } = part;
  const defects: string[] = [];
  if (cutLines > 0)
    defects.push(`${count(cutLines, "line")} longer than 8 KB: what is beyond was not looked at`);
  if (nulLines > 0) defects.push(`NUL bytes in ${count(nulLines, "place")}`);
  return { name, bytes, lines, defects };
}

export function missingWords(left: LeftOut & { readonly reports: number }): string[] {
  const missing: string[] = [];
  if (left.lumped > 0)
    missing.push(
      `${count(left.lumped, "line")} came when there were too many different ones already, and were put together ` +
        "with those that begin alike",
    );
  if (left.cells > 0)
    missing.push(
      `who wrote ${count(left.cells, "line")} was not counted: too many writers and messages`,
    );
  if (left.isThinned)
    missing.push(
      "too many lines may tell of a failure to keep them all: of those that repeat, fewer are kept",
    );
  if (left.blocks > 0)
    missing.push(
      `${count(left.blocks, "traceback or stack")} between the first and the last were left out`,
    );
  if (left.streams > 0)
    missing.push(
      `${count(left.streams, "line")} of writers after the first ${thousands(MOST_STREAMS)} were not told apart`,
    );
  if (left.reports > 0)
    missing.push(
      `${count(left.reports, "report")} of iterations between the first and the last were left out`,
    );
  return missing;
}
