/** Processes that do nothing, to be stopped and killed by tests. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

export class IdleProcesses {
  readonly #children: ChildProcess[] = [];

  async start(environment: NodeJS.ProcessEnv = {}): Promise<ChildProcess & { pid: number }> {
    const env = { ...process.env, ...environment };
    const child = spawn("sleep", ["600"], { stdio: "ignore", env });
    this.#children.push(child);
    await once(child, "spawn");
    return child as ChildProcess & { pid: number };
  }

  killAll(): void {
    for (const child of this.#children.splice(0)) child.kill("SIGKILL");
  }
}

/** Killed, and known to be: no zombie of ours is left. */
export async function end(child: ChildProcess): Promise<void> {
  child.kill("SIGKILL");
  await once(child, "exit");
}
