/** Kernel timelines for a tired person: what is slower and whose it is, then one line a rank. */
import { count, cutText, harmless, ranges, percent } from "../base/text.ts";
import type { RankProfile } from "../model/trace-profile.ts";
import type { Regression } from "../model/regression.ts";
import { wrap, type Colours } from "./terminal.ts";
import { middle, quantiles, type TraceReport } from "./trace-document.ts";
import { ownerWords } from "./owner-words.ts";

const MAX_RANKS = 16;
const MAX_REGRESSIONS = 6;
const MAX_MISSING = 4;

export function renderTraceTerminal(report: TraceReport, colours: Colours, width: number): string {
  const { run, regressions, notes, missing } = report;
  const { dim } = colours;
  const lines = [headline(report, colours), ""];
  for (const one of regressions.slice(0, MAX_REGRESSIONS))
    lines.push(...regressionLines(one, run.ranks.length, colours, width), "");
  if (regressions.length > MAX_REGRESSIONS)
    lines.push(dim(`… ${regressions.length - MAX_REGRESSIONS} more with --json`), "");
  lines.push(...table(report, colours, width));
  for (const note of notes) lines.push("", ...wrap(harmless(note), width));
  if (missing.length > 0) lines.push("");
  for (const text of missing.slice(0, MAX_MISSING))
    lines.push(dim(cutText(`missing or odd: ${harmless(text)}`, width)));
  if (missing.length > MAX_MISSING)
    lines.push(dim(`… ${missing.length - MAX_MISSING} more remarks with --json`));
  return lines.join("\n").trimEnd();
}

function headline(
  { regressions, baseline, run }: TraceReport,
  { bold, red, green, dim }: Colours,
): string {
  const against =
    baseline.length === 0 ? "" : ` against ${cutText(harmless(baseline.join(", ")), 60)}`;
  if (regressions.length > 0)
    return `${bold(red(count(regressions.length, "regression").toUpperCase()))}${against}`;
  if (run.ranks.every(({ isCut }) => isCut)) return bold("NOT COMPARED: every trace is cut off");
  if (baseline.length > 0) return `${bold(green("NO REGRESSION"))}${against}`;
  return `${bold("METRICS")}  ${dim("no baseline given: ranks could only be compared with each other (--baseline PATH)")}`;
}

function regressionLines(one: Regression, all: number, colours: Colours, width: number): string[] {
  const { bold, dim, yellow } = colours;
  const who =
    one.ranks.length === all && all > 1
      ? `all ${all} ranks`
      : `${one.ranks.length === 1 ? "rank" : "ranks"} ${ranges(one.ranks, 8)}`;
  return [
    `  ${bold(yellow(one.cause))}  ${bold(who)}  ${percent(one.share, 1)} of the step  ${dim(`→ ${ownerWords(one.owner)}`)}`,
    ...wrap(harmless(one.why), width - 4).map((line) => `    ${line}`),
    ...wrap(`threshold: ${one.threshold}`, width - 4).map((line) => dim(`    ${line}`)),
    ...one.at.slice(0, 1).map(({ file }) => dim(cutText(`    ${harmless(file)}`, width))),
  ];
}

const HEAD = [
  "rank",
  "steps",
  "step ms",
  "V_inter",
  "V_minor",
  "issue p50 ms",
  "moved ms",
  "comm ms",
  "hidden",
  "TFLOPS",
];

function table(
  { run, regressions, distanceMs }: TraceReport,
  colours: Colours,
  width: number,
): string[] {
  const blamed = new Set(regressions.flatMap(({ ranks }) => ranks));
  // Suspects come into the table first where not all ranks fit, and ranks stay in order.
  const shown = run.ranks
    .toSorted((a, b) => Number(blamed.has(b.rank)) - Number(blamed.has(a.rank)) || a.rank - b.rank)
    .slice(0, MAX_RANKS)
    .toSorted((a, b) => a.rank - b.rank);
  const rows = shown.map((profile) => cells(profile, distanceMs.get(profile.rank)));
  const widths = HEAD.map((head, i) => Math.max(head.length, ...rows.map((row) => row[i]!.length)));
  const lineOf = (row: readonly string[]): string =>
    row.map((cell, i) => cell.padStart(widths[i]!)).join("  ");
  const lines = [colours.dim(cutText(lineOf(HEAD), width))];
  for (const [i, row] of rows.entries()) {
    const line = cutText(lineOf(row), width);
    lines.push(blamed.has(shown[i]!.rank) ? colours.yellow(line) : line);
  }
  if (run.ranks.length > MAX_RANKS)
    lines.push(colours.dim(`… ${count(run.ranks.length - MAX_RANKS, "more rank")} with --json`));
  return lines;
}

function cells(profile: RankProfile, distanceMs: number | undefined): string[] {
  const { commMs, overlapMs, flops } = profile;
  const p50 = quantiles(profile.latencyMs).p50;
  return [
    String(profile.rank),
    String(profile.stepMs.length),
    middle(profile.stepMs).toFixed(1),
    percent(middle(profile.vInter), 1),
    percent(middle(profile.vMinority), 1),
    p50 === null ? "–" : p50.toFixed(2),
    distanceMs === undefined ? "–" : distanceMs.toFixed(2),
    commMs.toFixed(1),
    commMs > 0 ? percent(overlapMs / commMs, 1) : "–",
    flops[0] === undefined ? "–" : flops[0].tflops.toFixed(flops[0].tflops < 10 ? 2 : 0),
  ];
}
