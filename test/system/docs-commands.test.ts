/**
 * Every command of the guides and of the README, as a stranger would type it: run, or marked with the reason why not. What a
 * guide shows as output is what comes out. After a change of what is printed,
 *   UPDATE_DOCS=1 npx vitest run test/system/docs-commands.test.ts
 * writes the new output into the guides, for the diff to be read.
 */
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { blocksOf, callsOf, logicalLines, type Block } from "../support/docs-blocks.ts";
import {
  layOut,
  root,
  startMetricsServer,
  unpackAll,
  type MetricsServer,
} from "../support/docs-surroundings.ts";
import { freePort } from "../support/free-port.ts";

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), "faultline-docs-"));
const prepared = join(folder, "prepared");
const guides = join(root, "docs/guides");
const FILES = [
  join(root, "README.md"),
  join(root, "docs/README.md"),
  join(root, "docs/commands.md"),
  join(root, "docs/inputs.md"),
  ...readdirSync(guides).map((name) => join(guides, name)),
].filter((path) => path.endsWith(".md"));

/** Single lines that are not run wherever they stand, for files in which no remark can be made. */
const NOT_RUN: readonly (readonly [RegExp, string])[] = [
  [/^npm (start|test|run)\b/, "tests of tests: npm's scripts are run by hand and by CI"],
  [/faultline demo\b/, "test/system/browser run it"],
  [/^(make -C probe|export NCCL_PROFILER_PLUGIN|torchrun)\b/, "needs a GPU and a compiler"],
  [/^export PYTHONPATH=\$PWD\/probe/, "for the line with torchrun"],
];
/** Commands that go on until they are told to end. */
const STAYS = /faultline (serve|agent --server|agent watch|agent run|simulate --live|plan serve)\b/;
/** A block without a language that has commands in it would be run by nobody. */
const COMMAND = /^\s*(?:(?:\S*\/)?faultline|npm|npx|curl|kubectl|srun|openssl|torchrun) /m;
/** test/system/cli-demo.test.ts does what this one says. */
const ELSEWHERE_RUN = new Set(["docs/guides/demo.md"]);
/** Where examples show what other data gave. */
const ELSEWHERE = new Set(["README.md", "docs/commands.md"]);

let metrics: MetricsServer;

beforeAll(async () => {
  await run(join(root, "faultline"), ["--prepare"]);
  mkdirSync(prepared);
  unpackAll(prepared);
  metrics = await startMetricsServer();
}, 120_000);
afterAll(() => {
  metrics.close();
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
});

