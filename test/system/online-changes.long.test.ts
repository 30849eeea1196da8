import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { seeded, type Random } from "../../src/base/random.ts";
import { OnlineChanges } from "../../eval/change-points/online-changes.ts";

interface Report {
  readonly at: number;
  readonly known: number;
}

function reports(values: readonly number[]): Report[] {
  const detector = new OnlineChanges();
  return values.flatMap((value, known) => {
    const at = detector.push(value);
    return at === null ? [] : [{ at, known }];
  });
}

const places = (values: readonly number[]): number[] => reports(values).map(({ at }) => at);

/** Roughly normal: the sum of twelve uniform numbers. */
function normal(random: Random): number {
  let sum = -6;
  for (let i = 0; i < 12; i++) sum += random();
  return sum;
}

function series(length: number, seed: number, at: (t: number, noise: number) => number): number[] {
  const random = seeded(seed);
  return Array.from({ length }, (_, t) => at(t, normal(random)));
}

describe("OnlineChanges", () => {
  it("finds steps where they are, within 20 points", () => {
    const found = reports(series(240, 1, (t, e) => e + (t >= 160 ? -2 : t >= 80 ? 6 : 0)));
    expect(found).toHaveLength(2);
    expect(Math.abs(found[0]!.at - 80)).toBeLessThanOrEqual(2);
    expect(Math.abs(found[1]!.at - 160)).toBeLessThanOrEqual(2);
    for (const { at, known } of found) expect(known - at).toBeLessThanOrEqual(20);
  });

  it("finds a bend", () => {
    const found = places(series(200, 2, (t, e) => e + 0.05 * t + 0.5 * Math.max(0, t - 100)));
    expect(found).toHaveLength(1);
    expect(Math.abs(found[0]! - 100)).toBeLessThanOrEqual(5);
  });

  it("finds a change of the spread", () => {
    const found = places(series(300, 3, (t, e) => (t < 150 ? e : 5 * e)));
    expect(found).toHaveLength(1);
    expect(Math.abs(found[0]! - 150)).toBeLessThanOrEqual(5);
  });

  it("finds a step among seasons", () => {
    const found = places(
      series(240, 4, (t, e) => 0.5 * e + 4 * Math.sin((t * Math.PI) / 6) + (t < 130 ? 0 : 5)),
    );
    expect(found).toHaveLength(1);
    expect(Math.abs(found[0]! - 130)).toBeLessThanOrEqual(3);
  });

  it("says nothing of noise, trends, seasons and random walks", () => {
    for (let seed = 10; seed < 20; seed++) {
      let walk = 0;
      expect(places(series(200, seed, (_, e) => e))).toEqual([]);
      expect(places(series(200, seed, (t, e) => e - 0.3 * t))).toEqual([]);
      expect(places(series(200, seed, (t, e) => e + 5 * Math.sin(t / 2)))).toEqual([]);
      expect(places(series(200, seed, (_, e) => (walk += e)))).toEqual([]);
    }
  });

  it("says nothing of single wild points and of bursts that recover", () => {
    const wild = series(300, 5, (t, e) => e + (t % 37 === 5 ? 40 : 0));
    expect(places(wild)).toEqual([]);
    expect(places(series(200, 6, (t, e) => e + (t >= 100 && t < 107 ? 12 : 0)))).toEqual([]);
  });

  it("knows series without noise, rounded ones and gaps", () => {
    expect(places(series(200, 0, () => 5))).toEqual([]);
    expect(places(series(100, 0, (t) => (t < 60 ? 5 : 6)))).toEqual([60]);
    expect(places(series(200, 7, (t) => (t % 50 === 20 ? 1 : 0)))).toEqual([]);
    const gappy = series(120, 8, (t, e) => (t % 9 === 4 ? NaN : e + (t < 60 ? 0 : 8)));
    expect(places(gappy)).toHaveLength(1);
  });

  it("does not depend on unit, offset and sign; reports grow and are never of the future", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 1e6 }),
        fc.integer({ min: -30, max: 30 }),
        fc.integer({ min: 10, max: 110 }),
        fc.constantFrom(1, -1, 1024, -(2 ** -10)),
        fc.integer({ min: -512, max: 512 }),
        (seed, size, at, unit, offset) => {
          // Sixteenths: that sums and products are exact, so that the same decisions are due.
          const plain = series(120, seed, (t, e) => Math.round(16 * e) / 16 + (t < at ? 0 : size));
          const found = reports(plain);
          expect(reports(plain.map((value) => unit * (value + offset)))).toEqual(found);
          found.forEach(({ at, known }, i) => {
            expect(known - at).toBeGreaterThanOrEqual(11);
            expect(at).toBeGreaterThan(i === 0 ? 0 : found[i - 1]!.at);
          });
        },
      ),
      { seed: 1, numRuns: 100 },
    );
  });

  it("takes a constant time for a point of an endless series", () => {
    const random = seeded(9);
    const detector = new OnlineChanges();
    const reported: number[] = [];
    for (let t = 0; t < 4000; t++) {
      const at = detector.push(normal(random) + (t < 3000 ? 0 : 10));
      if (at !== null) reported.push(at);
    }
    expect(reported).toEqual([3000]);
  });
});
