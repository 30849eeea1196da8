import { describe, expect, it } from "vitest";
import { steadyClock } from "./steady-clock.ts";

const HOUR = 3_600_000;

function clockWith(): {
  now: () => number;
  pass: (ms: number) => void;
  set: (ms: number) => void;
  said: string[];
} {
  let wall = 1_800_000_000_000;
  let monotonic = 5;
  const said: string[] = [];
  const now = steadyClock({
    wallMs: () => wall,
    monotonicMs: () => monotonic,
    onStep: (line) => said.push(line),
  });
  return {
    now,
    said,
    pass: (ms) => {
      wall += ms;
      monotonic += ms;
    },
    set: (ms) => {
      wall += ms;
    },
  };
}

describe("steadyClock", () => {
  it.each([-HOUR, -60_000, -1000, 1000, 60_000, HOUR])(
    "passes at about its pace when the clock is set by %i ms",
    (ms) => {
      const clock = clockWith();
      const before = clock.now();
      clock.set(ms);
      clock.pass(5000);
      const passed = clock.now() - before;
      expect(passed).toBeGreaterThanOrEqual(4500);
      expect(passed).toBeLessThanOrEqual(5500);
      expect(clock.said).toHaveLength(1);
      expect(clock.said[0]).toMatch(ms < 0 ? /set back by/ : /set ahead by/);
    },
  );

  it("is right again in the end, and says a step once", () => {
    const clock = clockWith();
    const before = clock.now();
    clock.set(-60_000);
    for (let second = 0; second < 1200; second++) {
      clock.pass(1000);
      clock.now();
    }
    expect(clock.now() - before).toBeCloseTo(1_200_000 - 60_000, 3);
    expect(clock.said).toHaveLength(1);
  });
});
