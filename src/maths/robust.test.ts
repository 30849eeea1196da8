import fc from "fast-check";
import { expect, test } from "vitest";
import { median, spread } from "./robust.ts";

const numbers = fc.array(fc.double({ min: -1e6, max: 1e6, noNaN: true }), {
  minLength: 1,
  maxLength: 120,
});

test("a median has as many values below as above, short lists and long", () => {
  fc.assert(
    fc.property(numbers, (values) => {
      const sorted = [...values].sort((a, b) => a - b);
      const low = sorted[(values.length - 1) >> 1]!;
      const high = sorted[values.length >> 1]!;
      expect(median(values)).toBeCloseTo((low + high) / 2, 6);
    }),
  );
});

test("a median does not change what it is given, and of nothing there is none", () => {
  const values = [3, 1, 2];
  median(values);
  expect(values).toEqual([3, 1, 2]);
  expect(median([])).toBeNaN();
});

test("a spread is not moved by a wild point, and scales with the values", () => {
  const values = [9, 10, 11, 10, 9, 11, 10];
  expect(spread([...values, 1e9])).toBeLessThan(2);
  expect(spread(values.map((x) => 5 * x))).toBeCloseTo(5 * spread(values), 9);
});
