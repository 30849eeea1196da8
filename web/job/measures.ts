/** What the grid's colours can stand for. */
import type { Incident } from "../live/api.ts";
import { durationWords } from "../shell/words.ts";
import type { RankTable } from "./rank-table.ts";

export type MeasureId = "late" | "wait" | "duration" | "temperature" | "verdict";

export interface Measure {
  readonly id: MeasureId;
  readonly label: string;
  /** What it is, one sentence. */
  readonly says: string;
  /** null: categories, no scale. */
  readonly column: "lateMs" | "waitMs" | "durationMs" | "temperature" | null;
}

/** In the order of their keys, 1 to 5. */
export const MEASURES: readonly Measure[] = [
  {
    id: "late",
    label: "Lateness",
    says: "Own time beyond what ranks of the same stage typically need.",
    column: "lateMs",
  },
  {
    id: "wait",
    label: "Waiting",
    says: "Time in communication. The others wait for the rank that waits least.",
    column: "waitMs",
  },
  {
    id: "duration",
    label: "Iteration time",
    says: "How long the latest iteration took.",
    column: "durationMs",
  },
  {
    id: "temperature",
    label: "Temperature",
    says: "Of the GPU, if a monitoring server reports it.",
    column: "temperature",
  },
  {
    id: "verdict",
    label: "Verdict",
    says: "Suspects of the open incident, and ranks that only show symptoms.",
    column: null,
  },
];

export function valueWords(column: Measure["column"], value: number): string {
  if (!Number.isFinite(value)) return "–";
  return column === "temperature" ? `${Math.round(value)} °C` : msWords(value);
}

/** As durations are written elsewhere, finer where they are short: ranks differ by fractions of a millisecond. */
export function msWords(ms: number): string {
  if (!Number.isFinite(ms)) return "–";
  if (ms < 99.95) return `${ms.toFixed(1)} ms`;
  if (ms >= 1000 && ms < 59_950) return `${(ms / 1000).toFixed(2)} s`;
  return durationWords(ms);
}

/**
 * Differences below stay dark: a tenth of an iteration, ten degrees. Ranks of a healthy job differ by some 20 ms of 500,
 * and a bright cell says that somebody should look.
 */
export function leastSpan(table: RankTable, column: Measure["column"]): number {
  if (column === "temperature") return 10;
  return Math.max(0.5, (median(table.durationMs) || 0) * 0.1);
}

export const OTHER = 0;
export const VICTIM = 1;
export const SUSPECT = 2;

/** By row: OTHER, VICTIM or SUSPECT. */
export function verdictColumn(table: RankTable, incidents: readonly Incident[]): Uint8Array {
  const column = new Uint8Array(table.count);
  const mark = (ranks: readonly number[], as: number): void => {
    for (const rank of ranks) {
      const row = table.rowOf.get(rank);
      if (row !== undefined) column[row] = as;
    }
  };
  for (const { verdict } of incidents) mark(verdict?.victims ?? [], VICTIM);
  for (const { ranks, verdict } of incidents) {
    mark(ranks, SUSPECT);
    for (const suspect of verdict?.suspects ?? []) mark(suspect.ranks, SUSPECT);
  }
  return column;
}

/** NaN where there is none. */
export function median(values: ArrayLike<number>): number {
  const known = Float64Array.from(values as ArrayLike<number> & Iterable<number>)
    .filter((value) => Number.isFinite(value))
    .sort();
  if (known.length === 0) return Number.NaN;
  const middle = known.length >> 1;
  return known.length % 2 === 1 ? known[middle]! : (known[middle - 1]! + known[middle]!) / 2;
}
