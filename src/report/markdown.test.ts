import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { reasonedSlowGpu } from "../../test/support/report/reasoning.ts";
import { incidentMarkdown, MOST_BYTES } from "./markdown.ts";
import { markdownCode, markdownFence, markdownText } from "./markdown-escape.ts";
import { slowGpu, standstill } from "../../test/support/report/picture.ts";

const bytes = (text: string): number => new TextEncoder().encode(text).length;

describe("an incident for a ticket", () => {
  const text = incidentMarkdown({ ...slowGpu(), link: "http://127.0.0.1:7777/#/incidents/x" });

  test("has the answer, what to do first, and then the proof, in this order", () => {
    const order = [
      "# Fail-slow, llama-70b",
      "**The GPU of rank 17 on node002",
      "Confidence: 94 %",
      "Since: 2026-11-15 00:41:49 UTC",
      "<http://127.0.0.1:7777/#/incidents/x>",
      "## Do first",
      "`nvidia-smi -q` shows its clocks",
      "Expected: 497 ms → 262 ms",
      "State: failed. scontrol: permission denied.",
      "**GPU of rank 17** on node002: its GPU computes slower",
      "> 4012 2026-11-15",
      "## Compared with its peers",
      "1. **time in operators, of an iteration: DATA\\_PARALLEL\\_1.** Rank 17 waits 229 ms less",
      "2. **time outside operators",
      "(rank 17: 412 ms, before 181 ms; the others: 18",
      "## Evidence",
      "- rank 6 left no dump",
    ].map((part) => [part, text.indexOf(part)] as const);
    for (const [part, at] of order) expect([part, at]).not.toEqual([part, -1]);
    const places = order.map(([, at]) => at);
    expect(places.toSorted((a, b) => a - b)).toEqual(places);
  });

  test("says who never arrived where a job stands still", () => {
    expect(incidentMarkdown(standstill())).toContain(
      "(never arrived: ranks 24–31; the others: 10 min)",
    );
  });

  test("says who disagrees and what would change it, with no rival number or finding code", () => {
    const reasoned = incidentMarkdown(reasonedSlowGpu());
    expect(reasoned).toContain("## Other suspects");
    expect(reasoned).toContain("Less likely: it got");
    expect(reasoned).toContain("- `dmesg | grep -i xid` on node005");
    expect(reasoned).not.toMatch(/likelier|weight|score|see above|`f\d`/);
    expect(text).not.toMatch(/accused|would change/);
  });

  test("keeps the spaces around commands", () => {
    const { verdict } = slowGpu();
    const wouldHelp = ["Python stacks of rank 3 (py-spy dump --pid 7, or faulthandler)"];
    expect(incidentMarkdown({ verdict: { ...verdict, wouldHelp } })).toContain(
      "rank 3 (`py-spy dump --pid 7`, or faulthandler)",
    );
  });

  test("is called what the job is called where there is no incident", () => {
    const { verdict } = slowGpu();
    expect(incidentMarkdown({ job: "a_b", verdict })).toMatch(/^# Fail-slow, a\\_b\n/);
    expect(incidentMarkdown({ job: "", verdict })).toMatch(/^# Fail-slow\n/);
  });

  test("does without incident and picture", () => {
    const bare = incidentMarkdown({ verdict: slowGpu().verdict });
    expect(bare).toContain("## Suspects");
    expect(bare).not.toContain("Compared with");
  });

  test("stays below 60 KB, with every fence closed, however long the texts are", () => {
    const long = incidentMarkdown(slowGpu((plain) => `${plain} \`\`\`\` ${"€".repeat(100_000)}`));
    expect(bytes(long)).toBeLessThan(MOST_BYTES);
    let open: string | null = null;
    for (const line of long.split("\n")) {
      const fence = /^`{3,}/.exec(line)?.[0];
      if (open === null && fence) open = fence;
      else if (open !== null && line === open) open = null;
    }
    expect(open).toBeNull();
  });

  test("links only where we say", () => {
    const bad = incidentMarkdown({
      ...reasonedSlowGpu(
        (plain) => `${plain} [x](http://evil) <a href=x> www.evil.com @root #1 \n# owned\n/close`,
      ),
      link: "javascript:alert(1)",
    });
    const outside = bad.replace(/^(`{3,})text\n[^]*?\n\1$/gm, "").replace(/(`+)[^`]+\1/g, "");
    expect(outside).not.toMatch(/<|javascript|(?<!\\)\[|:\/\/|www\.e|@r|#1|^\/|^# owned/m);
  });
});

describe("a stranger's text in Markdown", () => {
  test("is one line that begins nothing, with no tag and nothing unescaped", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (given) => {
        const text = markdownText(given, 500);
        expect(text).not.toMatch(/[\n\r<>]|^[-+#=/]|^\d+[.)]/);
        expect(text.replace(/\\[^A-Za-z0-9\s]/g, "")).not.toMatch(/[`*_{}[\]|~$\\]/);
      }),
    );
  });

  test("in code cannot end it", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("`", "a", " ", "\n") }), (given) => {
        const code = markdownCode(given, 500);
        const fence = /^`*/.exec(code)![0];
        expect(code.slice(fence.length, -fence.length || undefined)).not.toMatch(
          new RegExp(`(?<!\`)\`{${Math.max(1, fence.length)}}(?!\`)`),
        );
        const lines = markdownFence([given, "x"]).split("\n");
        expect(lines).toHaveLength(4);
        expect(lines.slice(1, -1).some((line) => line.includes(lines.at(-1)!))).toBe(false);
      }),
    );
  });
});
