/** Starts the jobs that tests are made of, and ends them with the test. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach } from "vitest";

export const script = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
export const PLUG_IN = fileURLToPath(new URL("../../../probe/python", import.meta.url));

/** The first Python that can do it: a distribution's packages belong to the one in /usr/bin. */
export function pythonWith(statement: string): string | null {
  const works = (python: string): boolean =>
    spawnSync(python, ["-c", statement], { stdio: "ignore", timeout: 60_000 }).status === 0;
  return ["python3", "/usr/bin/python3"].find(works) ?? null;
}
export const python = pythonWith("import urllib.request");
export const pythonOfTorch = pythonWith(
  "import torch.distributed as d; assert d.is_gloo_available()",
);

/** No process outlives its test, nor a run that hangs the tests. */
const running = new Set<ChildProcess>();
const killAll = (): void => running.forEach((child) => void child.kill("SIGKILL"));
process.once("exit", killAll);
afterEach(killAll);

export interface Line {
  readonly counts?: readonly number[];
  readonly seconds?: number;
  readonly trouble?: string | null;
  readonly parameters?: readonly number[];
  readonly gradient?: number;
}

export interface Started {
  readonly child: ChildProcess;
  /** What it has printed so far, a JSON object a line. */
  readonly lines: Line[];
  /** The exit status; throws with what it said where it is not 0. */
  readonly ended: Promise<void>;
  said(): string;
}

export function start(program: string, words: readonly string[]): Started {
  const child = spawn(program, words, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, PYTHONPATH: PLUG_IN, PYTHONDONTWRITEBYTECODE: "1" },
  });
  running.add(child);
  const lines: Line[] = [];
  let said = "";
  createInterface({ input: child.stdout }).on("line", (line) => {
    if (line.startsWith("{")) lines.push(JSON.parse(line) as Line);
    else said += `${line}\n`;
  });
  child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const ended = once(child, "close").then(([code]: unknown[]) => {
    running.delete(child);
    if (code !== 0) throw new Error(`it ended with ${String(code)}: ${said.slice(-2000)}`);
  });
  ended.catch(() => undefined);
  return { child, lines, ended, said: () => said };
}

/** See fake.py. */
export const fakeJob = (url: string, iterations: number, seconds: number, slow: number): Started =>
  start(python!, [script("fake.py"), url, String(iterations), String(seconds), String(slow)]);
