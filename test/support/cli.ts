/**
 * The command line for tests. `faultline` calls it inside the test's own process, which costs no start; `faultlineProcess`
 * runs the built program as a user does, for what only a process shows: pipes, signals, workers, the first run.
 */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { main } from "../../src/cli/program.ts";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
export const FAULTLINE = `${ROOT}faultline`;

export interface Ran {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Surroundings {
  /** Relative paths are looked up there. */
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
}

export async function faultline(...words: string[]): Promise<Ran> {
  return await faultlineIn({}, ...words);
}

/** One call after the other: they share the process's working folder. */
let last: Promise<unknown> = Promise.resolve();

export async function faultlineIn(around: Surroundings, ...words: string[]): Promise<Ran> {
  const ran = last.then(() => call(around, words));
  last = ran.catch(() => undefined);
  return await ran;
}

async function call({ cwd, env = process.env }: Surroundings, words: string[]): Promise<Ran> {
  let [stdout, stderr] = ["", ""];
  const before = process.cwd();
  if (cwd !== undefined) process.chdir(cwd);
  try {
    const status = await main(words, {
      out: { write: (text) => (stdout += text) },
      err: { write: (text) => (stderr += text) },
      env,
    });
    return { status, stdout, stderr };
  } finally {
    if (cwd !== undefined) process.chdir(before);
  }
}

export async function faultlineProcess(
  { cwd, env = process.env }: Surroundings,
  ...words: string[]
): Promise<Ran> {
  const options = { cwd, env, maxBuffer: 1 << 26 };
  return await new Promise((resolve) => {
    execFile(FAULTLINE, words, options, (error, stdout, stderr) => {
      resolve({ status: error ? Number(error.code ?? 1) : 0, stdout, stderr });
    });
  });
}
