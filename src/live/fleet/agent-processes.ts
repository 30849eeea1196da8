/** Agents of a rehearsal as processes of their own, as they run on machines. They end when we do, however we end. */
import { spawn, type ChildProcess } from "node:child_process";
import type { Readable } from "node:stream";
import { harmless } from "../../base/text.ts";

/** Node's words before the program's: whatever the child runs, it ends with its stdin. */
const END_WITH_STDIN =
  'data:text/javascript,process.stdin.on("end",()=>process.kill(process.pid,"SIGTERM")).resume().unref()';
const MOST_LINE = 4096;

export interface AgentProcessesOptions {
  /** The program that knows `agent`, and Node's words for it. */
  readonly program: string;
  readonly nodeWords: readonly string[];
  /** Words of each agent, behind the program's name. */
  readonly agents: readonly (readonly string[])[];
  /** What agents print, and how they ended, a line each. */
  readonly say: (line: string) => void;
}

export class AgentProcesses {
  readonly #children: ChildProcess[];
  #isClosing = false;

  constructor({ program, nodeWords, agents, say }: AgentProcessesOptions) {
    this.#children = agents.map((words, i) => {
      const child = spawn(
        process.execPath,
        [...nodeWords, "--import", END_WITH_STDIN, program, ...words],
        { stdio: ["pipe", "pipe", "pipe"], detached: true },
      );
      child.stdin?.on("error", () => undefined);
      lines(child.stderr, (line) => say(`agent ${i}: ${line}`));
      lines(child.stdout, (line) => {
        const trouble = troubleIn(line);
        if (trouble !== null) say(`agent ${i}: ${trouble}`);
      });
      child.on("error", (error) => say(`agent ${i}: ${error.message}`));
      child.on("exit", (code, signal) => {
        if (!this.#isClosing) say(`agent ${i}: ended (${signal ?? `status ${code}`})`);
      });
      return child;
    });
  }

  get pids(): readonly number[] {
    return this.#children.flatMap(({ pid }) => pid ?? []);
  }

  /** How many run. */
  get count(): number {
    return this.#children.filter(runs).length;
  }

  /** In order; those that do not end in time are killed. */
  async close(withinMs = 5000): Promise<void> {
    this.#isClosing = true;
    await Promise.all(
      this.#children.filter(runs).map(
        (child) =>
          new Promise<void>((resolve) => {
            const late = setTimeout(() => child.kill("SIGKILL"), withinMs);
            child.once("exit", () => {
              clearTimeout(late);
              resolve();
            });
            child.kill("SIGTERM");
          }),
      ),
    );
  }
}

function runs(child: ChildProcess): boolean {
  return child.pid !== undefined && child.exitCode === null && child.signalCode === null;
}

/** What an agent says with --json, where it is worth a line here. */
function troubleIn(line: string): string | null {
  try {
    const said = JSON.parse(line) as { event?: unknown; line?: unknown };
    return said.event === "trouble" && typeof said.line === "string" ? harmless(said.line) : null;
  } catch {
    return null;
  }
}

function lines(stream: Readable | null, take: (line: string) => void): void {
  let rest = "";
  stream?.setEncoding("utf8");
  stream?.on("error", () => undefined);
  stream?.on("data", (text: string) => {
    const all = (rest + text).split("\n");
    rest = all.pop()!.slice(0, MOST_LINE);
    for (const line of all) if (line !== "") take(harmless(line.slice(0, MOST_LINE)));
  });
}
