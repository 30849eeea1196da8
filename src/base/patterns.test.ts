import { expect, it } from "vitest";
import { fits, overlap } from "./patterns.ts";

it("two patterns overlap where a name fits both", () => {
  // All names of up to four letters of a small alphabet: what fits both is in one of them, for these patterns.
  const patterns = ["a", "a*", "*b", "?", "a?b", "*", "b*a", "*a*", "", "??"];
  const names = [""];
  for (const name of names)
    if (name.length < 4) names.push(...["a", "b"].map((letter) => name + letter));
  for (const one of patterns)
    for (const other of patterns) {
      const isSeen = names.some((name) => fits(name, one) && fits(name, other));
      expect([one, other, overlap(one, other)]).toEqual([one, other, isSeen]);
    }
  expect(overlap("team-a-*", "*-7")).toBe(true);
  expect(overlap("team-a-*", "team-b-*")).toBe(false);
});
