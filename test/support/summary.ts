/** The last lines of a test run: what was skipped for want of a program, and what passed only when tried again. */
import { existsSync, readFileSync, rmSync } from "node:fs";
import type { Reporter, TestCase, TestModule } from "vitest/node";
import { LACKING_FILE } from "./lacking.ts";

export default class Summary implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const skipped = tests.filter((test) => test.result().state === "skipped").length;
    const again = tests.filter((test) => (test.diagnostic()?.retryCount ?? 0) > 0);
    const lacking = lackingLines();
    if (skipped > 0)
      console.log(
        `skipped: ${skipped} of ${tests.length} tests${lacking.map((line) => `; ${line}`).join("")}`,
      );
    console.log(
      again.length === 0
        ? "tried again: none"
        : `tried again: ${again.length}\n${again.map((test) => `  ${nameOf(test)}`).join("\n")}`,
    );
  }
}

function nameOf(test: TestCase): string {
  const times = test.diagnostic()?.retryCount ?? 0;
  return `${test.module.relativeModuleId} > ${test.fullName} (${times} more)`;
}

function lackingLines(): string[] {
  const file = process.env[LACKING_FILE];
  if (file === undefined || !existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n");
  rmSync(file, { force: true });
  return [...new Set(lines)].filter((line) => line !== "").sort();
}
