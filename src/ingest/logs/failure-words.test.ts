import { expect, test } from "vitest";
import { hasFailureWord, WordScreen } from "./failure-words.ts";

test.each([
  "disk FAILED",
  "got SIGSEGV here",
  "step was skipped",
  "skip of nothing was skippe, then skipped",
  "lm loss: inf",
  "can't go on",
  "link down",
  "an OOM killer",
])("tells: %s", (text) => {
  expect(hasFailureWord(text)).toBe(true);
});

test.each(["all is well", "a room for a tenant", "number of skipped iterations: 3", "information"])(
  "tells nothing: %s",
  (text) => {
    expect(hasFailureWord(text)).toBe(false);
  },
);

test("words that begin inside of others are found", () => {
  const screen = new WordScreen(["abab", "bac", "time out"]);
  expect(screen.has("xababx")).toBe(true);
  expect(screen.has("aBAc")).toBe(true);
  expect(screen.has("ababac".slice(1, 4))).toBe(false);
  expect(screen.has("a TIME out")).toBe(true);
  expect(screen.has("time\u0120out")).toBe(false);
});
