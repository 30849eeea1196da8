import pico from "picocolors";
import { expect, test } from "vitest";
import type { LogReport } from "../model/log-report.ts";
import { renderLogsTerminal } from "./logs-terminal.ts";

const REPORT: LogReport = {
  lines: 10,
  events: 2,
  files: 1,
  bytes: 100,
  writers: 1,
  nodesSeen: 1,
  healthyJobs: 0,
  cause: null,
  alternatives: [],
  indicating: [],
  nodes: [],
  stage: "train",
  iterations: [],
  missing: [],
};

function rendered(some: Partial<LogReport>): string {
  return renderLogsTerminal({ ...REPORT, ...some }, pico.createColors(false), 100);
}

test("that there is no healthy job is said once", () => {
  const text = rendered({ missing: ["no healthy job to compare with: give --baseline"] });
  expect(text.match(/healthy job/g)).toHaveLength(1);
  expect(rendered({ healthyJobs: 3 })).toContain("compared with 3 healthy jobs");
});

test("what is not shown of the missing is counted", () => {
  const text = rendered({ missing: Array.from({ length: 11 }, (_, i) => `thing ${i}`) });
  expect(text).toContain("missing or odd: thing 7");
  expect(text).not.toContain("thing 8");
  expect(text).toContain("3 more");
});
