/** Agents of a rehearsal as processes of their own, as they run on machines. They end when we do, however we end. */
import { spawn, type ChildProcess } from "node:child_process";
import type { Readable } from "node:stream";
import { parseFields } from "../../base/json.ts";
import { ENDS_WITH_STDIN, sameProgram } from "../../base/own-program.ts";
import { harmless } from "../../base/text.ts";

const CLOSE_MS = 5000;
const MOST_LINE = 4096;

export interface AgentProcessesOptions {
  /** Words of each agent, behind the program's name. */
  readonly agents: readonly (readonly string[])[];
  /** What agents print, and how they ended, a line each. */
  readonly say: (line: string) => void;
}

export class AgentProcesses {
  readonly #children: ChildProcess[];
  #isClosing = false;

  constructor({ agents, say }: AgentProcessesOptions) {
    const [program, ...nodeWords] = sameProgram();
    const env = { ...process.env, [ENDS_WITH_STDIN]: "1" };
    this.#children = agents.map((words, i) => {
      const child = spawn(program, [...nodeWords, ...words], {
        stdio: ["pipe", "pipe", "pipe"],
        detached: true,
        env,
      });
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
  async close(): Promise<void> {
    this.#isClosing = true;
    await Promise.all(
      this.#children.filter(runs).map(
        (child) =>
          new Promise<void>((resolve) => {
            const late = setTimeout(() => child.kill("SIGKILL"), CLOSE_MS);
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
  const { event, line: said } = parseFields(line) ?? {};
  return event === "trouble" && typeof said === "string" ? harmless(said) : null;
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
