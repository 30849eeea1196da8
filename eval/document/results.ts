/**
 * What an evaluation printed, kept as text beside how it was run: eval/results/TOPIC.md. The document is made of these,
 * so that a long evaluation need not be repeated for it.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** One script of a topic. */
export interface Run {
  /** Below eval/. */
  readonly script: string;
  readonly options: readonly string[];
  readonly seconds: number;
  readonly status: number;
  readonly output: string;
}

export interface Result {
  readonly topic: string;
  readonly isQuick: boolean;
  readonly commit: string;
  /** Of the commit, YYYY-MM-DD. */
  readonly day: string;
  /** Whether the code was other than the commit's. */
  readonly isChanged: boolean;
  readonly machine: string;
  readonly runs: readonly Run[];
}

const HEAD = "<!-- faultline-evaluation ";
const RUN = "<!-- faultline-run ";
const END = " -->";
/** Lines that tell of single cases, for whoever mends something; the tables count them all. */
const MOST_CASE_LINES = 60;

export function resultPath(folder: string, topic: string): string {
  return join(folder, `${topic}.md`);
}

export function readResult(folder: string, topic: string): Result | null {
  const path = resultPath(folder, topic);
  return existsSync(path) ? parseResult(readFileSync(path, "utf8"), path) : null;
}

export function writeResult(folder: string, result: Result): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(resultPath(folder, result.topic), resultText(result));
}

export function resultText({ runs, ...head }: Result): string {
  return [
    `${HEAD}${JSON.stringify(head)}${END}`,
    ...runs.flatMap(({ output, ...run }) => [
      `${RUN}${JSON.stringify(run)}${END}`,
      "",
      ...kept(output),
      "",
    ]),
  ].join("\n");
}

/** A line of the output that looks like one of ours is no longer one with a space in front. */
function kept(output: string): string[] {
  const lines = withoutBlankEdges(output).split("\n");
  const isCase = lines.map((line) => isCaseLine(line));
  const cases = isCase.filter(Boolean).length;
  let seen = 0;
  const shown = lines.filter((_, i) => !isCase[i] || ++seen <= MOST_CASE_LINES);
  const more = cases - MOST_CASE_LINES;
  if (more > 0) {
    const last = shown.findLastIndex((line) => isCaseLine(line));
    shown.splice(last + 1, 0, `  … and ${more} more lines of single cases`);
  }
  return shown.map((line) =>
    line.startsWith(RUN) || line.startsWith(HEAD) ? ` ${line}` : line.trimEnd(),
  );
}

/** The first line's own spaces stay: they tell lines of single cases. */
function withoutBlankEdges(text: string): string {
  return text.replace(/^(?:[ \t]*\n)+/, "").trimEnd();
}

/** What evaluations print of a single case, outside their tables. */
export function isCaseLine(line: string): boolean {
  return /^(?: {2}\S|! |WRONG |right |seed \d+)/.test(line);
}

export function parseResult(text: string, from: string): Result {
  const [first = "", ...rest] = text.split("\n");
  const head = JSON.parse(inside(first, HEAD, from)) as Omit<Result, "runs">;
  const runs: (Omit<Run, "output"> & { readonly lines: string[] })[] = [];
  for (const line of rest) {
    if (line.startsWith(RUN)) {
      const run = JSON.parse(inside(line, RUN, from)) as Omit<Run, "output">;
      runs.push({ ...run, lines: [] });
    } else runs.at(-1)?.lines.push(line);
  }
  return {
    ...head,
    runs: runs.map(({ lines, ...run }) => ({
      ...run,
      output: withoutBlankEdges(lines.join("\n")),
    })),
  };
}

function inside(line: string, mark: string, from: string): string {
  if (!line.startsWith(mark) || !line.endsWith(END))
    throw new Error(`${from} does not begin as the results of an evaluation do: run it again`);
  return line.slice(mark.length, -END.length);
}
