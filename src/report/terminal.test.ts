import pico from "picocolors";
import { describe, expect, test } from "vitest";
import { reasonedSlowGpu } from "../../test/support/report/reasoning.ts";
import { slowGpu } from "../../test/support/report/picture.ts";
import { renderTerminal } from "./terminal.ts";

const plain = pico.createColors(false);
const linesOf = (verdict: Parameters<typeof renderTerminal>[0], width = 100): string[] =>
  renderTerminal(verdict, plain, width).split("\n");

describe("the answer on the terminal", () => {
  const lines = linesOf(reasonedSlowGpu().verdict);

  test("has what to do before the proof, one number, and no finding code", () => {
    const at = (title: string): number => lines.findIndex((line) => line.startsWith(title));
    expect(at("do first")).toBeGreaterThan(0);
    expect(at("proof")).toBeGreaterThan(at("do first"));
    expect(at("also possible")).toBeGreaterThan(at("proof"));
    expect(lines.join("\n").match(/9\d %/g)).toHaveLength(1);
    expect(lines.join("\n")).not.toMatch(/\bf\d\b|see above|likelier|weight|score/);
  });

  test("says who else is accused, in two lines at most", () => {
    const { verdict } = reasonedSlowGpu();
    const conflicts = [{ ...verdict.reasoning!.conflicts[0]!, why: "word ".repeat(500) }];
    const long = { ...verdict, reasoning: { ...verdict.reasoning!, conflicts }, suspects: [] };
    const at = linesOf(long, 60).filter((line) => /^ +(?:node005:|word)/.test(line));
    expect(at).toHaveLength(2);
    for (const line of at) expect(line.length).toBeLessThanOrEqual(60);
  });

  test("shows the culprit's own stack and log before what others say", () => {
    const frames = ["train_step (train.py:159)", "main (train.py:209)"];
    const stacks = [{ file: "stacks.txt", rank: 17, status: "", frames, leftOut: 0 }];
    const text = renderTerminal(reasonedSlowGpu().verdict, plain, 100, { stacks, logs: [] });
    expect(text).toMatch(/proof\n[^]*rank 17's Python stands at stacks.txt\n\s+train_step/);
  });

  test("puts alike findings into one line", () => {
    const { verdict } = slowGpu();
    const [first] = verdict.findings;
    const findings = Array.from({ length: 30 }, (_, k) => ({
      ...first!,
      id: `f${k}`,
      says: `rank ${k} waits in the same all_reduce`,
    }));
    const { reasoning: _, ...rest } = { ...verdict, findings, suspects: [] };
    const told = linesOf(rest).filter((line) => line.includes("all_reduce"));
    expect(told).toEqual(["  rank 0 waits in the same all_reduce (and 29 alike)"]);
  });

  test("lets no name or reason drive the terminal", () => {
    const { verdict } = reasonedSlowGpu((text) => `${text}\u001b[2J`);
    // oxlint-disable-next-line no-control-regex
    expect(renderTerminal(verdict, plain, 100)).not.toMatch(/\x1b/);
  });
});
