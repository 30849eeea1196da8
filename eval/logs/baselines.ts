/** What L4 was compared with (§6.1) and what people do first: nodes by first or by most errors, lines by keyword. */
import type { LogDigest, LogShape } from "../../src/model/log-digest.ts";
import type { LogNodes } from "../../src/methods/logs/nodes.ts";

const ERROR = /\b(?:error|fatal|critical|exception|traceback)\b|Error:|failed\b/i;
const KEYWORDS =
  /error|fail|fatal|exception|abort|killed|timeout|timed out|warn|panic|lost|refused|traceback|unable|cannot/i;

function isError({ level, text }: LogShape): boolean {
  return level === null ? ERROR.test(text) : level === "error" || level === "fatal";
}

export function isKeyword({ text }: LogShape): boolean {
  return KEYWORDS.test(text);
}

/** Error_time: whose first error is earliest, by its own clock; by line where there are no times. */
export function errorTime({ cells, shapes }: LogDigest, nodes: LogNodes): number[] {
  const first = new Float64Array(nodes.names.length).fill(Infinity);
  for (let c = 0; c < cells.count; c++) {
    const node = nodes.of[cells.stream[c]!]!;
    if (node < 0 || !isError(shapes[cells.shape[c]!]!)) continue;
    const at = Number.isNaN(cells.firstMs[c]!) ? cells.firstLine[c]! : cells.firstMs[c]!;
    if (at < first[node]!) first[node] = at;
  }
  return ranked(first, (a, b) => a - b, Infinity);
}

/** Error_count: who has most. */
export function errorCount({ cells, shapes }: LogDigest, nodes: LogNodes): number[] {
  const count = new Float64Array(nodes.names.length);
  for (let c = 0; c < cells.count; c++) {
    const node = nodes.of[cells.stream[c]!]!;
    if (node >= 0 && isError(shapes[cells.shape[c]!]!)) count[node]! += cells.lines[c]!;
  }
  return ranked(count, (a, b) => b - a, 0);
}

function ranked(
  values: Float64Array,
  order: (a: number, b: number) => number,
  none: number,
): number[] {
  return [...values.keys()]
    .filter((node) => values[node] !== none)
    .sort((a, b) => order(values[a]!, values[b]!) || a - b);
}
