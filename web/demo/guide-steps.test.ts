import { expect, it } from "vitest";
import { GUIDE, type GuideFacts, stepNow } from "./guide-steps.ts";

const AT_START: GuideFacts = {
  page: "fleet",
  hasJob: true,
  isReady: false,
  isLearning: true,
  isBroken: false,
  isFound: false,
  isFixed: false,
};
const titleAt = (step: number, change: Partial<GuideFacts>): string =>
  GUIDE[stepNow(step, { ...AT_START, ...change })]?.title ?? "over";

it("goes on by itself when the thing has happened, and not before", () => {
  expect(titleAt(0, {})).toBe("This is your fleet");
  expect(titleAt(1, {})).toBe("Open the job");
  expect(titleAt(1, { page: "job" })).toBe("Break a GPU");
  expect(titleAt(2, { page: "job", isBroken: true })).toBe("Watch it being found");
  expect(titleAt(3, { page: "job", isBroken: true, isFound: true })).toBe("Why that one?");
  expect(titleAt(4, { page: "incident", isBroken: true, isFound: true })).toBe(
    "Approve the action",
  );
  expect(titleAt(5, { page: "incident", isFixed: true })).toBe("Approve the action");
});

it("skips what somebody has done already", () => {
  expect(titleAt(0, { page: "job", isBroken: true })).toBe("Watch it being found");
  expect(titleAt(0, { page: "fleet", isBroken: true })).toBe("Watch it being found");
});

it("says what to wait for before anything can be broken", () => {
  expect(GUIDE[2]!.says({ ...AT_START, isReady: false })).toContain("learning");
  expect(GUIDE[2]!.says({ ...AT_START, isLearning: false })).toContain("recovering");
  expect(GUIDE[2]!.says({ ...AT_START, isReady: true })).toContain("Click GPU");
});
