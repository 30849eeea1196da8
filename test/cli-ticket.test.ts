/** A verdict for a ticket: `ticket.md` beside the report, and `--markdown` on stdout. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { faultline } from "./support/cli.ts";

const folder = mkdtempSync(join(tmpdir(), "faultline-ticket-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
/** A job that died, small, with a name and a message that would like to be more than text. */
const logs = join(folder, "logs");
mkdirSync(logs);
writeFileSync(
  join(logs, "rank0.log"),
  [
    "Traceback (most recent call last):",
    '  File "train.py", line 12, in <module>',
    "    step()",
    "RuntimeError: <img src=x onerror=alert(1)> [x](http://evil.example) @root",
    "",
  ].join("\n"),
);

it("writes the ticket beside report and verdict, and prints the same with --markdown", async () => {
  const out = join(folder, "report");
  const { status, stdout } = await faultline("diagnose", logs, "--markdown", "--out", out);
  expect(status).toBe(0);
  expect(readdirSync(out).toSorted()).toEqual([
    "picture.json",
    "report.html",
    "ticket.md",
    "verdict.json",
  ]);
  expect(stdout).toBe(readFileSync(join(out, "ticket.md"), "utf8"));
  expect(stdout).toMatch(/^# Crash\n\n\*\*.+\*\*\n\nThis ended the job\.\n\n- Confidence: \d+ %, /);
});

it("lets no line of a log become more than text", async () => {
  const { stdout } = await faultline("diagnose", logs, "--markdown", "--quiet");
  expect(stdout).toContain("alert");
  const outside = stdout.replace(/^(`{3,})text\n[^]*?\n\1$/gm, "").replace(/(`+)[^`]+\1/g, "");
  expect(outside).not.toMatch(/<|(?<!\\)\[|:\/\/|@r/);
});

it("refuses --markdown together with --json, in one line", async () => {
  const { status, stdout, stderr } = await faultline("diagnose", logs, "--markdown", "--json");
  expect([status, stdout]).toEqual([2, ""]);
  expect(stderr).toMatch(/^faultline: .*--markdown.*--json.*\n$/);
});

it("says so in its help", async () => {
  const { stdout } = await faultline("diagnose", "--help");
  expect(stdout).toContain("--markdown");
  expect(stdout).toMatch(/report\.html, verdict\.json and ticket\.md/);
});
