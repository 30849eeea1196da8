import { describe, expect, test } from "vitest";
import { seeded } from "../base/random.ts";
import { bursty, white, type Noise } from "../../test/support/noise.ts";
import { Trail } from "./trail.ts";
import { transitionOf } from "./transition.ts";

const LEAST = 0.003;

function made(points: number, level: (i: number) => number, noise: Noise): number[] {
  return Array.from({ length: points }, (_, i) => level(i) + noise());
}

describe("a transition", () => {
  test("at once is a step at its place, whatever follows how briefly", () => {
    for (const after of [8, 20, 60])
      for (let seed = 0; seed < 20; seed++) {
        const values = made(60 + after, (i) => (i < 60 ? 0 : 0.4), white(seeded(seed), 0.03));
        const { isRamp, start, before, after: level } = transitionOf(values, LEAST);
        expect([isRamp, Math.abs(start - 60) <= 2]).toEqual([false, true]);
        expect(level - before).toBeCloseTo(0.4, 1);
      }
  });

  test("over a hundred points is a ramp, with its onset, its end and both levels", () => {
    for (let seed = 0; seed < 20; seed++) {
      const level = (i: number): number => 0.3 * Math.min(1, Math.max(0, (i - 100) / 100));
      const found = transitionOf(made(300, level, white(seeded(seed), 0.02)), LEAST);
      expect(found.isRamp).toBe(true);
      expect(Math.abs(found.start - 100)).toBeLessThanOrEqual(12);
      expect(Math.abs(found.end - 200)).toBeLessThanOrEqual(12);
      expect(found.after - found.before).toBeCloseTo(0.3, 1);
      expect(found.noise).toBeCloseTo(0.02, 2);
    }
  });

  test("that still goes on has no end, one that went on from the first point no onset", () => {
    const noise = white(seeded(3), 0.01);
    const found = transitionOf(
      made(120, (i) => i / 400, noise),
      LEAST,
    );
    expect(found).toMatchObject({ isRamp: true, start: 0, end: 120 });
  });

  test("hides behind no bursts", () => {
    for (let seed = 0; seed < 10; seed++) {
      const level = (i: number): number => 0.5 * Math.min(1, Math.max(0, (i - 80) / 120));
      const found = transitionOf(made(240, level, bursty(seeded(seed))), LEAST);
      expect(found.isRamp).toBe(true);
      expect(Math.abs(found.start - 80)).toBeLessThanOrEqual(20);
    }
  });
});

test("a trail keeps the whole of a level in few values: where it began, and where it is", () => {
  const trail = new Trail(30);
  for (let i = 0; i < 10_000; i++) trail.push(i + 7, i === 5000 ? 1e6 : i);
  expect(trail.values.length).toBeLessThan(30);
  expect(trail.indexOf(0)).toBe(7);
  expect(trail.values.toSorted((a, b) => a - b)).toEqual(trail.values);
  expect(Math.max(...trail.values)).toBeLessThan(10_000);
  expect(trail.values.length * trail.stride).toBeGreaterThan(10_000 - trail.stride);
});

test("never takes a level for the old one that nobody saw: two steps are no slope from below the first", () => {
  const values = [1000, 1533, 2889].flatMap((ms, i) =>
    made([13, 14, 10][i]!, () => Math.log(ms), white(seeded(7), 0.002)),
  );
  const { before, after } = transitionOf(values, LEAST);
  expect(before).toBeGreaterThanOrEqual(Math.min(...values));
  expect(after).toBeLessThanOrEqual(Math.max(...values));
});
