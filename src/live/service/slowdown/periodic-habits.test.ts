import { describe, expect, it } from "vitest";
import { seeded } from "../../../base/random.ts";
import { IterationTracker } from "../../../methods/iterations/iteration-tracker.ts";
import { SlowdownDetector } from "./slowdown-detector.ts";

/** The slow iterations of each search, of a job of 1 s an iteration from `first` on. */
function searches(
  extraMs: (iteration: number) => number,
  first = 0,
  iterations = 400,
): (readonly number[])[] {
  const detector = new SlowdownDetector();
  const tracker = new IterationTracker();
  const random = seeded(7);
  let endMs = 0;
  return Array.from({ length: iterations }, (_, i) => first + i).flatMap((iteration) => {
    const durationMs = 1000 * (1 + 0.01 * (random() - 0.5)) + extraMs(iteration);
    endMs += durationMs;
    tracker.push({ iteration, durationMs, between: 0, batch: NaN });
    const decisions = detector.push({
      iteration,
      durationMs,
      endMs,
      levelMs: tracker.level,
      shift: null,
    });
    return decisions.flatMap((one) =>
      one.do === "localize" ? [one.suspicion.intermittent?.slow ?? []] : [],
    );
  });
}

const every =
  (n: number, ms: number, from = 0) =>
  (iteration: number): number =>
    iteration >= from && iteration % n === 0 ? ms : 0;

describe("what a job does every so many iterations", () => {
  it.each([3, 10, 50])("since it began, every %i of them, nobody is searched for", (n) => {
    for (const first of [0, 5003]) {
      // Of fewer than three, beside those that warm up, nobody is named.
      const settled = searches(every(n, 300), first).map((slow) =>
        slow.filter((number) => number > first + 2),
      );
      expect(settled.filter(({ length }) => length >= 3)).toEqual([]);
    }
  });

  it("may be two things", () => {
    const extraMs = (n: number): number => every(10, 300)(n) + every(50, 1500)(n);
    expect(searches(extraMs)).toEqual([]);
  });

  it("is searched for where it began later", () => {
    expect(searches(every(10, 300, 60)).length).toBeGreaterThan(0);
  });

  it("hides nothing else that is slow now and then", () => {
    const fault = [123, 131, 144, 152, 157];
    const extraMs = (n: number): number => every(10, 300)(n) + (fault.includes(n) ? 400 : 0);
    const found = searches(extraMs);
    expect(found.length).toBeGreaterThan(0);
    for (const slow of found) for (const one of slow) expect(fault).toContain(one);
  });

  it("hides nothing once it has ended, nor what costs far more", () => {
    const extraMs = (n: number): number => (n < 100 ? every(10, 300)(n) : every(10, 300, 200)(n));
    expect(searches(extraMs).length).toBeGreaterThan(0);
    expect(searches((n) => every(10, 300)(n) * (n < 100 ? 1 : 4)).length).toBeGreaterThan(0);
  });
});
