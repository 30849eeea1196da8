/** Which ranks hold the job up: steadily, and as much as the latest one. */
import { median } from "./measures.ts";
import type { RankTable } from "./rank-table.ts";

/** Behind by less than this share of an iteration is what ranks always are. */
const LATE_SHARE = 0.02;
/**
 * Of the latest one's lateness. Its neighbours' own time grows a little with it, for not all waiting shows as
 * communication: they hold nobody up, and must not look as if they did.
 */
const AS_LATE = 0.5;
/** Of the same: of ranks that are nearer to each other always the same are shown, or rows would change every second. */
const ALIKE = 0.1;

export interface LateRows {
  /** The latest first. */
  readonly shown: readonly number[];
  /** How many there are. */
  readonly count: number;
}

/** `usualMs`: lateness over the last seconds, by row; who is late once by chance is left out. */
export function lateRows(
  table: Pick<RankTable, "count" | "rank" | "durationMs" | "lateMs">,
  usualMs: Float32Array,
  most: number,
): LateRows {
  const { count, rank, lateMs } = table;
  const leastMs = median(table.durationMs) * LATE_SHARE;
  const rows: number[] = [];
  let mostMs = 0;
  for (let row = 0; row < count; row++) {
    if (!(lateMs[row]! > leastMs && usualMs[row]! > leastMs)) continue;
    rows.push(row);
    mostMs = Math.max(mostMs, lateMs[row]!);
  }
  const place = (row: number): number => Math.floor(lateMs[row]! / (mostMs * ALIKE));
  const late = rows
    .filter((row) => lateMs[row]! >= AS_LATE * mostMs)
    .sort((a, b) => place(b) - place(a) || rank[a]! - rank[b]!);
  const shown = late.slice(0, most).sort((a, b) => lateMs[b]! - lateMs[a]!);
  return { shown, count: late.length };
}
