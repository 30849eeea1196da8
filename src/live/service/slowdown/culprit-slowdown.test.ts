import { describe, expect, it } from "vitest";
import { JobIterations } from "../job/job-iterations.ts";
import { slowdownOf } from "./culprit-slowdown.ts";

/** Iterations from number 100 on that take so long, the first of them from second 0 on. */
function played(durations: readonly number[]): JobIterations {
  const iterations = new JobIterations("test");
  let endMs = 0;
  for (const [i, durationMs] of durations.entries()) {
    endMs += durationMs;
    iterations.push({ iteration: 100 + i, durationMs, endMs, ranks: 2 });
  }
  return iterations;
}

const repeat = (count: number, ms: number): number[] => Array<number>(count).fill(ms);
const LASTING = "lasting" as const;

describe("slowdownOf", () => {
  it("finds the first slow iteration of the half second in which somebody became slow", () => {
    // Five iterations end in the half second from 2,000 ms on, the last two of them slow.
    const iterations = played([...repeat(23, 100), ...repeat(20, 200)]);
    const found = slowdownOf({ sinceMs: 2000, shape: LASTING }, iterations, null);
    expect(found).toEqual({
      isPaced: true,
      slowFrom: 123,
      fromMs: 2300,
      beforeMs: 100,
      afterMs: 200,
    });
  });

  it("compares with what is usual where others are slow already", () => {
    const iterations = played([...repeat(20, 150), ...repeat(20, 200)]);
    const found = slowdownOf({ sinceMs: 3000, shape: LASTING }, iterations, 100);
    expect(found).toMatchObject({ slowFrom: 120, beforeMs: 100, afterMs: 200 });
  });

  it("counts the slow ones where a job is slow now and then", () => {
    const period = [...repeat(4, 100), 180];
    const iterations = played([...repeat(20, 100), ...period, ...period, ...period]);
    const shape = "now-and-then" as const;
    const found = slowdownOf({ sinceMs: 2000, shape }, iterations, null);
    expect(found).toMatchObject({ slowFrom: 124, beforeMs: 100, afterMs: 180 });
    expect(found.intermittent).toEqual({ slow: 3, of: 15 });
  });

  it("begins with the next iteration where none has ended since, and does not know the pace", () => {
    const found = slowdownOf({ sinceMs: 2000, shape: LASTING }, played(repeat(20, 100)), null);
    expect(found).toMatchObject({ isPaced: false, slowFrom: 120, fromMs: 2000 });
  });
});
