/**
 * Failure texts and normal runs that others published, found by search; only what finds them again is here
 * (public-failures.json, public-normal.json). Who has fetched the texts (a folder each, named by its id) asks them:
 *
 *   node --import tsx eval/logs/public.ts FAILURES NORMAL
 *
 * The causes were written down from the threads before anything was run on the texts.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { logsFromFiles } from "../../src/pipeline/logs.ts";
import type { Env } from "../../src/model/job.ts";
import { diagnose } from "../../src/pipeline/diagnose.ts";
import { wilson } from "../../src/maths/wilson.ts";

interface Told {
  readonly id: string;
  readonly category: string;
  readonly acceptedCategories?: readonly string[];
  readonly cause: string;
  readonly accepted?: readonly string[];
  /** thread: said there; message, sibling: our reading of the text, or another thread's. */
  readonly basis?: string;
}

const SURE = 0.8;
const env: Env = { signal: new AbortController().signal, progress: () => undefined };
const [failures = "", normal = ""] = process.argv.slice(2);
const here = (name: string): readonly Told[] =>
  JSON.parse(readFileSync(new URL(name, import.meta.url), "utf8")) as Told[];
const share = (right: number, all: number): string => {
  const [low, high] = wilson(right, all).map((one) => (100 * one).toFixed(0));
  return `${right} of ${all} (95 %: ${low} to ${high} %)`;
};

async function asked(folder: string): Promise<{
  category: string;
  logs: number;
  signature: string;
  cause: string;
  kind: string;
  sure: number;
}> {
  const { cause } = await logsFromFiles([folder], { workers: 0, baseline: [] }, env);
  const verdict = await diagnose({ paths: [folder] }, env).then(
    (answer) => answer.verdict,
    () => null,
  );
  return {
    category: cause?.category ?? "none",
    logs: cause?.confidence ?? 0,
    signature: cause?.signature ?? "",
    cause: verdict?.suspects[0]?.cause ?? "none",
    kind: verdict?.kind ?? "not read",
    sure: verdict?.suspects[0] ? verdict.confidence : 0,
  };
}

let [read, right, rightCause, silent] = [0, 0, 0, 0];
const byBasis = new Map<string, [number, number]>();
const sure = { logs: 0, diagnose: 0 };
const wrong: string[] = [];
for (const told of here("public-failures.json")) {
  const folder = join(failures, told.id);
  if (!existsSync(folder)) continue;
  read++;
  const said = await asked(folder);
  const isRight = [told.category, ...(told.acceptedCategories ?? [])].includes(said.category);
  const isCause = [told.cause, ...(told.accepted ?? [])].includes(said.cause);
  if (isRight) right++;
  if (isCause) rightCause++;
  if (said.category === "none") silent++;
  const [good, all] = byBasis.get(told.basis ?? "thread") ?? [0, 0];
  byBasis.set(told.basis ?? "thread", [good + (isRight ? 1 : 0), all + 1]);
  if (!isRight && said.logs >= SURE) sure.logs++;
  if (!isCause && said.sure >= SURE) sure.diagnose++;
  if (!isRight || !isCause)
    wrong.push(
      `| ${told.id} | ${told.category}, ${told.cause} | ${said.category} by ${said.signature} ${said.logs.toFixed(2)} | ${said.kind} ${said.cause} ${said.sure.toFixed(2)} |`,
    );
}
console.log(`## Failure texts of public threads: ${read}\n`);
console.log(
  `Category right: ${share(right, read)}; said nothing in ${silent}. diagnose's cause right: ${share(rightCause, read)}.`,
);
console.log(
  [...byBasis].map(([basis, [good, all]]) => `By ${basis}: ${good} of ${all}.`).join(" "),
);
console.log(`Wrong at ${SURE} or above: logs ${sure.logs}, diagnose ${sure.diagnose}.\n`);
console.log("| text | truth | logs | diagnose |\n| --- | --- | --- | --- |");
console.log(wrong.join("\n"));

const accused: string[] = [];
const runs = existsSync(normal)
  ? readdirSync(normal, { withFileTypes: true }).filter((one) => one.isDirectory())
  : [];
for (const { name } of runs) {
  const said = await asked(join(normal, name));
  if (said.logs > 0 || said.sure > 0)
    accused.push(
      `| ${name} | ${said.category} by ${said.signature} ${said.logs.toFixed(2)} | ${said.kind} ${said.cause} ${said.sure.toFixed(2)} |`,
    );
}
console.log(`\n## Normal runs: ${accused.length} of ${runs.length} with a cause\n`);
console.log("| run | logs | diagnose |\n| --- | --- | --- |");
console.log(accused.join("\n"));
