/** Real excerpts of failures with labels (../shared/thirdparty/logs-failures): category, and lines that tell of it. */
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { wilson } from "../../src/maths/wilson.ts";
import type { LogCause, LogReport } from "../../src/model/log-report.ts";
import type { Verdict } from "../../src/model/verdict.ts";

interface Meta {
  readonly root_cause_category: string;
  readonly failure_indicating_lines: readonly number[];
}

export interface FailureCase {
  readonly name: string;
  readonly file: string;
  readonly category: string;
  readonly lines: ReadonlySet<number>;
  readonly text: readonly string[];
}

/** What anybody would search for first. */
const KEYWORDS = /error|fail|timeout|timed out|warn|exception|abort|killed|fatal|panic/i;

export function failureCases(folder: string): FailureCase[] {
  return readdirSync(folder)
    .sort()
    .map((name) => {
      const meta = JSON.parse(readFileSync(join(folder, name, "meta.json"), "utf8")) as Meta;
      const file = join(folder, name, "log.txt");
      return {
        name,
        file,
        category: meta.root_cause_category,
        lines: new Set(meta.failure_indicating_lines),
        text: readFileSync(file, "utf8").split("\n"),
      };
    });
}

export async function runFailures(
  cases: readonly FailureCase[],
  analyse: (paths: readonly string[]) => Promise<LogReport>,
  verdictOf: (paths: readonly string[]) => Promise<Verdict | null>,
): Promise<string> {
  let right = 0;
  let agreed = 0;
  const sureAndWrong = { logs: 0, diagnose: 0 };
  const ours = new Counts();
  const grep = new Counts();
  const wrong: string[] = [];
  for (const one of cases) {
    const report = await analyse([one.file]);
    const category = report.cause?.category ?? "none";
    if (category === one.category) right++;
    else
      wrong.push(
        `| ${one.name} | ${one.category} | ${category} | ${report.cause?.signature ?? ""} | ${(report.cause?.confidence ?? 0).toFixed(2)} |`,
      );
    const verdict = await verdictOf([one.file]);
    const isSame = verdict !== null && agrees(report.cause, verdict);
    if (isSame) agreed++;
    else console.error(`${one.name}: diagnose says ${verdict?.suspects[0]?.cause ?? "nothing"}`);
    if (category !== one.category) {
      if ((report.cause?.confidence ?? 0) >= SURE) sureAndWrong.logs++;
      if (verdict?.suspects[0] && verdict.confidence >= SURE) sureAndWrong.diagnose++;
    }
    const found = new Set(report.indicating.map(({ line }) => line));
    ours.add(one.lines, found);
    const grepped = one.text.flatMap((text, i) => (KEYWORDS.test(text) ? [i + 1] : []));
    grep.add(one.lines, new Set(grepped));
    const missed = [...one.lines].filter((line) => !found.has(line));
    const extra = [...found].filter((line) => !one.lines.has(line));
    if (missed.length + extra.length > 0)
      console.error(`${one.name}: missed ${missed.join(",")}; besides ${extra.join(",")}`);
  }
  return [
    `## Real failures, ${cases.length} labelled excerpts`,
    "",
    `Category right: ${shareWords(right, cases.length)}. As many cases are kept back; records of the library were checked against these, so they are development data.`,
    "",
    `diagnose agrees on cause and confidence in ${agreed} of ${cases.length}. Wrong at ${SURE} or above: logs ${sureAndWrong.logs}, diagnose ${sureAndWrong.diagnose}.`,
    "",
    "| lines that tell of the failure | precision / recall / F1, all lines together | mean F1 of a case |",
    "| --- | --- | --- |",
    `| ours | ${ours.words()} | ${ours.meanF1().toFixed(3)} |`,
    `| keyword grep | ${grep.words()} | ${grep.meanF1().toFixed(3)} |`,
    "| NVRx registry, published on 73 cases | 0.890 / 0.340 / 0.492 | |",
    "| keyword grep, published on 73 cases | 0.538 / 0.647 / 0.588 | |",
    "",
    ...(wrong.length > 0
      ? [
          "| wrong category | truth | ours | by | confidence |",
          "| --- | --- | --- | --- | --- |",
          ...wrong,
        ]
      : []),
    "",
  ].join("\n");
}

const SURE = 0.8;

/** The same cause at the same confidence; of a hang without a culprit the same confidence. */
export function agrees(cause: LogCause | null, { kind, suspects, confidence }: Verdict): boolean {
  const isSame = Math.abs(confidence - (cause?.confidence ?? NaN)) < 0.006;
  if (suspects.length === 0) return cause === null || (kind === "hang" && isSame);
  return isSame && suspects[0]!.cause === cause?.cause;
}

/** Runs that finished, or were ended from outside: whether anybody is accused of anything. */
export async function runNormal(
  files: readonly string[],
  analyse: (paths: readonly string[]) => Promise<LogReport>,
  verdictOf: (paths: readonly string[]) => Promise<Verdict | null>,
): Promise<string> {
  const rows: string[] = [];
  for (const file of files) {
    const { cause } = await analyse([file]);
    const verdict = await verdictOf([file]);
    if (cause || (verdict?.suspects.length ?? 0) > 0)
      rows.push(
        `| ${basename(file)} | ${cause?.signature ?? ""} | ${(cause?.confidence ?? 0).toFixed(2)} | ${verdict?.kind ?? "not read"} ${verdict?.suspects[0]?.cause ?? ""} | ${(verdict?.confidence ?? 0).toFixed(2)} |`,
      );
  }
  return [
    `## Normal runs: ${rows.length} of ${files.length} with a cause`,
    "",
    ...(rows.length > 0
      ? ["| run | logs | confidence | diagnose | confidence |", "| --- | --- | --- | --- | --- |"]
      : []),
    ...rows,
    "",
  ].join("\n");
}

export function shareWords(right: number, all: number): string {
  const [low, high] = wilson(right, all).map((one) => (100 * one).toFixed(1));
  return `${right} of ${all} = ${((100 * right) / Math.max(1, all)).toFixed(1)} % (${low} to ${high})`;
}

class Counts {
  #right = 0;
  #found = 0;
  #true = 0;
  readonly #f1: number[] = [];

  add(truth: ReadonlySet<number>, found: ReadonlySet<number>): void {
    const right = [...found].filter((line) => truth.has(line)).length;
    this.#right += right;
    this.#found += found.size;
    this.#true += truth.size;
    this.#f1.push((2 * right) / Math.max(1, found.size + truth.size));
  }

  words(): string {
    const precision = this.#right / Math.max(1, this.#found);
    const recall = this.#right / Math.max(1, this.#true);
    const f1 = (2 * precision * recall) / Math.max(1e-9, precision + recall);
    return `${precision.toFixed(3)} / ${recall.toFixed(3)} / ${f1.toFixed(3)}`;
  }

  meanF1(): number {
    return this.#f1.reduce((sum, one) => sum + one, 0) / Math.max(1, this.#f1.length);
  }
}
