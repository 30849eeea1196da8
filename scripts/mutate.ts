/**
 * Do the tests notice? Breaks places of the product one at a time, spread over its folders, and runs the unit tests that
 * are the fewest imports away from each. All in a copy of the working tree: a run that is stopped leaves nothing broken.
 *
 *   npm run mutate -- [--seed 1] [--count 20] [--only src/live] [--seconds 60]
 */
import { execFileSync, spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { seeded } from "../src/base/random.ts";
import { nearestTests, sourcesIn } from "./mutate/nearest-tests.ts";
import { placesIn, type Place } from "./mutate/places.ts";

/** A lower bound of what `npm test` notices: tests further away are not asked. */
const MOST_TESTS = 16;
/** Asked first: nearly every change that is noticed at all is noticed here. */
const NEAREST = 4;
/** Tests and what only they import; tables of figures. */
const NO_PRODUCT = /(\.test|\/test-[^/]*|-contract|-table|-code)\.tsx?$|\/records\//;

const { values: flags } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    count: { type: "string", default: "20" },
    only: { type: "string", default: "src/" },
    seconds: { type: "string", default: "60" },
  },
});
/** For the tests of one mutant; more on a busy machine. */
const LIMIT_MS = 1000 * Number(flags.seconds);
const root = fileURLToPath(new URL("..", import.meta.url));
const random = seeded(Number(flags.seed));

interface Mutant {
  readonly file: string;
  readonly place: Place;
}

interface Outcome {
  readonly isNoticed: boolean;
  /** The test that failed, or why there is none. */
  readonly by: string;
}

/** The folder that a file counts for: src/live/agent, src/methods/hang, src/maths. */
function folderOf(file: string): string {
  const parts = dirname(file).split("/");
  return parts.slice(0, parts[1] === "live" || parts[1] === "methods" ? 3 : 2).join("/");
}

function drawFrom<T>(list: readonly T[]): T {
  return list[Math.floor(random() * list.length)]!;
}

function draw(count: number): Mutant[] {
  const byFolder = new Map<string, string[]>();
  for (const file of sourcesIn(root, "src"))
    if (!NO_PRODUCT.test(file) && file.startsWith(flags.only))
      byFolder.set(folderOf(file), [...(byFolder.get(folderOf(file)) ?? []), file]);
  let folders: string[] = [];
  const mutants: Mutant[] = [];
  while (mutants.length < count) {
    if (folders.length === 0) folders = [...byFolder.keys()];
    const [folder] = folders.splice(Math.floor(random() * folders.length), 1);
    const file = drawFrom(byFolder.get(folder!)!);
    const places = placesIn(file, readFileSync(join(root, file), "utf8"));
    if (places.length > 0) mutants.push({ file, place: drawFrom(places) });
  }
  return mutants;
}

/** The working tree as it is, without what git ignores. */
function copyTree(): string {
  const copy = mkdtempSync(join(tmpdir(), "faultline-mutate-"));
  const list = ["ls-files", "--cached", "--others", "--exclude-standard", "-z"];
  const files = execFileSync("git", list, { cwd: root, encoding: "utf8" }).split("\0");
  const isThere = new Set(files.filter((file) => file !== ""));
  for (const file of isThere)
    cpSync(join(root, file), join(copy, file), { recursive: true, force: true });
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  return copy;
}

async function runTests(copy: string, tests: readonly string[]): Promise<Outcome | null> {
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  const words = [vitest, "run", "--project", "unit", "--bail", "1", "--no-color", ...tests];
  // A group of its own, so that workers in an endless loop end with it.
  const child = spawn(process.execPath, words, { cwd: copy, detached: true });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => (said += chunk.toString()));
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    process.kill(-child.pid!, "SIGKILL");
  }, LIMIT_MS);
  const status = await new Promise<number | null>((resolve) => child.on("close", resolve));
  clearTimeout(timer);
  if (isLate) return null;
  const failed = /FAIL\s+(?:\|?unit\|?\s+)?(.*)/.exec(said)?.[1] ?? "a run without tests that pass";
  return status === 0 ? { isNoticed: false, by: "-" } : { isNoticed: true, by: failed.trim() };
}

async function ask(copy: string, { file, place }: Mutant): Promise<Outcome> {
  const tests = nearestTests(root, file, MOST_TESTS);
  if (tests.length === 0) return { isNoticed: false, by: "no unit test imports it" };
  const source = readFileSync(join(root, file), "utf8");
  const broken = source.slice(0, place.start) + place.by + source.slice(place.end);
  let last: Outcome = { isNoticed: false, by: "-" };
  for (const some of [tests.slice(0, NEAREST), tests.slice(NEAREST)]) {
    if (some.length === 0 || last.isNoticed) break;
    writeFileSync(join(copy, file), broken);
    const outcome = await runTests(copy, some);
    writeFileSync(join(copy, file), source);
    last = outcome ?? (await whyLate(copy, some));
  }
  return last;
}

/** Because what is broken never ends, or because the tests take so long anyway? */
async function whyLate(copy: string, tests: readonly string[]): Promise<Outcome> {
  return (await runTests(copy, tests)) === null
    ? { isNoticed: false, by: `not within ${flags.seconds} s` }
    : { isNoticed: true, by: "tests that no longer end" };
}

const copy = copyTree();
try {
  const mutants = draw(Number(flags.count));
  let noticed = 0;
  console.log("| place | mutation | noticed | by | s |\n|---|---|---|---|---|");
  for (const mutant of mutants) {
    const began = performance.now();
    const { isNoticed, by } = await ask(copy, mutant);
    if (isNoticed) noticed++;
    const { file, place } = mutant;
    const cells = [
      `${file}:${place.line}`,
      `\`${place.what}\``,
      isNoticed ? "yes" : "**no**",
      by,
      ((performance.now() - began) / 1000).toFixed(0),
    ];
    console.log(`| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`);
  }
  const share = Math.round((100 * noticed) / mutants.length);
  console.log(`\n${noticed} of ${mutants.length} noticed (${share} %), seed ${flags.seed}`);
} finally {
  rmSync(copy, { recursive: true, force: true });
}
