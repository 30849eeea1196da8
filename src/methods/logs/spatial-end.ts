/** The last lines of a writer, where no iteration is reported: a job that broke at its launch. */
import type { LogDigest } from "../../model/log-digest.ts";
import type { LogNodes } from "./nodes.ts";
import type { LogTemplates } from "./spatial-matrix.ts";

/**
 * By template: 1 where it first comes after the last ordinary line that its writer has in common with other nodes. From
 * there on the writer was on its own; failure lines, which all have in the end, do not count as common.
 */
export function afterCommon(
  { cells, shapes, streams }: LogDigest,
  templates: LogTemplates,
  nodes: LogNodes,
  isTelling: (template: number) => boolean,
): Uint8Array {
  const first = new Int32Array(templates.texts.length).fill(-1);
  const isCommon = new Uint8Array(templates.texts.length);
  for (let c = 0; c < cells.count; c++) {
    const node = nodes.of[cells.stream[c]!]!;
    const template = templates.of[cells.shape[c]!]!;
    if (first[template] === -1) first[template] = node;
    else if (first[template] !== node) isCommon[template] = 1;
  }
  const lastCommon = new Float64Array(streams.length);
  for (let c = 0; c < cells.count; c++) {
    const shape = cells.shape[c]!;
    const template = templates.of[shape]!;
    if (isCommon[template] === 0 || shapes[shape]!.isPart || isTelling(template)) continue;
    const stream = cells.stream[c]!;
    if (cells.lastLine[c]! > lastCommon[stream]!) lastCommon[stream] = cells.lastLine[c]!;
  }
  const isAfter = new Uint8Array(templates.texts.length).fill(1);
  for (let c = 0; c < cells.count; c++)
    if (cells.firstLine[c]! < lastCommon[cells.stream[c]!]!)
      isAfter[templates.of[cells.shape[c]!]!] = 0;
  return isAfter;
}
