import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { luminance, packed, rgb, SCALE, STEPS } from "./color-scale.ts";
import { leastSpan } from "./measures.ts";
import type { RankTable } from "./rank-table.ts";
import { calmed, limitsOf, stepOf } from "./scale-limits.ts";

describe("the colour scale", () => {
  test("grows lighter all the way", () => {
    // Single steps may differ by the rounding of a colour's parts alone.
    for (let step = 3; step < STEPS; step++)
      expect(luminance(SCALE[step]!)).toBeGreaterThan(luminance(SCALE[step - 3]!));
    expect(luminance(SCALE[STEPS - 1]!) - luminance(SCALE[0]!)).toBeGreaterThan(0.7);
  });

  test("colours are read as style sheets write them and packed as images hold them", () => {
    expect(rgb(" #12ab34")).toEqual([0x12, 0xab, 0x34]);
    expect(rgb("#fff")).toEqual([255, 255, 255]);
    expect([...new Uint8Array(Uint32Array.of(packed([1, 2, 3])).buffer)]).toEqual([1, 2, 3, 255]);
  });
});

describe("the limits of the scale", () => {
  const noise = (count: number): Float32Array =>
    Float32Array.from({ length: count }, (_, at) => (at * 7) % 10);

  test("one outlier among 10,000 is the brightest, and noise is not", () => {
    const values = noise(10_000);
    values[77] = 4000;
    const limits = limitsOf(values, 20)!;
    expect(stepOf(4000, limits, STEPS)).toBe(STEPS - 1);
    expect(stepOf(9, limits, STEPS)).toBeLessThan(STEPS / 8);
  });

  test("an absurd outlier does not make the others all the same", () => {
    const values = noise(1000);
    values[0] = 1e12;
    const limits = limitsOf(values, 1)!;
    expect(stepOf(1e12, limits, STEPS)).toBe(STEPS - 1);
    expect(stepOf(9, limits, STEPS)).toBeGreaterThan(stepOf(0, limits, STEPS));
  });

  test("20 ms of noise in a healthy job of 500 ms do not glow", () => {
    const table = { durationMs: new Float32Array(64).fill(500) } as RankTable;
    const late = Float32Array.from({ length: 64 }, (_, at) => (at * 7) % 21);
    const limits = limitsOf(late, leastSpan(table, "lateMs"))!;
    expect(stepOf(20, limits, STEPS)).toBeLessThan(STEPS / 2);
  });

  test("noise alone does not fill the scale", () => {
    const limits = limitsOf(noise(64), 100)!;
    expect(stepOf(9, limits, STEPS)).toBeLessThan(STEPS / 8);
  });

  test("without a known value there are none, and an unknown one has no colour", () => {
    expect(limitsOf(Float32Array.of(Number.NaN, Number.NaN), 1)).toBeNull();
    expect(stepOf(Number.NaN, { low: 0, high: 1, max: 1 }, STEPS)).toBe(-1);
  });

  test("the highest value always has the brightest colour it can have, and order is kept", () => {
    const values = fc.array(fc.float({ min: 0, max: 1e6, noNaN: true }), {
      minLength: 1,
      maxLength: 200,
    });
    fc.assert(
      fc.property(values, (list) => {
        const column = Float32Array.from(list);
        const limits = limitsOf(column, 1)!;
        expect(limits.high).toBeGreaterThan(limits.low);
        const sorted = column.toSorted();
        const steps = [...sorted].map((value) => stepOf(value, limits, STEPS));
        expect(steps).toEqual(steps.toSorted((a, b) => a - b));
        if (limits.max >= limits.high) expect(steps.at(-1)).toBe(STEPS - 1);
      }),
    );
  });

  test("small changes leave them as they are", () => {
    const shown = { low: 0, high: 100, max: 90 };
    expect(calmed(shown, { low: 2, high: 103, max: 95 })).toEqual({ low: 0, high: 100, max: 95 });
  });

  test("a large change is followed over some seconds, and is reached", () => {
    const wanted = { low: 0, high: 1000, max: 4000 };
    let limits = { low: 0, high: 10, max: 8 };
    limits = calmed(limits, wanted);
    expect(limits.high).toBeLessThan(600);
    for (let second = 0; second < 12; second++) limits = calmed(limits, wanted);
    expect(limits.high).toBeGreaterThan(940);
    for (let second = 0; second < 60; second++)
      limits = calmed(limits, { low: 0, high: 10, max: 8 });
    expect(limits.high).toBeLessThan(12);
  });
});
