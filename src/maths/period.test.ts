import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { seeded } from "../base/random.ts";
import { findPeriod } from "./period.ts";
import { runsOf, smallestPeriod } from "./period-runs.ts";

const times = (pattern: readonly number[], count: number): number[] =>
  Array.from({ length: count }, () => pattern).flat();

const periodOf = (symbols: readonly number[]): number | null =>
  findPeriod(Int32Array.from(symbols))?.level.period ?? null;

const levelsOf = (symbols: readonly number[]): number[] =>
  findPeriod(Int32Array.from(symbols))!.levels.map(({ period }) => period);

/** Smallest period of the cyclic pattern, by trying. */
function primitive(pattern: readonly number[]): number {
  const n = pattern.length;
  for (let p = 1; p < n; p++) {
    if (n % p === 0 && pattern.every((symbol, i) => symbol === pattern[(i + p) % n])) return p;
  }
  return n;
}

describe("findPeriod", () => {
  it("finds the pattern of Greyhound's artifact, not the pairs inside it", () => {
    const pattern = [3, 2, 3, 2, 3, 2, 3, 2, 6, 3, 2, 3, 2, 3, 2, 3, 2];
    expect(periodOf(times(pattern, 4))).toBe(17);
    expect(levelsOf(times(pattern, 6))).toEqual([2, 17]);
  });

  it("has no limit at 200 calls", () => {
    const random = seeded(2);
    const pattern = Array.from({ length: 5000 }, () => Math.floor(random() * 9));
    const init = Array.from({ length: 700 }, () => 20 + Math.floor(random() * 30));
    expect(periodOf([...init, ...times(pattern, 5)])).toBe(5000);
  });

  it("tells micro-batches from the iteration that they are repeated in", () => {
    const micro = [1, 2, 1, 2, 3];
    expect(periodOf(times([...times(micro, 64), 7, 7, 8], 5))).toBe(323);
    expect(levelsOf(times([...times(micro, 64), 7, 7, 8], 5))).toEqual(
      expect.arrayContaining([5, 323]),
    );
  });

  it("finds iterations between evaluations, whether these come regularly or not", () => {
    const iteration = [...times([1, 2, 3], 4), 7, 8];
    const evaluation = times([1, 2], 30);
    const regular = times([...times(iteration, 6), ...evaluation], 5);
    expect(periodOf(regular)).toBe(14);
    const irregular = [5, 9, 4, 7].flatMap((count) => [...times(iteration, count), ...evaluation]);
    expect(periodOf(irregular)).toBe(14);
  });

  it("wants the period and two further ones", () => {
    const pattern = Array.from({ length: 20 }, (_, i) => i);
    expect(periodOf(times(pattern, 2))).toBeNull();
    expect(periodOf(times(pattern, 3))).toBe(20);
  });

  it("finds nothing where nothing repeats", () => {
    for (let seed = 0; seed < 40; seed++) {
      const random = seeded(seed);
      const symbols = 2 + (seed % 20);
      const length = 100 + 80 * seed;
      const drawn = Array.from({ length }, () => Math.floor(random() * symbols));
      expect(periodOf(drawn), `seed ${seed}`).toBeNull();
    }
    expect(periodOf([])).toBeNull();
    expect(periodOf([1])).toBeNull();
    expect(periodOf([1, 2])).toBeNull();
  });

  it("calls a sequence of one symbol a period of one", () => {
    expect(periodOf(times([4], 50))).toBe(1);
  });

  it("finds any pattern again, with foreign calls in front and among its repetitions", () => {
    const pattern = fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 8, maxLength: 60 });
    const foreign = fc.array(fc.integer({ min: 50, max: 60 }), { maxLength: 20 });
    fc.assert(
      fc.property(
        pattern,
        fc.array(fc.integer({ min: 4, max: 9 }), { minLength: 1, maxLength: 4 }),
        foreign,
        (drawn, counts, inserted) => {
          // A mark makes it an iteration: without one its own parts may be the period.
          const iteration = [...drawn, 9];
          const symbols = counts.flatMap((count) => [...inserted, ...times(iteration, count)]);
          expect(findPeriod(Int32Array.from(symbols), { isMore: marks })!.level.period).toBe(
            primitive(iteration),
          );
        },
      ),
      { numRuns: 300, seed: 4 },
    );
  });
});

/** Only the mark makes an outer level more than a repetition. */
function marks(inner: Int32Array, outer: Int32Array): boolean {
  return outer.includes(9) && !inner.includes(9);
}

describe("exact repetition", () => {
  it("is found where it is, by trying every lag and place", () => {
    const symbols = fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(symbols, fc.integer({ min: 1, max: 12 }), (list, period) => {
        for (const { start, end } of runsOf(Int32Array.from(list), period)) {
          expect(end - start).toBeGreaterThanOrEqual(3 * period);
          for (let i = start; i + period < end; i++) expect(list[i]).toBe(list[i + period]);
          expect(end === list.length || list[end] !== list[end - period]).toBe(true);
          expect(start === 0 || list[start - 1] !== list[start - 1 + period]).toBe(true);
        }
      }),
      { numRuns: 300, seed: 5 },
    );
  });

  it("has a smallest period", () => {
    expect(smallestPeriod(Int32Array.from(times([1, 2, 3], 4)), 0, 12)).toBe(3);
    expect(smallestPeriod(Int32Array.from([1, 2, 3]), 0, 3)).toBe(3);
  });
});
