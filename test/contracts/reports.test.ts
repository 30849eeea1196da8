/** What every form of the answer owes: who, how sure and what to do; and a stranger's text stays text. */
import pc from "picocolors";
import { describe, expect, it } from "vitest";
import type { Job } from "../../src/model/job.ts";
import type { Verdict } from "../../src/model/verdict.ts";
import { renderHtml } from "../../src/report/html/html.ts";
import { incidentMarkdown } from "../../src/report/markdown.ts";
import { renderTerminal } from "../../src/report/terminal.ts";
import { syntheticHang } from "../support/report/job.ts";

const FORMS: Readonly<Record<string, (job: Job, verdict: Verdict) => string>> = {
  terminal: (_, verdict) => renderTerminal(verdict, pc.createColors(false), 100),
  HTML: (job, verdict) => renderHtml(job, verdict),
  Markdown: (_, verdict) => incidentMarkdown({ verdict }),
  JSON: (_, verdict) => JSON.stringify(verdict),
};
const SHAPE = { tp: 2, pp: 2, dp: 2, culprit: 3 };
const HOSTILE = "<script>alert(1)</script>\u001b[31m\u202e";

describe.each(Object.entries(FORMS))("%s", (name, write) => {
  it("says who, how sure, what to do and who only waits", () => {
    const { job, verdict } = syntheticHang({ ...SHAPE, text: (plain) => plain });
    const text = write(job, verdict).replace(/\s+/g, " ");
    expect(text).toContain(`ank ${verdict.suspects[0]!.ranks[0]}`);
    expect(text).toMatch(/93|0\.93/);
    expect(text).toContain("py-spy dump");
  });

  it("writes the same twice", () => {
    const { job, verdict } = syntheticHang({ ...SHAPE, text: (plain) => plain });
    expect(write(job, verdict)).toBe(write(job, verdict));
  });

  it("lets nothing of a stranger's act", () => {
    const { job, verdict } = syntheticHang({ ...SHAPE, text: (plain) => `${plain}${HOSTILE}` });
    const text = write(job, verdict);
    if (name === "HTML") expect(text).not.toContain("<script>alert");
    // Inside a code span it is text.
    if (name === "Markdown") expect(text.replace(/`[^`\n]*`/g, "")).not.toContain("<script>");
    if (name !== "JSON")
      for (const sign of ["\u001b[31m", "\u202e"]) expect(text).not.toContain(sign);
    else expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(verdict)));
  });

  it("says that nothing is known where there is nothing", () => {
    const { job, verdict } = syntheticHang({ ...SHAPE, text: (plain) => plain });
    const bare: Verdict = {
      ...verdict,
      kind: "undetermined",
      summary: "These files do not show whether anything is wrong.",
      suspects: [],
      victims: [],
      actions: [],
      findings: [],
      inputs: [],
      confidence: 0.2,
    };
    expect(write(job, bare).replace(/\s+/g, " ")).toContain(
      "do not show whether anything is wrong",
    );
  });
});