describe.concurrent.each(FILES.map((path) => [path.slice(root.length), path] as const))(
  "%s",
  (name, path) => {
    it("has only commands that run, or are marked and well formed, and shows what they print", async () => {
      const at = join(folder, name.replaceAll("/", "-"));
      layOut(at, prepared);
      const rewrite = rewriter(at, await freePort());
      const blocks = blocksOf(path);
      const wrong: string[] = [];
      const shown: { block: Block; output: string }[] = [];
      for (const [i, block] of blocks.entries()) {
        const where = `${name}:${block.line}`;
        if (block.language === "" && COMMAND.test(block.text) && !ELSEWHERE_RUN.has(name))
          wrong.push(`${where}: a block with commands is \`\`\`sh, one that is not run is marked`);
        if (block.language !== "sh") continue;
        wrong.push(...(await misspelt(block)).map((line) => `${where}: ${line}`));
        if (block.notRun !== null) continue;
        const { status, stdout, said } = await runBlock(rewrite(runnable(block)), at);
        if (status !== block.status)
          wrong.push(`${where}: status ${status}, not ${block.status}\n${said}`);
        const next = blocks[i + 1];
        if (next?.language !== "text" || next.section !== block.section) continue;
        if (ELSEWHERE.has(name) || status !== block.status) continue;
        shown.push({ block: next, output: stdout.replaceAll(`${at}/`, "") });
      }
      if (process.env["UPDATE_DOCS"]) update(path, shown);
      else
        for (const { block, output } of shown) {
          const lacking = firstLacking(block.text, output);
          if (lacking !== null)
            wrong.push(
              `${name}:${block.line}: shows "${lacking}", which is not what is printed there:\n${output}`,
            );
        }
      expect(wrong.join("\n\n")).toBe("");
    }, 300_000);

    it("names only flags that exist in what it says of faultline in passing", async () => {
      const text = readFileSync(path, "utf8").replaceAll(/^ *```[\s\S]*?^ *```/gm, "");
      const spans = [...text.matchAll(/`((?:\.\/)?faultline [^`]+)`/g)].map((match) => match[1]!);
      expect(await unknownFlags(spans.map((span) => span.replaceAll("\n", " ")))).toEqual([]);
    });
  },
);

describe("what is left of a block", () => {
  it("finds a command that nobody runs, a flag that does not exist and a wrong line of output", async () => {
    const block = { language: "sh", notRun: null, status: 0, section: 0, line: 1 };
    expect((await misspelt({ ...block, text: "./faultline logs x --stor y" })).join()).toContain(
      "--stor",
    );
    expect((await misspelt({ ...block, text: "for x in; do" })).join()).toContain("syntax");
    expect(firstLacking("a\n…\nc", "a\nb\nc\n")).toBeNull();
    expect(firstLacking("a\nc", "a\nb\nc\n")).toBe("c");
    expect((await runBlock("no-such-program", folder)).status).toBe(127);
  });
});

/** The lines that are run. */
function runnable({ text }: Block): string {
  return text
    .split("\n")
    .filter((line) => !NOT_RUN.some(([pattern]) => pattern.test(line.trim())))
    .join("\n");
}

/** A stranger's words → what stands for them here. */
function rewriter(at: string, port: number): (text: string) => string {
  const table: readonly (readonly [RegExp, string])[] = [
    [/PATH…/g, "fixtures/recordings/hang3.tar.gz"],
    [/(?<=[\s'=])\/(shared|tmp)\//g, `${at}/$1/`],
    [/http:\/\/prometheus:9090/g, metrics.url],
    [/127\.0\.0\.1:7077/g, `127.0.0.1:${port}`],
    [/(?<!plan )\bserve(?= |$)(?! --port)(?=.*--data)/gm, `serve --port ${port}`],
    [/(?<=faultline )serve(?= |$)(?! --port)/gm, `serve --port ${port} --data data/served`],
    [/plan serve/g, "plan serve --port 0"],
    [/--file job\.json/g, "--file places.json"],
    [/--watch\b/g, "--watch --every 1s --calls 1"],
    // Smaller, for time; each GPU of a live one is a process.
    [/(?<=simulate --live .*)--gpus \d+/g, "--gpus 8"],
    [/(?<=simulate .*)--gpus 64/g, "--gpus 16"],
    [/--tp 4 --pp 4/g, "--tp 2 --pp 2"],
    [/rank=17:/g, "rank=9:"],
  ];
  return (text) => table.reduce((words, [from, to]) => words.replaceAll(from, to), text);
}

interface Outcome {
  readonly status: number;
  readonly stdout: string;
  readonly said: string;
}

async function runBlock(script: string, at: string): Promise<Outcome> {
  if (!STAYS.test(script)) return await shell(script, at);
  const stayed: Staying[] = [];
  let [stdout, said, status] = ["", "", 0];
  try {
    for (const line of logicalLines(script)) {
      if (STAYS.test(line)) {
        stayed.push(await stay(line, at));
        continue;
      }
      const outcome = await shell(line, at);
      [stdout, said, status] = [stdout + outcome.stdout, said + outcome.said, outcome.status];
      if (status !== 0) break;
    }
  } finally {
    for (const one of stayed.reverse()) {
      const ended = await one.end();
      if (ended.status !== 0) [status, said] = [ended.status, said + ended.said];
    }
  }
  return { status, stdout, said };
}

function environment(at: string): NodeJS.ProcessEnv {
  return {
    PATH: `${join(at, "bin")}:${process.env["PATH"]}`,
    HOME: join(at, "home"),
    XDG_DATA_HOME: join(at, "data"),
    FAULTLINE_DIR: join(at, "rings"),
    NO_COLOR: "1",
    LC_ALL: "C.UTF-8",
  };
}

function started(script: string, at: string): ChildProcess {
  return spawn("bash", ["-euo", "pipefail", "-c", script], {
    cwd: at,
    env: environment(at),
    stdio: ["ignore", "pipe", "pipe"],
  });
}

async function shell(script: string, at: string): Promise<Outcome> {
  const child = started(script, at);
  let [stdout, said] = ["", ""];
  child.stdout!.on("data", (chunk: Buffer) => ([stdout, said] = [stdout + chunk, said + chunk]));
  child.stderr!.on("data", (chunk: Buffer) => (said += chunk));
  const status = await new Promise<number>((resolve) =>
    child.once("close", (code) => resolve(code ?? -1)),
  );
  return { status, stdout, said: said.slice(-3000) };
}

interface Staying {
  end(): Promise<{ status: number; said: string }>;
}

/** Goes on when it has said something. */
async function stay(line: string, at: string): Promise<Staying> {
  const child = started(`exec ${line.replace(/\s#.*$/, "")}`, at);
  let said = "";
  const ended = new Promise<number>((resolve) =>
    child.once("close", (code) => resolve(code ?? -1)),
  );
  const spoke = new Promise<void>((resolve) => {
    for (const stream of [child.stdout!, child.stderr!])
      stream.on("data", (chunk: Buffer) => {
        said = (said + chunk).slice(-3000);
        resolve();
      });
  });
  await Promise.race([spoke, ended]);
  return {
    end: async () => {
      child.kill("SIGTERM");
      const late = setTimeout(() => child.kill("SIGKILL"), 60_000);
      const status = await ended;
      clearTimeout(late);
      return { status, said: `${line}\n${said}` };
    },
  };
}

/** What is wrong with a block without running it. */
async function misspelt({ text }: Block): Promise<readonly string[]> {
  const { stderr } = await run("bash", ["-n", "-c", text]).catch((error: { stderr?: string }) => ({
    stderr: error.stderr ?? "bash is not there",
  }));
  return [...(stderr ? [stderr.trim()] : []), ...(await unknownFlags(logicalLines(text)))];
}

async function unknownFlags(lines: readonly string[]): Promise<readonly string[]> {
  const wrong: string[] = [];
  for (const call of lines.flatMap(callsOf)) {
    const first = call.words[0] ?? "";
    if (/^(-|[A-Z…]|$)/.test(first)) continue;
    if (!(await helpOf("")).commands.has(first)) {
      wrong.push(`faultline has no command ${first}`);
      continue;
    }
    const own = await helpOf(first);
    const second = call.words[1] ?? "";
    const sub = own.commands.has(second) ? second : first === "agent" ? "run" : "";
    const { flags } = sub === "" ? own : await helpOf(`${first} ${sub}`);
    for (const flag of call.flags)
      if (!flags.has(flag)) wrong.push(`faultline ${first} ${sub} has no ${flag}`);
  }
  return wrong;
}

interface Help {
  readonly flags: ReadonlySet<string>;
  readonly commands: ReadonlySet<string>;
}

const helps = new Map<string, Promise<Help>>();

/** Asked once a command, and only of commands that are used: a start takes a quarter of a second. */
function helpOf(command: string): Promise<Help> {
  const asked = helps.get(command) ?? ask(command);
  helps.set(command, asked);
  return asked;
}

async function ask(command: string): Promise<Help> {
  const words = command.split(" ").filter((word) => word !== "");
  const { stdout } = await run(join(root, "faultline"), [...words, "--help"]);
  const part = (title: string, name: RegExp): string[] => {
    const text = new RegExp(`\\n${title}:\\n([\\s\\S]*?)(\\n\\n|$)`).exec(stdout)?.[1] ?? "";
    return [...text.matchAll(name)].map((match) => match[1]!);
  };
  return {
    flags: new Set([...part("Options", /^ {2}(?:-\w, )?(--[a-z-]+)/gm), "--help", "--prepare"]),
    commands: new Set(part("Commands", /^ {2}([a-z-]+)/gm)),
  };
}

/** The first line that is shown and not printed there; a line with … alone stands for any others. */
function firstLacking(shown: string, output: string): string | null {
  const printed = output.split("\n").map((line) => line.trimEnd());
  let at = -1;
  let maySkip = true;
  for (const line of shown.split("\n").map((text) => text.trimEnd())) {
    if (line === "…") {
      maySkip = true;
      continue;
    }
    const found: number = maySkip ? printed.indexOf(line, at + 1) : at + 1;
    if (found < 0 || printed[found] !== line) return line;
    [at, maySkip] = [found, false];
  }
  return null;
}

/** Blocks get as many of the output's lines as they had, with their ends left open. */
function update(path: string, shown: readonly { block: Block; output: string }[]): void {
  let text = readFileSync(path, "utf8");
  for (const { block, output } of shown) {
    if (firstLacking(block.text, output) === null) continue;
    const many = block.text.split("\n").findIndex((line) => line === "…");
    const lines = output.trimEnd().split("\n");
    const kept = many < 0 ? lines : [...lines.slice(0, many), "…"];
    text = text.replace(block.text, () => kept.join("\n"));
  }
  writeFileSync(path, text);
}
