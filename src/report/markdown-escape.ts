/**
 * Text of strangers inside Markdown: it stays text wherever the ticket is read. Angle brackets and ampersands become
 * entities, because not every renderer knows backslashes before them; what begins links, emphasis, code and tables gets a
 * backslash; and a word joiner, which nobody sees, keeps trackers from turning @names, #1 and addresses into links, which
 * they do after Markdown is rendered.
 */
import { plain } from "./parts/plain.ts";

const JOINER = "\u2060";
const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };

/** On one line: a line of its own could begin a heading, a list or a tracker's command. */
export function markdownText(text: string, most: number): string {
  return plain(text, most)
    .replace(/\s+/g, " ")
    .trim()
    .replace(/[&<>]|[\\`*_{}[\]|~$]/g, (sign) => ENTITIES[sign] ?? `\\${sign}`)
    .replace(/:(?=\/\/)|(?<=\bwww)\./gi, (sign) => `${sign}${JOINER}`)
    .replace(/[@#!%](?=[\p{L}\p{N}_])/gu, (sign) => `${sign}${JOINER}`)
    .replace(/^([-+=#/]|\d+[.)])/, `${JOINER}$1`);
}

/** In code nothing is read as anything, but backquotes end it: the fence is longer than any in the text. */
export function markdownCode(text: string, most: number): string {
  const line = plain(text, most).replace(/\s+/g, " ").trim();
  if (line === "") return "";
  const fence = "`".repeat(longestRun(line) + 1);
  const space = fence.length > 1 || line.startsWith("`") || line.endsWith("`") ? " " : "";
  return `${fence}${space}${line}${space}${fence}`;
}

export function markdownFence(lines: readonly string[]): string {
  const clean = lines.map((line) => plain(line).replace(/[\n\r]/g, " "));
  const fence = "`".repeat(Math.max(3, longestRun(clean.join("\n")) + 1));
  return [`${fence}text`, ...clean, fence].join("\n");
}

function longestRun(text: string): number {
  let longest = 0;
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length);
  return longest;
}
