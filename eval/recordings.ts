/**
 * Every recording of a real job, by family of jobs: `npm run eval -- recordings [FOLDER…] [--only WORD] [--parts] [--fit] [--json FILE]`.
 * Asked are the shared collection (../shared/recordings), where it is there, those of this repository, and the folders given.
 * --only: recordings and families whose name holds the word. --parts: each once more with its dumps alone and with its logs alone.
 * --fit: what methods have earned (eval/recordings/earned.ts), tried on each family by the others, and written
 * from the families that teach. Exits with 1 when an aim is missed.
 */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { aimsOf } from "./recordings/aims.ts";
import { recordingsIn, type Recording } from "./recordings/archives.ts";
import { caseOf, earnedFrom, earnedSource, leaveOneFamilyOut } from "./recordings/earned.ts";
import {
  examine,
  examineParts,
  rowOf,
  TABLE_HEAD,
  type Examined,
  type ExaminedPart,
} from "./recordings/examine.ts";
import { teaches } from "./recordings/families.ts";
import {
  aimLines,
  brierByFamily,
  familyTable,
  leftOutTable,
  partTable,
  reliabilityTable,
  totalLines,
  wrongTable,
} from "./recordings/tables.ts";
import { talliesOf } from "./recordings/tally.ts";
import { truthIn, withoutBaseline } from "./recordings/truth.ts";
import { unpacked } from "./unpacked.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const EARNED_TABLE = join(root, "src/verdict/earned-table.ts");
const PLACES = [
  "../shared/recordings",
  "../shared/recordings/frameworks",
  "fixtures/recordings",
  "fixtures/traces",
  "fixtures/families",
];

const { values: options, positionals: given } = parseArgs({
  allowPositionals: true,
  options: {
    only: { type: "string", default: "" },
    parts: { type: "boolean", default: false },
    fit: { type: "boolean", default: false },
    json: { type: "string" },
  },
});

const examined: Examined[] = [];
const parts: ExaminedPart[] = [];
const unread: string[] = [];

try {
  const here = PLACES.filter((place) => existsSync(join(root, place)));
  const recordings = recordingsIn([...here.map((place) => join(root, place)), ...given]);
  console.log(`## Recordings of real jobs\n\nAsked: ${[...here, ...given].join(", ")}.\n`);
  console.log(TABLE_HEAD.join("\n"));
  for (const recording of recordings) await askAll(recording, recordings);
  printAll();
  if (options.fit) fit();
} catch (error) {
  console.error(`eval recordings: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 2;
}

async function askAll({ name, path }: Recording, all: readonly Recording[]): Promise<void> {
  await opened(path, async (folder) => {
    const truth = truthIn(folder);
    if (!truth) throw new Error(`${name} has no truth beside it`);
    if (![name, truth.family].some((words) => words.includes(options.only))) return;
    await ask(name, folder, withoutBaseline(truth));
    // "reg-none" is what "reg-sync" is compared with; itself, it must show nothing.
    const [kindOfJob] = name.split("-");
    const healthy = all.find((other) => other.name === `${kindOfJob}-none`);
    const isTraced = examined.at(-1)!.verdict.inputs.some(({ format }) => format === "kineto");
    if (isTraced && healthy)
      await opened(healthy.path, (baseline) =>
        ask(`${name} against ${healthy.name}`, folder, truth, [baseline]),
      );
  }).catch((error: unknown) => {
    // A recording may be in the making: the others are asked all the same.
    unread.push(name);
    console.error(`${name}: ${error instanceof Error ? error.message : String(error)}`);
  });
}

async function ask(...about: Parameters<typeof examine>): Promise<void> {
  const one = await examine(...about);
  examined.push(one);
  console.log(rowOf(one));
  const [, , , baseline = []] = about;
  if (!options.parts || baseline.length > 0) return;
  for (const part of await examineParts(one)) {
    parts.push(part);
    console.log(rowOf(part));
  }
}

async function opened<T>(path: string, use: (folder: string) => Promise<T>): Promise<T> {
  return existsSync(join(path, "truth.json")) ? use(path) : unpacked(path, use);
}

function printAll(): void {
  const tallies = talliesOf(examined);
  const claims = examined.map(({ verdict, judged }) => ({
    confidence: verdict.confidence,
    // Open causes: what is claimed is that one of the two is true.
    right: judged.right || judged.open,
  }));
  const wrong = examined.filter(({ judged }) => !judged.right && !judged.open);
  const wrongParts = parts.filter(({ judged }) => judged === "wrong");
  const aims = aimsOf(tallies, parts, unread);
  const sections = [
    `${examined.length - wrong.length} of ${examined.length} right`,
    "### By family",
    familyTable(tallies),
    totalLines(tallies).join("\n"),
    "Ten lines: whose operators took the least time in the second half of the dumps, if below 0.9 of the median; asked on slow and healthy jobs whose dumps have durations.",
    "### How far confidence on real jobs can be trusted",
    reliabilityTable(claims),
    ...(wrong.length === 0 ? [] : ["### Wrong answers, the surest first", wrongTable(wrong)]),
    ...(parts.length === 0 ? [] : ["### With part of the files", partTable(parts)]),
    ...(wrongParts.length === 0 ? [] : [wrongTable(wrongParts)]),
    "### Aims",
    aimLines(aims).join("\n"),
  ];
  console.log(`\n${sections.join("\n\n")}`);
  process.exitCode = aims.every(({ isMet }) => isMet) && examined.length > 0 ? 0 : 1;
  if (options.json !== undefined) writeFileSync(options.json, JSON.stringify({ examined, parts }));
}

function fit(): void {
  const cases = examined.map(caseOf);
  const left = leaveOneFamilyOut(cases);
  const asStated = left.map((one) => ({ ...one, confidence: one.stated }));
  const loss = (claims: typeof left): string =>
    `Brier score ${brierByFamily(claims).toFixed(3)}, each family counting the same`;
  const sections = [
    "### Confidence earned on other families",
    leftOutTable(left),
    `As stated (${loss(asStated)}):`,
    reliabilityTable(asStated),
    `With what the other families allow (${loss(left)}):`,
    reliabilityTable(left),
  ];
  console.log(`\n${sections.join("\n\n")}`);
  if (options.only !== "") return;
  const table = earnedFrom(cases.filter(({ family }) => teaches(family)));
  writeFileSync(EARNED_TABLE, earnedSource(table));
  console.error(`eval recordings: wrote ${EARNED_TABLE.slice(root.length)}`);
}
