import { expect, test } from "vitest";
import { blocksOf } from "./markdown.tsx";

test("a list may follow a paragraph at once, and a blank line ends either", () => {
  expect(blocksOf("seen:\n- the cable\n* the port\nboth replaced\non Monday\n\n\n- done")).toEqual([
    ["seen:"],
    ["- the cable", "* the port"],
    ["both replaced", "on Monday"],
    ["- done"],
  ]);
  expect(blocksOf("-no list\n--help")).toEqual([["-no list", "--help"]]);
  expect(blocksOf(" \n")).toEqual([]);
});
