/**
 * What broke: root separated from cascade by the records' roles, by order within the bounds of clocks, and by what else is
 * said. A cascade is named only where nothing else is known, and then with little confidence.
 */
import { causeOfRecord, type Category } from "../../model/fault-record.ts";
import type { LogDigest } from "../../model/log-digest.ts";
import type { LogCause } from "../../model/log-report.ts";
import type { LogNodes } from "./nodes.ts";
import { weightOf, type SignatureGroup } from "./signature-groups.ts";

/** Other signs of the same category support it. */
const SUPPORT = 0.25;
/** The first among the roots is likelier the cause of the others. */
const FIRST_BONUS = 1.15;
const SKEW_MS = 5_000;
const MOST_CONFIDENCE = 0.95;
/** Where nothing says that a process ended, the trouble may be one that the job lived with. */
const MOST_OPEN = 0.75;
const MOST_ALTERNATIVES = 5;
const MOST_PLACES = 4096;

/** What follows from several lines together; weighs like a record. */
export interface ContextCause {
  readonly cause: Omit<LogCause, "confidence">;
  readonly weight: number;
}

export function causesOf(
  digest: LogDigest,
  groups: readonly SignatureGroup[],
  contexts: readonly ContextCause[],
  nodes: LogNodes,
  hasEnded: boolean,
): LogCause[] {
  const most = hasEnded ? MOST_CONFIDENCE : MOST_OPEN;
  const weights = groups.map(
    (group) => weightOf(group) * (isFirst(group, groups, digest) ? FIRST_BONUS : 1),
  );
  const candidates = [
    ...groups.map((group, i) => ({ cause: causeOf(digest, group, nodes), weight: weights[i]! })),
    ...contexts,
  ].sort((a, b) => b.weight - a.weight);
  const total = new Map<Category, number>();
  for (const { cause, weight } of candidates) {
    const before = total.get(cause.category);
    total.set(cause.category, before === undefined ? weight : before + SUPPORT * weight);
  }
  // The best of each category stands for it.
  const best = new Map<Category, (typeof candidates)[number]>();
  for (const candidate of candidates)
    if (!best.has(candidate.cause.category)) best.set(candidate.cause.category, candidate);
  const ranked = [...best.values()].sort(
    (a, b) => total.get(b.cause.category)! - total.get(a.cause.category)!,
  );
  const all = ranked.reduce((sum, { cause }) => sum + total.get(cause.category)!, 0);
  return ranked.slice(0, 1 + MOST_ALTERNATIVES).map(({ cause, weight }) => ({
    ...cause,
    confidence: Math.min(most, Math.min(1, weight) * Math.sqrt(total.get(cause.category)! / all)),
  }));
}

/** Among roots, by line within one file, by time between files where the clocks can tell. */
function isFirst(
  group: SignatureGroup,
  groups: readonly SignatureGroup[],
  { kept }: LogDigest,
): boolean {
  if (group.record.role !== "root") return false;
  const mine = kept[group.lines[0]!]!;
  return groups.every((other) => {
    if (other === group || other.record.role !== "root") return true;
    const theirs = kept[other.lines[0]!]!;
    if (theirs.file === mine.file) return mine.line <= theirs.line;
    if (Number.isNaN(mine.timeMs) || Number.isNaN(theirs.timeMs)) return true;
    return mine.timeMs <= theirs.timeMs + SKEW_MS;
  });
}

function causeOf(
  digest: LogDigest,
  { record, lines, nodes, ranks, captures }: SignatureGroup,
  { names }: LogNodes,
): Omit<LogCause, "confidence"> {
  const first = digest.kept[lines[0]!]!;
  return {
    category: record.category!,
    cause: causeOfRecord(record),
    signature: record.id,
    title: record.title,
    role: record.role,
    owner: record.owner,
    meaning: record.meaning,
    action: record.action,
    falseFriends: record.falseFriends,
    at: { file: digest.files[first.file]!.name, line: first.line, text: first.text },
    places: lines.slice(0, MOST_PLACES).map((i) => {
      const { file, line } = digest.kept[i]!;
      return { file: digest.files[file]!.name, line };
    }),
    nodes: aboutHost(record, captures) ?? [...nodes].map((node) => names[node]!),
    ranks: [...ranks].sort((a, b) => a - b),
    captures,
  };
}

/** Whom the line is about, where it says so itself: a scheduler writes of nodes that cannot write any more. */
function aboutHost(
  record: SignatureGroup["record"],
  { host }: SignatureGroup["captures"],
): string[] | null {
  const isAbout = record.role === "root" && causeOfRecord(record) !== "scheduler";
  return host !== undefined && isAbout && !host.includes("[") ? [host] : null;
}
