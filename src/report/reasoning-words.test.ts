import { expect, test } from "vitest";
import { reasonedSlowGpu } from "../../test/support/report/reasoning.ts";
import { sureWords } from "./answer-words.ts";
import { decidingFindings, inOrderOfWeight, leadingIds } from "./reasoning-words.ts";

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

test("words of confidence follow the figure that is shown", () => {
  expect(sureWords(0.946)).toBe("95 %, almost certain");
  expect(sureWords(0.944)).toBe("94 %, very likely");
});
