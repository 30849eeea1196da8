import { describe, expect, test } from "vitest";
import { seeded } from "../base/random.ts";
import { LevelTracker, type LevelShift } from "./level-tracker.ts";
import { bursty, correlated, spiky, white, type Noise } from "../../test/support/noise.ts";

/** The shifts of `points` points whose level at i is `level(i)`. */
function shifts(noise: Noise, points: number, level: (i: number) => number): LevelShift[] {
  const tracker = new LevelTracker();
  const found: LevelShift[] = [];
  for (let i = 0; i < points; i++) {
    const shift = tracker.push(i, level(i) * Math.exp(noise()));
    if (shift) found.push(shift);
  }
  return found;
}

const KINDS: readonly [string, (seed: number) => Noise][] = [
  ["1 % of white noise", (seed) => white(seeded(seed), 0.01)],
  ["5 % of white noise", (seed) => white(seeded(seed), 0.05)],
  ["30 % of white noise", (seed) => white(seeded(seed), 0.3)],
  ["2 % of noise with a long memory", (seed) => correlated(seeded(seed), 0.02, 0.9)],
  ["a spike in every tenth point", (seed) => spiky(seeded(seed), 0.1)],
  ["bursts of up to three points", (seed) => bursty(seeded(seed))],
];

describe("a level", () => {
  test.each(KINDS)("with %s and no change raises no alarm in 30,000 points", (_, noise) => {
    const found = Array.from({ length: 30 }, (_, seed) => shifts(noise(seed), 1000, () => 1000));
    expect(found.flat()).toEqual([]);
  });

  const QUIET = KINDS.filter(([name]) => !name.startsWith("30"));
  test.each(QUIET)(
    "with %s that rises by a half is found at its point, within ten",
    (name, noise) => {
      for (let seed = 100; seed < 130; seed++) {
        const [shift, ...more] = shifts(noise(seed), 120, (i) => (i < 70 ? 1000 : 1500));
        expect(more).toEqual([]);
        // A spike or a burst that happens to stand in front of the change belongs to it for all we know.
        const near = name.includes("spike") || name.includes("burst") ? 4 : 1;
        expect(Math.abs(shift!.start - 70)).toBeLessThanOrEqual(near);
        expect(shift!.detectedAt - shift!.start).toBeLessThanOrEqual(10);
        expect(shift!.after / shift!.before).toBeGreaterThan(1.3);
      }
    },
  );

  test("that rises by 8 % has not changed, by 13 % it has", () => {
    const at = (ratio: number): number =>
      shifts(white(seeded(5), 0.01), 200, (i) => (i < 100 ? 1000 : ratio * 1000)).length;
    expect(at(1.08)).toBe(0);
    expect(at(1.13)).toBe(1);
  });

  test("that rises and falls back has two changes, however far it rose", () => {
    for (const ratio of [1.2, 2, 20]) {
      const found = shifts(white(seeded(6), 0.02), 300, (i) => (i >= 100 && i < 180 ? ratio : 1));
      expect(found.map(({ start }) => start)).toEqual([100, 180]);
    }
  });

  test("that begins to change in the middle of a step is dated by its first point", () => {
    const level = (i: number): number => (i < 60 ? 1000 : i === 60 ? 1150 : 1900);
    expect(shifts(white(seeded(8), 0.005), 90, level).map(({ start }) => start)).toEqual([60]);
  });

  test("that drifts by a tenth over sixty points has not changed", () => {
    const level = (i: number): number =>
      1000 * (i < 100 ? 1 : i < 160 ? 1 + 0.1 * ((i - 100) / 60) : 1.1);
    for (let seed = 0; seed < 10; seed++)
      expect(shifts(white(seeded(seed), 0.015), 300, level)).toEqual([]);
  });

  test("that climbs in steps below 10 % is reported once they add up, and its relief too", () => {
    const level = (i: number): number => [1, 1.07, 1.15, 1.23, 1][Math.floor(i / 120)]! * 1000;
    const found = shifts(white(seeded(9), 0.01), 600, level);
    expect(found.map(({ after, before }) => (after > before ? "slower" : "faster"))).toEqual([
      "slower",
      "faster",
    ]);
    expect(found[0]!.before).toBeLessThan(1030);
    expect(Math.abs(found[1]!.start - 480)).toBeLessThanOrEqual(2);
  });

  test("whose slow phase scatters wildly is reported all the same", () => {
    const slow = [745, 745, 837, 851, 700, 1000, 551, 701, 549, 638, 600, 620, 618, 566];
    const noise = white(seeded(10), 0.025);
    const found = shifts(noise, 150, (i) => slow[i - 80] ?? 415);
    expect(found[0]!.start).toBe(80);
    expect(found.at(-1)!.after).toBeLessThan(460);
  });

  test("that is reset is learnt anew without an alarm", () => {
    const tracker = new LevelTracker();
    const noise = white(seeded(11), 0.01);
    for (let i = 0; i < 100; i++) {
      if (i === 50) tracker.reset();
      expect(tracker.push(i, (i < 50 ? 1000 : 3000) * Math.exp(noise()))).toBeNull();
    }
    expect(tracker.level).toBeGreaterThan(2900);
  });

  test("is the same in every unit", () => {
    const level = (i: number): number => (i < 60 ? 1 : 1.6);
    const a = shifts(white(seeded(12), 0.03), 120, level);
    const b = shifts(white(seeded(12), 0.03), 120, (i) => 1e6 * level(i));
    expect(b.map(({ start }) => start)).toEqual(a.map(({ start }) => start));
  });

  test("that drifts to twice itself over ten thousand points is reported on the way", () => {
    const level = (i: number): number => 1000 * (1 + i / 10_000);
    const found = shifts(white(seeded(13), 0.02), 10_000, level);
    expect(found.length).toBeGreaterThanOrEqual(3);
    expect(found[0]!.after / found[0]!.before).toBeLessThan(1.25);
    expect(found.at(-1)!.after / found.at(-1)!.before).toBeGreaterThan(1.8);
    for (const { isRamp, start } of found) expect([isRamp, start]).toEqual([true, 0]);
  });

  test("whose few slow points differ widely among themselves is reported all the same", () => {
    const slow = [1149, 1617, 1264, 985, 1348, 1322];
    const found = shifts(white(seeded(14), 0.004), 120, (i) => slow[i - 60] ?? 769);
    expect(found[0]!.start).toBe(60);
    expect(found[0]!.detectedAt).toBeLessThanOrEqual(66);
  });

  test("with 10 % of noise that rises by a fifth is found once it lasts", () => {
    const rises = (i: number): number => (i < 100 ? 1000 : 1200);
    const found = Array.from({ length: 40 }, (_, seed) =>
      shifts(white(seeded(200 + seed), 0.1), 220, rises),
    );
    expect(found.filter((list) => list.length > 0).length).toBeGreaterThanOrEqual(30);
  });

  test("that is left for a while and slowly comes back has its relief reported", () => {
    const level = (i: number): number => {
      if (i < 100) return 1000;
      return i < 160 ? 1300 : Math.max(1000, 1300 - 3 * (i - 160));
    };
    const found = shifts(white(seeded(15), 0.01), 400, level);
    expect(found[0]!.start).toBe(100);
    expect(found.at(-1)!.after).toBeLessThan(1060);
  });

  test("of three quiet points before a chaos is no level to compare with", () => {
    const chaos = [155, 155, 155, 244, 428, 435, 259, 519, 167, 314, 475, 244, 491, 155, 420, 208];
    const found = shifts(
      () => 0,
      chaos.length,
      (i) => chaos[i]!,
    );
    expect(found).toEqual([]);
  });
});
