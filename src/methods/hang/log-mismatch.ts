/**
 * A collective mismatch from logs alone. Members of a group must issue the same operators in the same order, of the same
 * size; where one does not, all of them wait for ever, and PyTorch's watchdog prints what each had issued under the same
 * number. With dumps whole programs are compared instead (mismatch.ts).
 */
import { count, rankWords } from "../../base/text.ts";
import type { Rank } from "../../model/ids.ts";
import type { WatchdogReport } from "../../model/log.ts";

interface LogMismatch {
  /** Who left the order; where the logs do not tell, all who disagree. */
  readonly ranks: readonly Rank[];
  readonly isDecided: boolean;
  readonly weight: number;
  readonly why: string;
}

/** Their numbers count otherwise than collectives', and the two sides differ by nature. */
const POINT_TO_POINT = /SEND|RECV|COALESCED/;
/** Gathers and scatters have a root, all-to-all has splits: only of these must the sizes be the same everywhere. */
const SAME_SIZES = /^(?:ALLREDUCE|BROADCAST|REDUCE|_ALLGATHER_BASE|_REDUCE_SCATTER_BASE)$/;
/** Two halves of a large group that disagree are not two suspects. */
const MOST_UNDECIDED = 8;

export function findLogMismatches(reports: readonly WatchdogReport[]): LogMismatch[] {
  const places = [...inTheSamePlace(reports).values()];
  const issued = placesByCall(places);
  return places.flatMap((members) => {
    const kind = kindOf(members[0]!);
    // Another group of the kind, or the same one at another number: they run the same program.
    const isUsual = (call: string): boolean => (issued.get(`${kind} ${call}`) ?? 0) > 1;
    return mismatchOf(members, isUsual) ?? [];
  });
}

/** In how many places a call of a kind of groups was issued. */
function placesByCall(places: readonly (readonly WatchdogReport[])[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const members of places) {
    for (const key of new Set(members.map((one) => `${kindOf(one)} ${callOf(one)}`)))
      counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}

/** "DATA_PARALLEL_GROUP_3" is one of many. */
function kindOf({ desc }: WatchdogReport): string {
  return desc.replace(/[_ ]?\d+$/, "");
}

/** What members of a group issued under the same number, the last that each rank tells of: it may have been restarted. */
function inTheSamePlace(reports: readonly WatchdogReport[]): Map<string, WatchdogReport[]> {
  const mixed = new Set(
    reports
      .filter(({ op, desc }) => POINT_TO_POINT.test(op) || /PIPELINE/i.test(desc))
      .map(({ group }) => group),
  );
  const last = new Map<string, WatchdogReport>();
  for (const report of reports) {
    const { rank, group, seq, op } = report;
    // Old versions do not say whose number it is.
    if (rank === null || group === "" || seq < 0 || op === "" || mixed.has(group)) continue;
    last.set(`${rank} ${group}`, report);
  }
  const places = new Map<string, WatchdogReport[]>();
  for (const report of last.values()) {
    const key = `${report.group}#${report.seq}`;
    places.set(key, [...(places.get(key) ?? []), report]);
  }
  return places;
}

function mismatchOf(
  members: readonly WatchdogReport[],
  isUsual: (call: string) => boolean,
): LogMismatch | null {
  // Two members with the same number within the group: the name is that of several groups.
  if (new Set(members.map(({ groupRank }) => groupRank)).size < members.length) return null;
  const byCall = new Map<string, WatchdogReport[]>();
  for (const report of members) {
    const call = callOf(report);
    byCall.set(call, [...(byCall.get(call) ?? []), report]);
  }
  const known = [...byCall.keys()].filter(isUsual);
  const [common, ...others] = [...byCall].sort(
    ([a, one], [b, other]) => other.length - one.length || Number(isUsual(b)) - Number(isUsual(a)),
  );
  if (!common || others.length === 0) return null;
  const [commonCall, those] = common;
  const isMost = those.length * 2 > members.length;
  // One against one: whose operator nobody else in the job issues is the odd one.
  const isDecided = isMost || (known.length === 1 && known[0] === commonCall);
  const odd = (isDecided ? others.flatMap(([, list]) => list) : members).map(({ rank }) => rank!);
  if (!isDecided && odd.length > MOST_UNDECIDED) return null;
  const ranks = odd.sort((a, b) => a - b);
  const { seq, desc, group } = those[0]!;
  const place = `#${seq} of ${desc || `group ${group}`}`;
  const why = isDecided
    ? `${rankWords(ranks)} issued ${others[0]![0]} as ${place}, where ${count(those.length, "other rank")} issued ${commonCall}`
    : `${rankWords(ranks)} disagree on ${place}: ${[...byCall.keys()].join(" and ")}`;
  return { ranks, isDecided, weight: isMost ? 0.93 : isDecided ? 0.75 : 0.5, why };
}

/** "ALLREDUCE", "ALLREDUCE of 1024 elements". */
function callOf({ op, numelIn, numelOut }: WatchdogReport): string {
  if (!SAME_SIZES.test(op) || numelIn === undefined) return op;
  return `${op} of ${numelIn === numelOut ? numelIn : `${numelIn} to ${numelOut}`} elements`;
}
