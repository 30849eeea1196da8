import { describe, expect, it } from "vitest";
import type { Job } from "../../model/job.ts";
import { dated, datedByPace } from "./slow-findings.ts";
import type { OwnTimeSuspect } from "./own-time.ts";
import type { TimeBreakdown } from "./time-breakdown.ts";

const always: OwnTimeSuspect = {
  rank: 17,
  kind: "always",
  iteration: null,
  until: null,
  beforeMs: 40,
  afterMs: 114,
  sigmas: 9,
  slow: [],
};
const account = (ownMs: readonly number[]): TimeBreakdown =>
  ({
    iteration: Float64Array.from(ownMs, (_, i) => i + 1),
    ownMs: Float64Array.from(ownMs),
  }) as unknown as TimeBreakdown;

describe("a rank that is slower than its peers in most of a short record", () => {
  it("is dated by the step of its own time, however noisy the job's total is", () => {
    const own = [90, 40, 41, 39, 40, 114, 113, 118, 112, 116, 115, 113];
    expect(dated(always, account(own))).toMatchObject({
      kind: "slower",
      iteration: 6,
      until: null,
    });
  });

  it("is dated by two iterations before a plain step, not before a small one", () => {
    const own = (before: number): number[] => [90, 95, before, before + 1, 114, 113, 115, 112, 114];
    expect(dated(always, account(own(40)))).toMatchObject({ kind: "slower", iteration: 5 });
    expect(dated(always, account(own(100)))).toBe(always);
  });

  it("stays slow from the start where there is no clean step", () => {
    expect(dated(always, account([90, 114, 113, 118, 112, 116, 115]))).toBe(always);
    expect(dated(always, account([90, 40, 114, 41, 113, 39, 118, 112]))).toBe(always);
  });
});

describe("a rank that is slower than its peers in all of a record that begins after the fault", () => {
  const job = (beforeMs: number, afterMs: number, series = {}): Pick<Job, "iterations"> =>
    ({
      iterations: [
        {
          episodes: [{ type: "degradation", from: 30, isOpen: true }],
          changePoints: [{ iteration: 30, beforeMs, afterMs, direction: "slower" }],
          series,
        },
      ],
    }) as unknown as Job;

  it("is dated by the logs where it works longer than whole iterations took before", () => {
    expect(datedByPace(always, job(100, 180))).toMatchObject({
      kind: "slower",
      iteration: 30,
      paceMs: 100,
    });
  });

  it("may always have been slow where it does not, or where iterations became much longer than that", () => {
    expect(datedByPace(always, job(120, 180))).toBe(always);
    expect(datedByPace(always, job(100, 400))).toBe(always);
    expect(datedByPace(always, job(1, 1.5, { isRelative: true }))).toBe(always);
  });
});
