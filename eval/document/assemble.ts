/** docs/evaluation.md out of what evaluations printed. Says what was not run; a figure that is not found is an error. */
import { unaccounted, type Chapter, type Row } from "./chapter.ts";
import { LAB } from "./lab.ts";
import { embedded, escapeCell, tableText } from "./markdown.ts";
import { CHAPTERS } from "./papers.ts";
import { Part } from "./part.ts";
import type { Result, Run } from "./results.ts";
import { TOPIC_NAMES, TOPICS, type Evaluation, type Topic } from "./topics.ts";

const NOT_REPRODUCED = "What could not be reproduced, and why";

interface Found {
  readonly result: Result;
  readonly run: Run;
}

export function assemble(
  results: readonly Result[],
  chapters: readonly Chapter[] = CHAPTERS,
): string {
  const found = new Map<string, Found>();
  for (const result of results)
    for (const run of result.runs) found.set(run.script, { result, run });
  for (const chapter of chapters) {
    const [first] = unaccounted(chapter);
    if (first !== undefined) throw new Error(`${chapter.title}: nothing is said of ${first}`);
  }
  return `${[
    "# Evaluation",
    preface(results),
    contents(chapters),
    "## How it was run",
    runTable(results),
    ...chapters.map((chapter) => chapterText(chapter, found)),
    `## ${NOT_REPRODUCED}`,
    ...chapters.flatMap((chapter) => reasons(chapter)),
  ].join("\n\n")}\n`;
}

function preface(results: readonly Result[]): string {
  const quick = results.filter(({ isQuick }) => isQuick).map(({ topic }) => topic);
  return [
    "Every table and figure of the five papers that simulation and our recordings allow, beside ours. Made by",
    "`npm run eval` (`npm run eval -- document` puts together what `eval/results` holds); do not edit it. Seeds are fixed: the",
    "same commit gives the same answers, times apart.",
    "",
    "Read it with care. The papers' figures come from their own production clusters, ours from simulated jobs and from small real ones, so that a",
    "row compares what both report, not two systems on the same data; where the paper's method could be rebuilt it was run on our data as",
    "well, and stands in the tables as such. Our methods were developed on other seeds of the same simulators, the rebuilt ones were not: where a",
    "rebuilt method does worse here than in its paper, our reading or our data may be the reason, and it is no verdict on the paper.",
    "Intervals are Wilson's at 95 %.",
    ...(quick.length === 0
      ? []
      : [
          "",
          `**Only a quick run, with few cases, is in here of: ${quick.join(", ")}.** Figures of so few cases show that it works, not how well.`,
        ]),
  ].join("\n");
}

function contents(chapters: readonly Chapter[]): string {
  return ["How it was run", ...chapters.map(({ title }) => title), NOT_REPRODUCED]
    .map((title) => `- [${title}](#${slug(title)})`)
    .join("\n");
}

/** As GitHub makes them. */
function slug(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} -]/gu, "")
    .replaceAll(" ", "-");
}

const anchor = (script: string): string =>
  `run-${script.replace(/\.\w+$/, "").replaceAll(/[^a-z]+/g, "-")}`;

function runTable(results: readonly Result[]): string {
  const rows = TOPIC_NAMES.flatMap((topic) => {
    const result = results.find((one) => one.topic === topic);
    const evaluations: readonly Evaluation[] = TOPICS[topic];
    return evaluations.map(({ script, title, seeds }) => {
      const run = result?.runs.find((one) => one.script === script);
      const link = `[${title}](#${anchor(script)})`;
      if (!result || !run)
        return [
          topic,
          link,
          result?.isQuick === true ? "left out of the quick run" : "not run",
          "",
          "",
          "",
        ];
      return [
        topic,
        link,
        `${result.isQuick ? "quick" : "full"}${run.options.length > 0 ? ` (${run.options.join(" ")})` : ""}`,
        commitWords(result),
        seeds ?? "said in its tables",
        `${run.seconds} s${run.status === 0 ? "" : `, **ended with status ${run.status}**`}`,
      ];
    });
  });
  const machines = [...new Set(results.filter(isOfTopic).map(({ machine }) => machine))];
  return [
    tableText(["topic", "evaluation", "run", "commit", "seeds", "took"], rows),
    "",
    `Machine: ${machines.map((words) => escapeCell(words)).join("; ") || "none yet"}. Times depend on what else it did.`,
  ].join("\n");
}

