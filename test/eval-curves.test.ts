import { describe, expect, it } from "vitest";
import { fitCurve, isotonic, type Case } from "../eval/joint/curves.ts";
import { seeded } from "../src/base/random.ts";
import { logOdds, probabilityOf } from "../src/verdict/reliability.ts";

const many = (stated: number, right: number, of: number): Case[] =>
  Array.from({ length: of }, (_, i) => ({ stated, right: i < right }));

describe("what a method's word is worth", () => {
  it("is found again where it was made up", () => {
    const random = seeded(7);
    const cases = Array.from({ length: 4000 }, () => {
      const stated = 0.05 + 0.9 * random();
      return { stated, right: random() < probabilityOf(-1 + 0.5 * logOdds(stated)) };
    });
    const { offset, slope } = fitCurve(cases);
    expect(offset).toBeCloseTo(-1, 0);
    expect(Math.abs(slope - 0.5)).toBeLessThan(0.1);
  });

  it("stays near what is stated where there are few cases", () => {
    const { offset, slope } = fitCurve(many(0.9, 1, 2));
    expect(probabilityOf(offset + slope * logOdds(0.9))).toBeGreaterThan(0.65);
  });

  it("never falls where a method states more", () => {
    expect(fitCurve([...many(0.3, 50, 50), ...many(0.9, 0, 50)]).slope).toBeGreaterThanOrEqual(0);
  });
});

describe("the steps of a calibration", () => {
  it("rise, from 0 to 1 along what is stated", () => {
    const random = seeded(3);
    const cases = Array.from({ length: 400 }, () => {
      const stated = random();
      return { stated, right: random() < stated * stated };
    });
    const knots = isotonic(cases);
    expect(knots[0]).toEqual([0, 0]);
    for (let i = 1; i < knots.length; i++) {
      expect(knots[i]![0]).toBeGreaterThanOrEqual(knots[i - 1]![0]);
      expect(knots[i]![1]).toBeGreaterThanOrEqual(knots[i - 1]![1]);
    }
    const middle = knots.find(([at]) => at > 0.45 && at < 0.6)!;
    expect(Math.abs(middle[1] - middle[0] ** 2)).toBeLessThan(0.15);
  });
});
