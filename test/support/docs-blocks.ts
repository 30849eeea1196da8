/** The fenced blocks of a Markdown file, with what its writer says about running them. */
import { readFileSync } from "node:fs";

export interface Block {
  /** Of the line with the fence, from 1. */
  readonly line: number;
  readonly language: string;
  readonly text: string;
  /** `<!-- not run: needs Slurm -->` on the line above: "needs Slurm". */
  readonly notRun: string | null;
  /** `<!-- exit 10 -->` on the line above. */
  readonly status: number;
  /** Heading that it stands under: output belongs to commands of its own section. */
  readonly section: number;
}

const FENCE = /^( *)```(\S*)\s*$/;

export function blocksOf(path: string): readonly Block[] {
  const lines = readFileSync(path, "utf8").split("\n");
  const blocks: Block[] = [];
  let section = 0;
  for (let i = 0; i < lines.length; i++) {
    if (/^#{1,6} /.test(lines[i]!)) section++;
    const [, indent, language] = FENCE.exec(lines[i]!) ?? [];
    if (indent === undefined) continue;
    const end = lines.findIndex((line, j) => j > i && line.trimEnd() === `${indent}\`\`\``);
    if (end < 0) throw new Error(`${path}:${i + 1}: the block has no end`);
    const remark = lines[i - 1] ?? "";
    blocks.push({
      line: i + 1,
      language: language!,
      text: lines
        .slice(i + 1, end)
        .map((line) => line.slice(indent.length))
        .join("\n"),
      notRun: /^\s*<!-- not run: (.+) -->$/.exec(remark)?.[1] ?? null,
      status: Number(/^\s*<!-- exit (\d+) -->$/.exec(remark)?.[1] ?? 0),
      section,
    });
    i = end;
  }
  return blocks;
}

/** Lines as a shell takes them: continued ones joined, no empty ones, no remarks. */
export function logicalLines(text: string): readonly string[] {
  return text
    .replaceAll(/\\\n\s*/g, " ")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
}

export interface FaultlineCall {
  /** Behind "faultline", flags among them. */
  readonly words: readonly string[];
  /** "--store" */
  readonly flags: readonly string[];
}

/** Calls of faultline in a line of a script or of running text. */
export function callsOf(line: string): readonly FaultlineCall[] {
  const unquoted = line.replaceAll(/'[^']*'|"[^"]*"/g, "Q").replace(/(^|\s)#.*$/, "");
  return unquoted
    .split(/[|;&]+|\$\(/)
    .map((part) => /^\s*(?:(?:do|then|exec) )?(?:[./]\S*\/)?faultline\s+(.*)$/.exec(part)?.[1])
    .filter((text) => text !== undefined)
    .map((text) => {
      const words = text.split(/\s+/);
      const flags = words.map((word) => /^--[a-z][a-z-]*/.exec(word)?.[0]);
      return { words, flags: flags.filter((flag) => flag !== undefined) };
    });
}
