/**
 * Shares of parts of a window as stacked columns: area is time, so nothing is lost where many events fall into one
 * pixel, and nothing is made larger than it is. Neighbouring parts that look the same become one rectangle.
 */
import { px } from "./iterations-points.ts";

interface Run {
  /** Parts, the last one excluded. */
  readonly from: number;
  readonly to: number;
  /** From the row's lower edge, in levels. */
  readonly bottom: number;
  readonly top: number;
}

/** One list of runs a column, in the order in which they are stacked. */
export function stackRuns(columns: readonly Float32Array[], levels: number): Run[][] {
  const parts = columns[0]?.length ?? 0;
  const filled = new Float64Array(parts);
  return columns.map((column) => {
    const runs: Run[] = [];
    let open: { from: number; bottom: number; top: number } | null = null;
    for (let part = 0; part <= parts; part++) {
      // Sums are rounded, not shares: rounding never makes a stack higher than the row.
      const before = filled[part] ?? 0;
      const after = Math.min(1, before + (column[part] ?? 0));
      const [bottom, top] = [Math.round(before * levels), Math.round(after * levels)];
      if (part < parts) filled[part] = after;
      if (open && part < parts && bottom === open.bottom && top === open.top) continue;
      if (open && open.top > open.bottom) runs.push({ ...open, to: part });
      open = { from: part, bottom, top };
    }
    return runs;
  });
}

/** Rectangles of one path. `y` is the row's lower edge; a level is so high. */
export function runsPath(
  runs: readonly Run[],
  x: (part: number) => number,
  y: number,
  levelHeight: number,
): string {
  return runs
    .map(({ from, to, bottom, top }) => {
      const [left, width, height] = [x(from), x(to) - x(from), (top - bottom) * levelHeight];
      return `M${px(left)} ${px(y - bottom * levelHeight)}h${px(width)}v${px(-height)}h${px(-width)}z`;
    })
    .join("");
}
