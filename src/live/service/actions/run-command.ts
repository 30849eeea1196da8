/** A program of the operator's: run without a shell, bounded in time and in what is kept of its output. */
import { type ChildProcess, spawn } from "node:child_process";
import { harmless } from "../../../base/text.ts";

const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const MOST_OUTPUT_BYTES = 4096;
const GRACE_MS = 2000;
/** How long pipes are read that others hold open after the program has ended. */
const LINGER_MS = 300;

export interface CommandResult {
  readonly how: "exit" | "signal" | "timeout" | "not-started";
  readonly status: number | null;
  /** The last of what it said on both streams: one line, harmless. */
  readonly output: string;
}

/** PATH, HOME, and the variables that are named. */
export function environmentOf(
  names: readonly string[],
  own: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const environment: Record<string, string> = { PATH: own["PATH"] ?? DEFAULT_PATH };
  for (const name of ["HOME", ...names]) {
    const value = own[name];
    if (value !== undefined) environment[name] = value;
  }
  return environment;
}

/** In a process group of its own, so that all of it can be ended. */
export async function runCommand(
  argv: readonly string[],
  environment: Readonly<Record<string, string>>,
  timeoutMs: number,
): Promise<CommandResult> {
  const tail = makeTail();
  const notStarted = (error: unknown): CommandResult => {
    const { code, message } = error as { code?: string; message?: string };
    return { how: "not-started", status: null, output: harmless(code ?? message ?? "unknown") };
  };
  let child: ChildProcess;
  try {
    child = spawn(argv[0]!, argv.slice(1), {
      cwd: "/",
      env: { ...environment },
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
  } catch (error) {
    return notStarted(error);
  }
  child.stdout?.on("data", tail.add);
  child.stderr?.on("data", tail.add);
  return await new Promise((resolve) => {
    let isLate = false;
    let isKilled = false;
    let ended: CommandResult | null = null;
    let linger: NodeJS.Timeout | undefined;
    const finish = (): void => {
      // Grandchildren that ignore SIGTERM are waited for until they are killed.
      if (!ended || (isLate && !isKilled)) return;
      clearTimeout(limit);
      clearTimeout(linger);
      child.stdout?.destroy();
      child.stderr?.destroy();
      resolve({ ...ended, output: tail.text() });
    };
    const limit = setTimeout(() => {
      isLate = true;
      killGroup(child.pid, "SIGTERM");
      setTimeout(() => {
        killGroup(child.pid, "SIGKILL");
        isKilled = true;
        finish();
      }, GRACE_MS);
    }, timeoutMs);
    child.once("error", (error) => {
      clearTimeout(limit);
      clearTimeout(linger);
      resolve(notStarted(error));
    });
    child.once("exit", (status) => {
      // From now on its number may belong to others: the limit is for the program, not for what it left behind.
      if (!isLate) clearTimeout(limit);
      const how = isLate ? "timeout" : status === null ? "signal" : "exit";
      ended = { how, status, output: "" };
      linger = setTimeout(finish, LINGER_MS);
    });
    child.once("close", finish);
  });
}

function killGroup(pid: number | undefined, signal: "SIGTERM" | "SIGKILL"): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // All of it has ended.
  }
}

function makeTail(): { add: (chunk: Buffer) => void; text: () => string } {
  let kept = Buffer.alloc(0);
  let isCut = false;
  return {
    add(chunk) {
      const all = Buffer.concat([kept, chunk.subarray(-MOST_OUTPUT_BYTES)]);
      isCut ||= all.length > MOST_OUTPUT_BYTES || chunk.length > MOST_OUTPUT_BYTES;
      kept = all.subarray(-MOST_OUTPUT_BYTES);
    },
    text() {
      const lines = kept.toString("utf8").split(/\r?\n/);
      const said = lines.map((line) => harmless(line.trim())).filter((line) => line !== "");
      return `${isCut ? "…" : ""}${said.join(" | ")}`;
    },
  };
}