function isOfTopic({ topic }: Result): boolean {
  return TOPIC_NAMES.includes(topic as Topic);
}

function commitWords({ commit, day, isChanged }: Result): string {
  return `${commit} of ${day}${isChanged ? ", with changes" : ""}`;
}

function chapterText(chapter: Chapter, found: ReadonlyMap<string, Found>): string {
  const { title, about, paper, rows, peers, scripts } = chapter;
  return [
    `## ${title}`,
    paper ? `${about} (${paper.cited})` : about,
    tableText(
      [
        paper ? "paper's table or figure" : "what",
        "what it shows",
        paper ? "the paper's figure" : "aim",
        "ours",
        "n, seeds, 95 % interval",
        "where",
      ],
      rows.map((row) => rowCells(row, found, title)),
    ),
    ...(peers.length > 0 ? [`Others: ${peers.join(" ")}`] : []),
    ...scripts.map((script) => runText(script, found.get(script))),
  ].join("\n\n");
}

function rowCells(row: Row, found: ReadonlyMap<string, Found>, title: string): string[] {
  const { at, shows, published, script, under } = row;
  const one = found.get(script);
  const where =
    script === LAB
      ? "[lab/RESULTS.md](../lab/RESULTS.md)"
      : `[${titleOf(script)}](#${anchor(script)})${under === undefined ? "" : `, "${under}"`}`;
  const head = [at, shows, published];
  if (!one) return [...head, "not run", "", where];
  const whole = new Part(`${title}, ${at}: ${script}`, one.run.output);
  try {
    const part = under === undefined ? whole : whole.under(under);
    return [...head, row.ours(part), row.count(part), where];
  } catch (error) {
    // A quick run may have been asked for more than usual; a full one must have everything.
    if (row.isFullOnly === true && one.result.isQuick)
      return [...head, "not in a quick run", "", where];
    throw error;
  }
}

function topicOf(script: string): { topic: Topic; title: string } {
  for (const topic of TOPIC_NAMES) {
    const evaluations: readonly Evaluation[] = TOPICS[topic];
    const known = evaluations.find((one) => one.script === script);
    if (known) return { topic, title: known.title };
  }
  throw new Error(`no topic has ${script}`);
}

const titleOf = (script: string): string => topicOf(script).title;

function runText(script: string, found: Found | undefined): string {
  const { topic, title } = topicOf(script);
  const head = `<a id="${anchor(script)}"></a>\n\n### ${title}`;
  if (!found) return `${head}\n\nNot run yet: \`npm run eval -- ${topic} --write\` fills this in.`;
  const { result, run } = found;
  const how = [
    `\`npm run eval -- ${topic}${result.isQuick ? " --quick" : ""}\` (\`${["eval/" + script, ...run.options].join(" ").replace("eval/../", "")}\`)`,
    `at ${escapeCell(commitWords(result))}`,
    `${run.seconds} s`,
    ...(run.status === 0 ? [] : [`**ended with status ${run.status}**`]),
  ].join(", ");
  return `${head}\n\n${how}.\n\n${embedded(run.output, 4)}`;
}

function reasons({ title, paper }: Chapter): string[] {
  if (!paper) return [];
  const rows = paper.notReproduced.map(({ at, shows, why }) => [at, shows, why]);
  return [
    `### ${title.split(":")[0]}`,
    ...(rows.length > 0 ? [tableText(["table or figure", "what it shows", "why not"], rows)] : []),
    ...(paper.drawings.length > 0
      ? [`Drawings and definitions, nothing to reproduce: ${paper.drawings.join("; ")}.`]
      : []),
  ];
}
