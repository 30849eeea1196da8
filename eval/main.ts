/**
 * Answers against known truth:
 *
 *   npm run eval                       every topic, one after the other, and docs/evaluation.md of what they print
 *   npm run eval -- --quick            the same with few cases, in minutes, to out/evaluation-quick.md
 *   npm run eval -- TOPIC [--quick] [options]   one topic; further options go to its first evaluation
 *   npm run eval -- TOPIC --write      and its part of docs/evaluation.md anew (eval/results/TOPIC.md keeps it)
 *   npm run eval -- document           docs/evaluation.md from eval/results, without running anything
 *   npm run eval -- fit --rows FILE,…  what a method's word is worth, from rows of joint --json (eval/joint/fit.ts)
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { assemble } from "./document/assemble.ts";
import { labResults } from "./document/lab.ts";
import { readResult, writeResult } from "./document/results.ts";
import { runTopic } from "./document/run-topic.ts";
import { ON_REQUEST, TOPIC_NAMES, TOPICS, type Evaluation } from "./document/topics.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const FULL = { results: join(root, "eval/results"), document: join(root, "docs/evaluation.md") };
const QUICK = {
  results: join(root, "out/evaluation-quick"),
  document: join(root, "out/evaluation-quick.md"),
};
const LANES = 2;

const words = process.argv.slice(2);
const isQuick = words.includes("--quick");
const isWritten = words.includes("--write");
const [topic = "all", ...options] =
  words[0]?.startsWith("-") === true
    ? ["all", ...words].filter((word) => word !== "--quick" && word !== "--write")
    : words.filter((word) => word !== "--quick" && word !== "--write");

if (topic === "document") writeDocument(FULL);
else if (topic === "all") {
  if (options.length > 0)
    fail(`${options.join(" ")}: options are for one topic; name it before them`);
  const to = isQuick ? QUICK : FULL;
  await (isQuick ? runInLanes(to.results) : runInTurn(to.results));
  writeDocument(to);
} else {
  const known: Readonly<Record<string, readonly Evaluation[]>> = { ...TOPICS, ...ON_REQUEST };
  const evaluations = Object.hasOwn(known, topic) ? known[topic] : undefined;
  if (!evaluations)
    fail(
      `there is no topic "${topic}"; give one of ${Object.keys(known).join(", ")}, all, or document`,
    );
  const isWriter = evaluations.some((one) => one.isWriter === true);
  if (isWritten && topic in ON_REQUEST && !isWriter) fail(`${topic} has no part in the document`);
  if (isWritten && isWriter) options.push("--write");
  const isKept = isWritten && !isWriter;
  await runAndKeep(topic, evaluations, isKept ? FULL.results : null);
  if (isKept) writeDocument(FULL);
}

async function runInTurn(folder: string): Promise<void> {
  for (const name of TOPIC_NAMES) {
    console.log(`\n# ${name}\n`);
    await runAndKeep(name, TOPICS[name], folder);
  }
}

/** Most evaluations use one core. The full run leaves the other alone, for the times that it reports. */
async function runInLanes(folder: string): Promise<void> {
  const waiting = [...TOPIC_NAMES];
  const lane = async (): Promise<void> => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      console.error(`eval: ${name}`);
      await runAndKeep(name, TOPICS[name], folder, false);
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}

async function runAndKeep(
  name: string,
  evaluations: readonly Evaluation[],
  folder: string | null,
  isStreamed = true,
): Promise<void> {
  const result = await runTopic(name, evaluations, { isQuick, options, isStreamed });
  if (result.runs.some(({ status }) => status !== 0)) process.exitCode = 1;
  if (folder !== null) writeResult(folder, result);
}

function writeDocument({ results, document }: typeof FULL): void {
  const found = TOPIC_NAMES.map((name) => readResult(results, name)).filter((one) => one !== null);
  const text = assemble([...found, labResults(root)]);
  mkdirSync(dirname(document), { recursive: true });
  writeFileSync(document, text);
  console.error(`eval: wrote ${document.slice(root.length)}`);
}

/** Nothing has begun yet where this is called. */
function fail(why: string): never {
  console.error(`eval: ${why}`);
  process.exit(2);
}
