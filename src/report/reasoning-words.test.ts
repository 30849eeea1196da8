import { describe, expect, test } from "vitest";
import { reasonedSlowGpu } from "../../test/support/report/reasoning.ts";
import {
  confidenceWords,
  decidingFindings,
  inOrderOfWeight,
  leadingIds,
  timesWords,
  unsaid,
} from "./reasoning-words.ts";

const { verdict } = reasonedSlowGpu();

test("what decided comes first, however little it weighs, and only what is there", () => {
  expect(decidingFindings(verdict).map(({ finding }) => finding.id)).toEqual(["f2", "f1"]);
  expect(inOrderOfWeight(verdict).map(({ id }) => id)).toEqual(["f2", "f1", "f4", "f5", "f3"]);
});

test("without reasoning the first suspect's evidence leads, and findings go by weight", () => {
  const { reasoning: _, ...older } = verdict;
  expect(leadingIds(older)).toEqual(["f1", "f2"]);
  expect(inOrderOfWeight(older)[0]!.id).toBe("f4");
});

test.each([
  [0.5, ""],
  [1, ""],
  [NaN, ""],
  [1.34, "about 1.3 times likelier"],
  [9.96, "about 10 times likelier"],
  [417, "about 420 times likelier"],
  [Infinity, "more than a thousand times likelier"],
])("%d times is %j", (times, words) => expect(timesWords(times)).toBe(words));

test("words of confidence follow the figure that is shown", () => {
  expect(confidenceWords(0.946)).toBe("almost certain");
  expect(confidenceWords(0.944)).toBe("very likely");
  expect(confidenceWords(0.1)).toBe(confidenceWords(NaN));
});

describe("what is left of a reason", () => {
  test("is what no finding says", () => {
    expect(unsaid("a b; c; and d; e f", ["a b", "d; e f"])).toBe("c");
    expect(unsaid("a b; and c.", ["c.", "a b"])).toBe("");
    expect(unsaid("a b", ["x", ""])).toBe("a b");
  });

  test("keeps what stands inside another sentence", () => {
    expect(unsaid("slow because a b, so it is the GPU", ["a b"])).toBe(
      "slow because a b, so it is the GPU",
    );
  });
});
