import fc from "fast-check";
import { expect, test } from "vitest";
import { movedDown, thinned, wasserstein } from "./wasserstein.ts";

const values = fc.array(fc.integer({ min: -50, max: 50 }), { minLength: 1, maxLength: 9 });
const sorted = (list: readonly number[]): number[] => list.toSorted((a, b) => a - b);

/** Every value repeated as often as the other side has values: then places pair off one to one. */
function bruteForce(a: readonly number[], b: readonly number[]): number {
  const repeat = (list: readonly number[], times: number): number[] =>
    sorted(list).flatMap((value) => Array.from({ length: times }, () => value));
  const [left, right] = [repeat(a, b.length), repeat(b, a.length)];
  return left.reduce((sum, value, i) => sum + Math.abs(value - right[i]!), 0) / left.length;
}

test("the distance is what pairing off all places gives, for any sizes", () => {
  fc.assert(
    fc.property(values, values, (a, b) => {
      expect(wasserstein(sorted(a), sorted(b))).toBeCloseTo(bruteForce(a, b), 9);
    }),
  );
});

test("the distance is the area between the cumulative distributions", () => {
  fc.assert(
    fc.property(values, values, (a, b) => {
      let areaBetween = 0;
      for (let x = -51; x < 51; x++) {
        const below = (list: readonly number[]): number =>
          list.filter((value) => value <= x).length / list.length;
        areaBetween += Math.abs(below(a) - below(b));
      }
      expect(wasserstein(sorted(a), sorted(b))).toBeCloseTo(areaBetween, 9);
    }),
  );
});

test("moves down and moves up add up to the distance", () => {
  fc.assert(
    fc.property(values, values, (a, b) => {
      const [x, y] = [sorted(a), sorted(b)];
      expect(movedDown(x, y) + movedDown(y, x)).toBeCloseTo(wasserstein(x, y), 9);
    }),
  );
});

test("a distribution that is moved by 3 is 3 away, all of it downwards", () => {
  const [low, high]: [number[], number[]] = [
    [1, 2, 5],
    [4, 5, 8],
  ];
  expect(wasserstein(low, high)).toBeCloseTo(3);
  expect(movedDown(low, high)).toBeCloseTo(3);
  expect(movedDown(high, low)).toBe(0);
});

test("a thinned distribution lies near the whole one", () => {
  const all = Float64Array.from({ length: 10_000 }, (_, i) => (i / 10_000) ** 2);
  const some = thinned(all, 256);
  expect(some).toHaveLength(256);
  expect(wasserstein(some, all)).toBeLessThan(1 / 256);
});

test("nothing is at no distance from anything", () => {
  expect(wasserstein([], [1])).toBeNaN();
});
