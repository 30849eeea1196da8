/** What evaluations print, made part of a larger document: headings lower, text that could be markup harmless. */
import { headingOf } from "./part.ts";
import { isCaseLine } from "./results.ts";

const LOWEST = 6;
/** More lines of single cases than this are folded. */
const MOST_OPEN = 8;

export function escapeCell(text: string): string {
  return harmless(text.replaceAll(/\s+/g, " ").trim()).replaceAll(/(?<!\\)\|/g, "\\|");
}

/** `<` begins markup where a letter, a slash or a mark follows. */
function harmless(text: string): string {
  return text.replaceAll(/<(?=[a-z/!?])/gi, "&lt;");
}

export function tableText(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => escapeCell(cell)).join(" | ")} |`;
  return [line(head), `|${"---|".repeat(head.length)}`, ...rows.map((row) => line(row))].join("\n");
}

/** Tables and text as they were printed, the highest heading at `level`; lines of single cases stand in a block. */
export function embedded(output: string, level: number): string {
  const lines = output.split("\n");
  const levels = lines.flatMap((line) => headingOf(line)?.level ?? []);
  const down = level - Math.min(level, ...levels);
  const out: string[] = [];
  const apart = (): void => {
    if (out.length > 0 && out.at(-1) !== "") out.push("");
  };
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i]!;
    const heading = headingOf(line);
    if (heading) {
      apart();
      out.push(
        `${"#".repeat(Math.min(LOWEST, heading.level + down))} ${harmless(heading.text)}`,
        "",
      );
    } else if (isCaseLine(line)) {
      const cases = lines.slice(i).findIndex((one) => !isCaseLine(one));
      const all = lines.slice(i, cases < 0 ? lines.length : i + cases);
      apart();
      out.push(...block(all), "");
      i += all.length - 1;
    } else {
      const isTable = line.startsWith("|");
      if (isTable && !(lines[i - 1] ?? "").startsWith("|")) apart();
      if (line !== "" || out.at(-1) !== "") out.push(harmless(line));
      if (isTable && (lines[i + 1] ?? "").trim() !== "" && !lines[i + 1]!.startsWith("|"))
        out.push("");
    }
  }
  return out.join("\n").trim();
}

function block(lines: readonly string[]): string[] {
  const longest = Math.max(
    2,
    ...lines.flatMap((line) => line.match(/`+/g)?.map((run) => run.length) ?? []),
  );
  const fence = "`".repeat(longest + 1);
  const text = [`${fence}text`, ...lines.map((line) => line.trim()), fence];
  if (lines.length <= MOST_OPEN) return text;
  return [
    "<details>",
    `<summary>${lines.length} lines of single cases</summary>`,
    "",
    ...text,
    "",
    "</details>",
  ];
}
