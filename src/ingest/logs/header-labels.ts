/** Labels before every line of a file that could be words of a message where they stand alone. */
import type { LinePrefix } from "./line-prefix.ts";

/** srun's task, padded to one width; any host of pdsh; a bracket that somebody made up: "[worker-3|rank=17]". */
export type Label = "task" | "host" | "tag" | "";

const NEARLY_ALL = 0.9;
const FORMS: Readonly<Record<Exclude<Label, "">, RegExp>> = {
  task: /^ {0,6}(\d{1,6}): /,
  host: /^([A-Za-z][\w.-]{1,80}): /,
  tag: /^[[(<]([^[\](){}<>"']{1,60})[\])>]:? ?(?=\S)/,
};
const RANK_KEY = /(?<!\w)rank ?[=:#-]? ?(\d{1,7})(?!\w)/i;
const HOST_KEY = /(?<!\w)(?:host|node)(?:name)?[=:]([A-Za-z][\w.-]{0,60})/i;
const LABELS = ["task", "host", "tag"] as const;
/** Lines of which it is asked whether their head is known. */
const ASKED = 20;
/** Whose names have no digit are words: "Epoch", "INFO". */
const MOST_DIGITLESS = 0.2;

/** `isKnown`: whether a line's head is understood without this; then it tells more than a label would. */
export function labelOf(lines: readonly string[], isKnown: (line: string) => boolean): Label {
  const label = LABELS.find((one) => isLabel(one, lines));
  if (!label) return "";
  const some = lines.slice(0, ASKED);
  return some.filter(isKnown).length < some.length / 2 ? label : "";
}

function isLabel(label: Exclude<Label, "">, lines: readonly string[]): boolean {
  const names: string[] = [];
  for (const line of lines) {
    const name = FORMS[label].exec(line)?.[1];
    if (name !== undefined) names.push(name);
  }
  if (names.length < NEARLY_ALL * lines.length) return false;
  const few = new Set(names);
  if (label === "tag") {
    const alike = new Set(names.map((name) => name.replaceAll(/\d+/g, "0")));
    if (alike.size > 1 || !/\d/.test(names[0]!)) return false;
    // Who says "rank" needs no second rank to be believed.
    return RANK_KEY.test(names[0]!) || areWriters(names);
  }
  // Several writers with several lines each: numbered or named items come once.
  if (few.size < 2 || few.size > names.length / 3) return false;
  return (
    label === "task" ||
    [...few].filter((name) => !/\d/.test(name)).length <= MOST_DIGITLESS * few.size
  );
}

/** Writers come back after others have written; epochs and steps do not. */
export function areWriters(names: readonly string[]): boolean {
  const few = new Set(names);
  if (few.size < 2 || few.size > names.length / 3) return false;
  let changes = 0;
  for (let i = 1; i < names.length; i++) if (names[i] !== names[i - 1]) changes++;
  return changes >= 2 * few.size;
}

/** Where the label ends, 0 for none; whose it is goes into `out`. */
export function skipLabel(line: string, label: Label, out: LinePrefix): number {
  out.writerFrom = out.writerTo = out.hostFrom = out.hostTo = out.rankFrom = out.rankTo = -1;
  const m = label === "" ? null : FORMS[label].exec(line);
  if (!m) return 0;
  const name = m[1]!;
  const from = m[0].indexOf(name);
  if (label === "host") {
    out.hostFrom = from;
    out.hostTo = from + name.length;
    return m[0].length;
  }
  const rank = label === "tag" ? RANK_KEY.exec(name) : null;
  const host = label === "tag" ? HOST_KEY.exec(name) : null;
  if (rank) {
    out.rankFrom = from + rank.index + rank[0].lastIndexOf(rank[1]!);
    out.rankTo = out.rankFrom + rank[1]!.length;
  } else {
    out.writerFrom = from;
    out.writerTo = from + name.length;
  }
  if (host) {
    out.hostFrom = from + host.index + host[0].lastIndexOf(host[1]!);
    out.hostTo = out.hostFrom + host[1]!.length;
  }
  return m[0].length;
}
