import { expect, test } from "vitest";
import { reasonedSlowGpu } from "../../test/support/report/reasoning.ts";
import { readTags } from "../../test/support/report/tag-check.ts";
import { markupOf } from "../../src/report/parts/markup-of.ts";
import { slowGpu } from "../../test/support/report/picture.ts";
import { Why } from "./sections.tsx";

test("an incident's page says how its verdict came about, without links: addresses are routes there", () => {
  const { text } = markupOf(Why, { verdict: reasonedSlowGpu().verdict });
  expect(readTags(text).map(({ name }) => name)).not.toContain("a");
  expect(text).toContain("Less likely: it got slow four minutes after");
});

test("and nothing where the verdict does not say", () => {
  expect(markupOf(Why, { verdict: slowGpu().verdict }).text).toBe("");
});
