import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Effect,
  effectOf,
  logGamma,
  logMeanExp,
  logShiftOdds,
  logStudent,
} from "./shift-odds.ts";

const SLOW = effectOf(0.04, 0.3);
const TAILS = [
  [4, 0.7],
  [16, 0.3],
] as const;

/** The same integral, summed in small steps over ranges that are equally probable. */
function slowly(shift: number, scale: number, { least, edges }: Effect): number {
  const density = (x: number): number =>
    TAILS.reduce((sum, [nu, weight]) => sum + weight * Math.exp(logStudent(x, scale, nu)), 0);
  let total = 0;
  for (let range = 1; range < edges.length; range++) {
    const [from, width] = [edges[range - 1]!, edges[range]! - edges[range - 1]!];
    for (let i = 0; i < 500; i++)
      total += density(shift - least - from - ((i + 0.5) / 500) * width);
  }
  return Math.log(total / 500 / (edges.length - 1) / density(shift));
}

describe("the odds of a shift", () => {
  it("are those of the integral over all effects", () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.double({ min: 0.02, max: 0.2, noNaN: true }),
        (shift, scale) => {
          const odds = logShiftOdds(shift, scale, TAILS, SLOW);
          expect(Math.abs(odds - slowly(shift, scale, SLOW))).toBeLessThan(0.01);
        },
      ),
      { numRuns: 50 },
    );
  });

  it("speak against a fault where nothing shifted, and for one where much did", () => {
    const odds = (shift: number): number => logShiftOdds(shift, 0.03, TAILS, effectOf(0.04, 0.3));
    expect(odds(0)).toBeLessThan(-1);
    expect(odds(-5)).toBeLessThan(-1);
    expect(odds(0.3)).toBeGreaterThan(3);
    expect(odds(1e6)).toBeLessThan(50);
  });

  it("know the gamma function and means of exponentials", () => {
    expect(Math.exp(logGamma(6))).toBeCloseTo(120, 6);
    expect(logGamma(0.5)).toBeCloseTo(Math.log(Math.PI) / 2, 8);
    expect(logMeanExp([1000, 1000])).toBeCloseTo(1000, 9);
    expect(logMeanExp([-Infinity, -Infinity])).toBe(-Infinity);
  });
});
