import fc from "fast-check";
import { expect, it } from "vitest";
import { median, spread } from "../../../maths/robust.ts";
import { SortedColumns } from "./sorted-columns.ts";

const CAPACITY = 12;

it("knows medians and deviations of the last values as sorting them does, values that are missing left out", () => {
  const value = fc.oneof(
    {
      arbitrary: fc.double({ min: -1, max: 1, noNaN: true }).map((one) => Math.fround(one) + 0),
      weight: 6,
    },
    { arbitrary: fc.constantFrom(0, 0.5, NaN), weight: 2 },
  );
  fc.assert(
    fc.property(fc.array(fc.tuple(value, value), { minLength: 1, maxLength: 60 }), (rows) => {
      const columns = new SortedColumns(2, CAPACITY);
      for (const [k, row] of rows.entries()) {
        const gone = rows[k - CAPACITY];
        columns.move(gone ? Float32Array.from(gone) : null, Float32Array.from(row));
        for (const s of [0, 1]) {
          const kept = rows.slice(Math.max(0, k + 1 - CAPACITY), k + 1).map((one) => one[s]!);
          const known = kept.filter((one) => !Number.isNaN(one));
          expect(columns.known(s)).toBe(known.length);
          expect(Array.from(known, (_, i) => columns.at(s, i))).toEqual(
            known.toSorted((a, b) => a - b),
          );
          if (known.length === 0) continue;
          expect(columns.median(s)).toBeCloseTo(median(known), 6);
          expect(columns.deviation(s, columns.median(s))).toBeCloseTo(spread(known), 6);
        }
      }
      for (const row of rows.slice(-CAPACITY).toReversed())
        columns.move(Float32Array.from(row), null);
      expect([columns.known(0), columns.known(1)]).toEqual([0, 0]);
    }),
  );
});
