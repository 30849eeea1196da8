import { expect, it } from "vitest";
import { testVerdict } from "../../test/support/live/incident.ts";
import { effectOf, headlineOf } from "./answer.ts";
import { pastVerdict } from "./past-verdict.ts";

it("tells in the past who was slow, what it did and who waited", () => {
  const answer = {
    who: "the NIC of rank 41 on node005",
    what: "is slow: communication takes 249 ms longer per iteration",
    isSeen: false,
    effect: "slows the job down",
    slower: "1.22 times as long: 749 ms → 913 ms per iteration",
    waiting: "the other 63 ranks only wait",
    where: [],
    device: null,
  };
  const summary = `The NIC of rank 41 on node005 ${answer.what}, and that slows the job down (${answer.slower}); ${answer.waiting}.`;
  const past = pastVerdict(testVerdict({ kind: "fail-slow", summary, answer, confidence: 0.9 }));
  const was = "was slow: communication took 249 ms longer per iteration";
  expect(past.summary).toBe(
    `The NIC of rank 41 on node005 ${was}, and that slowed the job down (${answer.slower}); the other 63 ranks only waited.`,
  );
  expect(headlineOf(past.answer!)).toBe(`The NIC of rank 41 on node005 ${was}`);
  expect(effectOf(past.answer!)).toBe(
    `This slowed the job down. The job took ${answer.slower}. The other 63 ranks only waited.`,
  );
  expect(pastVerdict(past)).toBe(past);
});
