import { describe, expect, it } from "vitest";
import { makeJobs, type Permission } from "./jobs.ts";

const SHAPE = { groups: 4, total: 16, multipleOf: 1, bubble: 0 };
const UNEVEN = [5, 5, 1, 5];

function controller() {
  const asked: { permission: Permission } = { permission: "best" };
  const jobs = makeJobs({
    nowMs: () => 0,
    onChange: () => undefined,
    permission: () => asked.permission,
  });
  const play = (from: number, to: number): readonly number[] => {
    let counts: readonly number[] = [];
    for (let iteration = from; iteration < to; iteration++) {
      ({ counts } = jobs.plan("a", "r", iteration, SHAPE));
      const seconds = counts.map((count, i) => count * (i === 2 ? 0.6 : 0.1));
      jobs.report("a", "r", { iteration, counts, seconds }, SHAPE);
    }
    return counts;
  };
  return { asked, jobs, play };
}

describe("jobs that ask for their micro-batches", () => {
  it("get equal shares until they may have others, and again when they may no more", () => {
    const { asked, jobs, play } = controller();
    asked.permission = "even";
    expect(play(0, 20)).toEqual([4, 4, 4, 4]);
    expect(jobs.shares("a")).toMatchObject({ best: UNEVEN, isUneven: false });
    asked.permission = "best";
    expect(play(20, 22)).toEqual(UNEVEN);
    expect(jobs.unevenShares("a")).not.toBeNull();
    asked.permission = "even";
    expect(play(22, 24)).toEqual([4, 4, 4, 4]);
    expect(jobs.unevenShares("a")).toBeNull();
  });

  it("keep what they have while nothing may change, also over a restart of the service", () => {
    const { asked, jobs, play } = controller();
    play(0, 20);
    asked.permission = "as-before";
    expect(play(20, 30)).toEqual(UNEVEN);
    expect(jobs.unevenShares("a")).not.toBeNull();
    const again = controller();
    again.asked.permission = "as-before";
    const seconds = [1, 1, 1, 1];
    again.jobs.report("a", "r", { iteration: 30, counts: UNEVEN, seconds }, SHAPE);
    expect(again.jobs.plan("a", "r", 31, SHAPE).counts).toEqual(UNEVEN);
    expect(again.jobs.unevenShares("a")).not.toBeNull();
  });

  it("of another shape in the same run are refused", () => {
    const { jobs, play } = controller();
    play(0, 3);
    expect(() => jobs.plan("a", "r", 4, { ...SHAPE, groups: 2 })).toThrow(/shares out 16/);
  });
});
