/** The document of `logs --json`; its names are fixed by the contract, the rest is added. */
import type { IndicatingLine, LogCause, LogReport } from "../model/log-report.ts";

export function logsDocument(report: LogReport): Record<string, unknown> {
  const { cause, alternatives, indicating, ...rest } = report;
  return {
    schema: "faultline.logs/1",
    lines: rest.lines,
    events: rest.events,
    files: rest.files,
    bytes: rest.bytes,
    writers: rest.writers,
    nodesSeen: rest.nodesSeen,
    healthyJobs: rest.healthyJobs,
    cause: cause && causeOf(cause),
    alternatives: alternatives.map(causeOf),
    indicating: indicating.map(lineOf),
    nodes: rest.nodes,
    stage: rest.stage,
    iterations: rest.iterations,
    missing: rest.missing,
  };
}

function causeOf(cause: LogCause): Record<string, unknown> {
  return { ...cause, places: undefined, confidence: rounded(cause.confidence) };
}

function lineOf({ timeMs, score, ...line }: IndicatingLine): Record<string, unknown> {
  return { ...line, score: rounded(score), time: timeMs === null ? null : isoTime(timeMs) };
}

function rounded(value: number): number {
  return Math.round(1000 * value) / 1000;
}

export function isoTime(ms: number): string | null {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}
