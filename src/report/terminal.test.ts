import pico from "picocolors";
import { describe, expect, test } from "vitest";
import { reasonedSlowGpu } from "../../test/support/report/reasoning.ts";
import { slowGpu } from "../../test/support/report/picture.ts";
import { renderTerminal } from "./terminal.ts";

const plain = pico.createColors(false);
const linesOf = (verdict: Parameters<typeof renderTerminal>[0], width = 100): string[] =>
  renderTerminal(verdict, plain, width).split("\n");

describe("how a verdict came about, on the terminal", () => {
  const lines = linesOf(reasonedSlowGpu().verdict);

  test("leads the evidence with what decided", () => {
    const at = lines.indexOf("evidence, decided by f2, f1");
    expect(lines[at + 1]).toBe("  f2  see above");
    expect(lines[at + 2]).toBe("  f1  see above");
    expect(lines).toContain("  … 2 more findings");
  });

  test("says who disagrees and what would change it, once each", () => {
    expect(lines).toContain(
      "  node005 is accused too (f3, lost), but less likely: it got slow four minutes after the",
    );
    expect(lines.filter((line) => line.startsWith("  would change it: "))).toHaveLength(1);
  });

  test("adds two lines at most, however long the sentences are", () => {
    const long = reasonedSlowGpu();
    const reasoning = long.verdict.reasoning!;
    const wordy = "word ".repeat(500);
    const verdict = {
      ...long.verdict,
      reasoning: {
        ...reasoning,
        conflicts: [1, 2, 3].map(() => ({ ...reasoning.conflicts[0]!, why: wordy })),
        wouldChange: [wordy, wordy],
      },
    };
    const { reasoning: _, ...older } = verdict;
    expect(linesOf(verdict).length - linesOf(older).length).toBeLessThanOrEqual(2);
    const narrow = linesOf(verdict, 60).filter((line) => /accused|would change|word/.test(line));
    expect(narrow).toHaveLength(3);
    for (const line of narrow) expect(line.length).toBeLessThanOrEqual(60);
  });

  test("lets no name or reason drive the terminal", () => {
    const { verdict } = reasonedSlowGpu((text) => `${text}\u001b[2J`);
    // oxlint-disable-next-line no-control-regex
    expect(renderTerminal(verdict, plain, 100)).not.toMatch(/\x1b/);
  });

  test("says nothing of it where the verdict does not", () => {
    expect(linesOf(slowGpu().verdict)).toContain("evidence");
    expect(linesOf(slowGpu().verdict).join()).not.toMatch(/decided|accused|would change/);
  });
});
