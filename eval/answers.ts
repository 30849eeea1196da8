/**
 * Whether a change of the code changed an answer: node --import tsx eval/answers.ts write FILE [--only WORD], before and after;
 * then … compare BEFORE AFTER. Asked are every recording, every third-party case that is there, and 200 simulated jobs,
 * by the command line (its JSON, and its text as a hash). Compared is all but words: a string with a space in it is
 * prose, which may be rewritten; how many differ in prose alone is counted. Exits with 1 where an answer differs.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { main } from "../src/cli/program.ts";

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
/** By case and command: what is not prose, and a hash of the prose. */
type Answers = Record<string, { readonly answer: Json; readonly words: string }>;

const FOLDERS = [
  "../shared/recordings",
  "../shared/recordings/frameworks",
  "fixtures/recordings",
  "fixtures/traces",
  "fixtures/rings",
  "fixtures/families",
];
const THIRD_PARTY = "../shared/thirdparty";
const SIMULATED = 200;
const LAYOUTS = [
  "--tp 2 --pp 2",
  "--gpus 16 --tp 1 --pp 1",
  "--gpus 16 --tp 4 --pp 4",
  "--gpus 16 --tp 2 --pp 1 --ep 2",
  "--gpus 16 --tp 2 --pp 4 --schedule interleaved",
  "--gpus 16 --tp 8 --pp 1",
  "--gpus 16 --tp 1 --pp 4 --cp 2",
];
const FAULTS = [
  "",
  "gpu-slow:rank=5:from=9:severity=1.6",
  "cpu-stall:rank=3:from=9:severity=4",
  "network-slow:link=3-7:from=9:severity=4",
  "network-hang:rank=6:from=12",
  "",
  "gpu-hang:rank=5:from=12",
  "gpu-error:rank=11:from=12",
  "gpu-memory:rank=2:from=12",
  "process-gone:rank=9:from=12",
  "",
  "process-stopped:rank=4:from=12",
  "dataloader:rank=1:from=9:severity=3",
  "garbage-collection:rank=7:from=9:severity=2",
  "cpu-stall:rank=8:from=10:severity=inf",
  "",
  "user-program:rank=10:from=12",
  "numerical:rank=0:from=12",
  "gpu-slow:rank=1:severity=1.5:shape=spike",
];
const EMITS = [
  "flight-recorder,logs",
  "flight-recorder",
  "logs",
  "operators",
  "flight-recorder,operators,logs",
];
const MOST_BYTES = 64 << 20;

/** Of third-party archives each file, or each folder, is a case, for the commands that its kind of data is for. */
const COMMANDS: readonly (readonly [RegExp, readonly string[]])[] = [
  [/^logs/, ["diagnose", "logs"]],
  [/^(iterations|straggler)/, ["diagnose", "iterations"]],
  [/^kineto/, ["trace"]],
  [/^(changepoints|hang|links)/, ["diagnose"]],
];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { only: { type: "string", default: "" } },
});
const [what, first, second] = positionals;
if (what === "write" && first !== undefined) await write(first);
else if (what === "compare" && first !== undefined && second !== undefined) compare(first, second);
else {
  console.error("answers: write FILE [--only WORD], or compare BEFORE AFTER");
  process.exitCode = 2;
}

async function write(file: string): Promise<void> {
  const answers: Answers = {};
  const scratch = mkdtempSync(join(tmpdir(), "faultline-answers-"));
  const put = async (name: string, command: string, path: string): Promise<void> => {
    if (!name.includes(values.only)) return;
    answers[`${command} ${name}`] = await asked(command, path, scratch);
  };
  try {
    for (const folder of FOLDERS)
      for (const path of archivesIn(folder)) {
        const unpacked = unpack(path, scratch);
        await put(`${basename(folder)}/${basename(path)}`, "diagnose", unpacked);
        rmSync(unpacked, { recursive: true });
      }
    for (const path of archivesIn(THIRD_PARTY)) {
      const unpacked = unpack(path, scratch);
      for (const [command, one] of casesIn(basename(path), unpacked))
        await put(`${basename(path)}${one.slice(unpacked.length)}`, command, one);
      rmSync(unpacked, { recursive: true });
    }
    for (let seed = 1; seed <= SIMULATED; seed++) {
      const { name, words } = simulated(seed);
      if (!name.includes(values.only)) continue;
      const out = join(scratch, "simulated");
      const { status, err } = await call(["simulate", ...words, "--out", out]);
      if (status !== 0) throw new Error(`${name}: ${err}`);
      await put(name, "diagnose", out);
      rmSync(out, { recursive: true });
    }
  } finally {
    rmSync(scratch, { recursive: true });
  }
  writeFileSync(file, JSON.stringify(answers));
  console.log(`${Object.keys(answers).length} answers`);
}

function archivesIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => /\.tar\.(gz|xz)$/.test(name))
    .sort()
    .map((name) => join(folder, name));
}

function unpack(archive: string, scratch: string): string {
  const folder = mkdtempSync(join(scratch, "case-"));
  execFileSync("tar", ["xf", archive, "-C", folder]);
  return folder;
}

function casesIn(archive: string, folder: string): (readonly [string, string])[] {
  const commands = COMMANDS.find(([which]) => which.test(archive))?.[1] ?? [];
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile() && statSync(path).size <= MOST_BYTES)
    .sort();
  const isFolders = /^(links|hang)/.test(archive);
  const cases = isFolders ? [...new Set(files.map((path) => dirname(path)))] : files;
  return cases.flatMap((path) => commands.map((command) => [command, path] as const));
}

/** Jobs of many layouts with faults of every kind, one in five healthy. */
function simulated(seed: number): { name: string; words: string[] } {
  const layout = LAYOUTS[seed % LAYOUTS.length]!;
  const fault = FAULTS[seed % FAULTS.length]!;
  const words = [...layout.split(" "), "--seed", String(seed), "--iterations", "24"];
  const emit = EMITS[seed % EMITS.length]!;
  const faulty = fault === "" ? [] : ["--fault", fault];
  const name = `simulated-${seed} ${layout} ${fault} ${emit}`;
  return { name, words: [...words, "--emit", emit, ...faulty] };
}

/** What the command answers; where a file cannot be read, what it says then. */
async function asked(command: string, path: string, scratch: string): Promise<Answers[string]> {
  const { status, out, err } = await call([command, path, "--json"]);
  const plain = (text: string): string =>
    text
      .replaceAll(path, "INPUT")
      .replaceAll(scratch, "TMP")
      .replace(/\bcase-\w{6}\b/g, "case");
  const said = status === 0 && out.startsWith("{") ? (JSON.parse(plain(out)) as Json) : plain(err);
  const words: string[] = [];
  const answer: Json = { status, said: withoutProse(said, words) };
  return { answer, words: createHash("sha1").update(words.join("\n")).digest("hex") };
}

async function call(
  argv: readonly string[],
): Promise<{ status: number; out: string; err: string }> {
  let [out, err] = ["", ""];
  const io = {
    out: { write: (text: string) => (out += text) },
    err: { write: (text: string) => (err += text) },
    env: {},
  };
  const status = await main(argv, io);
  return { status, out, err };
}

function withoutProse(value: Json, words: string[]): Json {
  if (typeof value === "string") {
    if (!/\s/.test(value)) return value;
    words.push(value);
    return "…";
  }
  if (Array.isArray(value)) return value.map((one: Json) => withoutProse(one, words));
  if (value === null || typeof value !== "object") return value;
  // Which fact a finding states was said by its keys alone once.
  const entries = Object.entries(value as Record<string, Json>).filter(([key]) => key !== "fact");
  return Object.fromEntries(entries.map(([key, one]) => [key, withoutProse(one, words)]));
}

function compare(before: string, after: string): void {
  const [old, now] = [before, after].map(
    (file) => JSON.parse(readFileSync(file, "utf8")) as Answers,
  );
  const names = [...new Set([...Object.keys(old!), ...Object.keys(now!)])].sort();
  let [differ, reworded] = [0, 0];
  for (const name of names) {
    const [was, is] = [old![name], now![name]];
    if (JSON.stringify(was?.answer) !== JSON.stringify(is?.answer)) {
      differ++;
      console.log(`${name}: ${firstDifference(was?.answer, is?.answer, "")}`);
    } else if (was!.words !== is!.words) reworded++;
  }
  console.log(`${names.length} answers: ${differ} differ, ${reworded} in words alone`);
  if (differ > 0) process.exitCode = 1;
}

function firstDifference(was: Json | undefined, is: Json | undefined, at: string): string {
  const isObject = (value: unknown): value is Record<string, Json> =>
    typeof value === "object" && value !== null;
  if (isObject(was) && isObject(is))
    for (const key of new Set([...Object.keys(was), ...Object.keys(is)]))
      if (JSON.stringify(was[key]) !== JSON.stringify(is[key]))
        return firstDifference(was[key], is[key], `${at}/${key}`);
  const short = (value: Json | undefined): string => JSON.stringify(value ?? null).slice(0, 200);
  return `${at} was ${short(was)}, is ${short(is)}`;
}
