import { describe, expect, it } from "vitest";
import { seeded } from "../../../base/random.ts";
import { type Intermittent, IntermittentWindow, quietIterations } from "./intermittent-window.ts";

/** What is seen at the last of these, of a job of 1 s an iteration otherwise. */
function seenAtEnd(slow: readonly number[]): Intermittent | null {
  const window = new IntermittentWindow();
  const random = seeded(5);
  let startMs = 1.7e12;
  let seen: Intermittent | null = null;
  for (let iteration = 0; iteration <= slow.at(-1)!; iteration++) {
    const ms = (slow.includes(iteration) ? 2500 : 1000) * (1 + 0.004 * (random() - 0.5));
    window.push({ iteration, startMs, ms });
    seen = window.look();
    startMs += ms;
  }
  return seen;
}

describe("iterations that are slow now and then", () => {
  it("are over after four usual gaps and two of the longest, or after thirty where nobody knows a usual gap", () => {
    expect(quietIterations([20, 40, 60])).toBe(80);
    expect(quietIterations([20, 21, 41, 61])).toBe(80);
    expect(quietIterations([20, 22, 24, 60])).toBe(72);
    expect(quietIterations([31, 32, 33, 59])).toBe(30);
  });

  it.each([[[30, 80, 130]], [[30, 31, 80, 81, 130]], [[40, 45, 70, 75, 100]], [[30, 31, 55, 56]]])(
    "are those of one pattern: %j",
    (slow) => {
      expect(seenAtEnd(slow)?.slow).toEqual(slow);
    },
  );

  it.each([
    [[31, 32, 103], [103]],
    [[31, 32, 65], [65]],
    [[20, 25, 30, 140], [140]],
    [
      [20, 120, 124, 130],
      [120, 124, 130],
    ],
  ])("have no part in what comes after a long quiet time: %j", (slow, last) => {
    expect(seenAtEnd(slow)?.slow ?? last.slice(-1)).toEqual(last);
  });
});
