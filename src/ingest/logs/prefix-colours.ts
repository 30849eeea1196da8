/** Lines with a terminal's colours. */
import type { LinePrefix } from "./line-prefix.ts";

// eslint-disable-next-line no-control-regex
const ANSI = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;

/** Colours are taken out for reading, and every place is put back to where it stands in the line. */
export function readColoured(
  line: string,
  out: LinePrefix,
  read: (plain: string, out: LinePrefix) => void,
): void {
  const places: number[] = [];
  let plain = "";
  let from = 0;
  for (const m of line.matchAll(ANSI)) {
    for (let i = from; i < m.index; i++) places.push(i);
    plain += line.slice(from, m.index);
    from = m.index + m[0].length;
  }
  for (let i = from; i < line.length; i++) places.push(i);
  plain += line.slice(from);
  read(plain, out);
  if (out.contentStart > 0 || places[0] !== 0)
    out.contentStart = places[out.contentStart] ?? line.length;
  out.hostFrom = places[out.hostFrom] ?? -1;
  out.hostTo = (places[out.hostTo - 1] ?? -2) + 1;
  out.rankFrom = places[out.rankFrom] ?? -1;
  out.rankTo = (places[out.rankTo - 1] ?? -2) + 1;
  out.writerFrom = places[out.writerFrom] ?? -1;
  out.writerTo = (places[out.writerTo - 1] ?? -2) + 1;
  out.stampFrom = places[out.stampFrom] ?? -1;
}
