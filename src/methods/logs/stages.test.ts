import { describe, expect, it } from "vitest";
import { lastPlace, stageAt, stageRuleOf } from "./stages.ts";
import {
  digestOf,
  identityTemplates,
  type TestLine,
} from "../../../test/support/methods/log-digest.ts";

const SCRIPT: readonly Omit<TestLine, "file">[] = [
  { text: "> initializing torch distributed ..." },
  { text: "> building the tokenizer" },
  { text: "loading checkpoint from /ckpt" },
  { text: "training starts" },
  { text: "iteration 1", iteration: 1 },
  { text: "iteration 2", iteration: 2 },
  { text: "saving checkpoint at iteration 2" },
  { text: "successfully saved checkpoint" },
  { text: "iteration 3", iteration: 3 },
];

/** The stage of an error after the first `count` lines. */
function stageAfter(count: number): string {
  const lines = [...SCRIPT.slice(0, count), { text: "ERROR boom" }];
  const digest = digestOf(lines.map((line) => ({ file: "a.log", ...line })));
  const place = { stream: 0, line: count + 1, timeMs: NaN };
  return stageAt(digest, identityTemplates(digest), place);
}

describe("the stage of a failure", () => {
  it.each([
    [0, "launch"],
    [1, "launch"],
    [2, "load"],
    [3, "load"],
    [4, "train"],
    [5, "train"],
    [7, "checkpoint"],
    [8, "train"],
    [9, "train"],
  ])("after %i lines is %s", (count, stage) => {
    expect(stageAfter(count)).toBe(stage);
  });

  it("goes by the job's clock in a file that says nothing", () => {
    const digest = digestOf([
      { file: "r0.log", text: "loading checkpoint from /ckpt", timeMs: 1000 },
      { file: "r0.log", text: "iteration 1", iteration: 1, timeMs: 5000 },
      { file: "r7.log", text: "ERROR early", timeMs: 2000 },
      { file: "r7.log", text: "ERROR late", timeMs: 9000 },
    ]);
    const templates = identityTemplates(digest);
    expect(stageAt(digest, templates, { stream: 1, line: 1, timeMs: 2000 })).toBe("load");
    expect(stageAt(digest, templates, { stream: 1, line: 2, timeMs: 9000 })).toBe("train");
    expect(lastPlace(digest)).toEqual({ stream: 1, line: 2, timeMs: 9000 });
  });

  it.each([
    ["INFO Saving model checkpoint to out/step-40", "checkpoint", false],
    ["  successfully saved checkpoint from iteration 500 to /ckpt", "checkpoint", true],
    ["[after training is done] datetime", "exit", false],
    ["***** Running training *****", "train", false],
    ["loading weights file model.safetensors", "load", false],
    ["NCCL version 2.19.4", "launch", false],
  ])("knows %s", (text, stage, isEnd) => {
    expect(stageRuleOf(text)).toEqual({ stage, isEnd });
  });

  it("knows nothing of lines that say nothing", () => {
    expect(stageRuleOf("hello world")).toBeNull();
  });
});
