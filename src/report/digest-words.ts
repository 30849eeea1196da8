/** The digest of some days in words: Markdown for a wiki, plain lines for a chat that draws no tables. */
import { harmless } from "../base/text.ts";
import type { Digest, Share } from "../model/digest.ts";

const HOUR_MS = 3_600_000;
const MOST_NAME = 200;

export function digestMarkdown(digest: Digest): string {
  const { title, says, judged, lists } = wordsOf(digest);
  const tables = lists.flatMap(([name, shares]) => [
    "",
    `| ${name} | incidents | lost |`,
    "|---|---:|---:|",
    ...shares.map((one) => `| ${cell(one.name)} | ${one.incidents} | ${hours(one.wastedGpuMs)} |`),
  ]);
  const lines = [`# ${title}`, "", says, ...tables, ...(judged === null ? [] : ["", judged])];
  return `${lines.join("\n")}\n`;
}

/** The costliest of each list. */
const MOST_LINES = 5;

export function digestText(digest: Digest): string {
  const { title, says, judged, lists } = wordsOf(digest);
  const parts = lists.flatMap(([name, shares]) => [
    "",
    name,
    ...shares
      .slice(0, MOST_LINES)
      .map(
        (one) =>
          `• ${harmless(one.name.slice(0, MOST_NAME))}: ${hours(one.wastedGpuMs)}, ${incidentsOf(one.incidents)}`,
      ),
    ...(shares.length > MOST_LINES ? [`and ${shares.length - MOST_LINES} more`] : []),
  ]);
  return [title, says, ...parts, ...(judged === null ? [] : ["", judged])].join("\n");
}

function wordsOf(digest: Digest) {
  const { fromMs, toMs, incidents, wastedGpuMs, isCut } = digest;
  const { right, wrong } = digest.judged;
  const day = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
  const all = right + wrong;
  const named: readonly (readonly [name: string, shares: readonly Share[]])[] = [
    ["By cause", digest.byCause],
    ["By machine", digest.byMachine],
    ["Broke again", digest.repeated],
  ];
  return {
    title: `Faultline, ${day(fromMs)} to ${day(toMs)}`,
    says: `${incidentsOf(incidents)}, ${hours(wastedGpuMs)} lost${isCut ? " (the newest incidents only)" : ""}.`,
    judged:
      all === 0
        ? null
        : `Of ${all} answers that people judged, ${right} ${right === 1 ? "was" : "were"} right.`,
    lists: named.filter(([, shares]) => shares.length > 0),
  };
}

function incidentsOf(count: number): string {
  return `${count} ${count === 1 ? "incident" : "incidents"}`;
}

function hours(gpuMs: number): string {
  return `${(gpuMs / HOUR_MS).toFixed(1)} GPU hours`;
}

/** Names are strangers'. */
function cell(text: string): string {
  return harmless(text.slice(0, MOST_NAME)).replace(/[|<>[\]`*_\\]/g, "\\$&");
}
