import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { irregularityRate } from "./irregularity-rate.ts";

describe("the irregularity rate", () => {
  it("is one for an operator that makes the iteration long by itself", () => {
    const operator = [1, 1, 5, 1, 9, 1];
    expect(irregularityRate(operator, [100, 100, 104, 100, 108, 100])).toBeCloseTo(1, 12);
  });

  it("is nothing for an operator that is short in long iterations", () => {
    expect(irregularityRate([3, 2, 1], [1, 2, 3])).toBe(0);
  });

  it("is nothing where nothing varies, or where two points would decide", () => {
    expect(irregularityRate([0.1, 0.1, 0.1, 0.1], [1, 2, 3, 4])).toBe(0);
    expect(irregularityRate([1, 2, 3, 4], [7, 7, 7, 7])).toBe(0);
    expect(irregularityRate([1, 2], [1, 2])).toBe(0);
    expect(irregularityRate([], [])).toBe(0);
  });

  it("leaves out iterations whose log is lost", () => {
    expect(irregularityRate([1, NaN, 2, 3], [10, 90, 20, 30])).toBeCloseTo(1, 12);
    expect(irregularityRate([1, 50, 2, 3], [10, Infinity, 20, 30])).toBeCloseTo(1, 12);
  });

  it("looks at the last iterations of a longer series only", () => {
    const operator = [9, 9, 9, 1, 2, 3];
    const iterations = [1, 1, 1, 10, 20, 30];
    expect(irregularityRate(operator, iterations, 3)).toBeCloseTo(1, 12);
    expect(irregularityRate(operator, iterations)).toBe(0);
  });

  it("is between nothing and one whatever comes", () => {
    const series = fc.array(fc.double(), { maxLength: 20 });
    fc.assert(
      fc.property(series, series, (operator, iterations) => {
        const rate = irregularityRate(operator, iterations);
        expect(rate).toBeGreaterThanOrEqual(0);
        expect(rate).toBeLessThanOrEqual(1);
      }),
    );
  });

  it("does not depend on units or on what is there all the time", () => {
    const values = fc.array(fc.tuple(fc.integer({ max: 1e6 }), fc.integer({ max: 1e6 })), {
      minLength: 3,
      maxLength: 20,
    });
    fc.assert(
      fc.property(values, fc.integer({ min: 1, max: 100 }), (pairs, unit) => {
        const [x, y] = [pairs.map(([a]) => a), pairs.map(([, b]) => b)];
        const moved = irregularityRate(
          x.map((value) => unit * value + 17),
          y,
        );
        expect(moved).toBeCloseTo(irregularityRate(x, y), 9);
      }),
    );
  });
});
