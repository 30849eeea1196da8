import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { coverage, overlapWith, unionOf, without, type Intervals } from "./intervals.ts";

/** Whole numbers, so that a set can be held against the cells it covers. */
const sets = fc
  .array(fc.tuple(fc.nat(60), fc.nat(12)), { maxLength: 20 })
  .map((list): Intervals => {
    const rows = list.toSorted((a, b) => a[0] - b[0]);
    const start = Float64Array.from(rows, ([at]) => at);
    const length = Float64Array.from(rows, ([, of]) => of);
    return unionOf(start, length, rows.length, (row) => length[row]! > 0);
  });

function cells({ start, end }: Intervals): boolean[] {
  return Array.from({ length: 80 }, (_, cell) =>
    start.some((from, i) => from <= cell && cell < end[i]!),
  );
}

describe("sets of intervals", () => {
  test("one without another is what a cell-by-cell comparison leaves, in order and disjoint", () => {
    fc.assert(
      fc.property(sets, sets, (a, b) => {
        const rest = without(a, b);
        const [inA, inB] = [cells(a), cells(b)];
        expect(cells(rest)).toEqual(inA.map((is, cell) => is && !inB[cell]!));
        rest.start.forEach((from, i) => {
          expect(rest.end[i]).toBeGreaterThan(from);
          if (i > 0) expect(from).toBeGreaterThanOrEqual(rest.end[i - 1]!);
        });
      }),
    );
  });

  test("parts of a stretch hold together what the stretch holds", () => {
    fc.assert(
      fc.property(sets, fc.nat(40), fc.integer({ min: 1, max: 90 }), (set, from, parts) => {
        const shares = coverage(set, from, from + 37, parts);
        const sum = shares.reduce((total, share) => total + share, 0) * (37 / parts);
        expect(sum).toBeCloseTo(overlapWith(set, from, from + 37), 3);
        for (const share of shares) expect(share).toBeLessThanOrEqual(1);
      }),
    );
  });
});
