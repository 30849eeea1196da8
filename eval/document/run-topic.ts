/** Runs a topic's evaluations one after the other: what they print goes to the terminal, and is kept. */
import { execFileSync, spawn } from "node:child_process";
import { cpus, totalmem } from "node:os";
import { fileURLToPath } from "node:url";
import type { Result, Run } from "./results.ts";
import type { Evaluation } from "./topics.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

export interface Asked {
  readonly isQuick: boolean;
  /** For the topic's first evaluation. */
  readonly options: readonly string[];
  /** Whether what is printed goes to the terminal at once; else when the topic has ended, in one piece. */
  readonly isStreamed: boolean;
}

export async function runTopic(
  topic: string,
  evaluations: readonly Evaluation[],
  { isQuick, options, isStreamed }: Asked,
): Promise<Result> {
  const code = codeState();
  const runs: Run[] = [];
  for (const [i, { script, quick }] of evaluations.entries()) {
    if (isQuick && quick === null) continue;
    const less = isQuick ? (quick ?? []) : [];
    runs.push(await run(script, [...less, ...(i === 0 ? options : [])], isStreamed));
  }
  if (!isStreamed) for (const { output } of runs) process.stdout.write(output);
  // Of some there is no quicker way: what they print is the whole.
  const isLess = isQuick && evaluations.some(({ quick }) => quick?.length !== 0);
  return { topic, isQuick: isLess, ...code, machine: machineWords(), runs };
}

async function run(script: string, options: readonly string[], isStreamed: boolean): Promise<Run> {
  const path = fileURLToPath(new URL(`../${script}`, import.meta.url));
  const node = ["--max-old-space-size=8192", "--import", "tsx", path, ...options];
  const began = performance.now();
  const child = spawn(process.execPath, node, { stdio: ["ignore", "pipe", "inherit"] });
  const chunks: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => {
    chunks.push(chunk);
    if (isStreamed) process.stdout.write(chunk);
  });
  const status = await new Promise<number>((resolve, reject) => {
    child.on("error", reject);
    // A signal has no status: it is a failure all the same.
    child.on("close", (code) => resolve(code ?? 1));
  });
  const seconds = Math.round((performance.now() - began) / 1000);
  return { script, options, seconds, status, output: Buffer.concat(chunks).toString("utf8") };
}

/** Taken before an evaluation begins: what is committed meanwhile was not evaluated. */
function codeState(): Pick<Result, "commit" | "day" | "isChanged"> {
  const git = (...words: string[]): string =>
    execFileSync("git", words, { cwd: root, encoding: "utf8" }).trim();
  try {
    return {
      commit: git("rev-parse", "--short", "HEAD"),
      day: git("show", "-s", "--format=%cs", "HEAD"),
      isChanged: git("status", "--porcelain", "--", "src", "eval/*.ts", "eval/**/*.ts") !== "",
    };
  } catch {
    return { commit: "unknown", day: "unknown", isChanged: false };
  }
}

function machineWords(): string {
  const gigabytes = Math.round(totalmem() / 2 ** 30);
  return `${cpus().length} cores (${process.arch}), ${gigabytes} GB of memory, ${process.platform}, Node ${process.versions.node}`;
}
