/** Whose lines are whose: a log names a rank, and the runs on this machine know which ranks are theirs. */
import { cutText, harmless } from "../../base/text.ts";
import type { LogFailure, LogRow } from "./log-follower.ts";
import type { PointRow } from "./rank-track.ts";
import type { RunTrack } from "./run-track.ts";

export interface Routed {
  readonly rows: PointRow[];
  readonly logRows: LogRow[];
  readonly failures: LogFailure[];
}

const SAYS = 400;
const UNTIMED = { collectiveMs: NaN, sendMs: NaN, recvMs: NaN, issueMs: NaN };

export function routeLogs(
  rows: readonly LogRow[],
  failures: readonly LogFailure[],
  tracks: readonly RunTrack[],
): Map<RunTrack | null, Routed> {
  const routed = new Map<RunTrack | null, Routed>();
  const of = (track: RunTrack | null): Routed => {
    let found = routed.get(track);
    if (!found) routed.set(track, (found = { rows: [], logRows: [], failures: [] }));
    return found;
  };
  for (const row of rows) {
    const found = owner(row, tracks);
    if (found === undefined) continue;
    if (found === null) of(null).logRows.push(row);
    else of(found.track).rows.push({ ...row, ...UNTIMED, rank: found.rank });
  }
  for (const failure of failures) {
    const found = owner(failure, tracks);
    if (found !== undefined) of(found?.track ?? null).failures.push(failure);
  }
  return routed;
}

/** Null: of no run with rings; undefined: of a rank on another machine. */
function owner(
  one: { readonly rank: number; readonly local: number; readonly path: string },
  tracks: readonly RunTrack[],
): { readonly track: RunTrack; readonly rank: number } | null | undefined {
  if (tracks.length === 0) return null;
  const fitting = tracks.flatMap((track) => {
    const rank = one.rank >= 0 ? one.rank : one.local >= 0 ? track.rankOfLocal(one.local) : -1;
    return rank === -1 || (rank !== null && track.ranks.has(rank)) ? [{ track, rank }] : [];
  });
  const named = fitting.filter(({ track }) => one.path.includes(track.watched.run.job));
  const among = named.length > 0 ? named : fitting;
  // The newest: logs of runs that are over do not grow.
  const [found] = among.toSorted(
    (a, b) => b.track.watched.run.startedMs - a.track.watched.run.startedMs,
  );
  return found;
}

export function ranksOf(failure: LogFailure, track: RunTrack): number[] {
  const rank = failure.rank >= 0 ? failure.rank : (track.rankOfLocal(failure.local) ?? -1);
  return rank >= 0 ? [rank] : [];
}

export function saysOf({ text, untold }: LogFailure): string {
  const more = untold > 0 ? ` (and ${untold} more before it)` : "";
  return `${cutText(harmless(text.trim()), SAYS)}${more}`;
}
