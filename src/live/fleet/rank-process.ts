/**
 * A process for a simulated rank: it does nothing, and can be stopped and killed as a real one. It reads a pipe that
 * nobody writes to, so that it ends by itself when we are gone, however we went.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";

export class RankProcess {
  readonly pid: number;
  /** When it began, ticks since boot: tells it from another that gets its number later. */
  readonly startTicks: number;
  readonly #child: ChildProcess;
  #warden: ChildProcess | null = null;

  private constructor(child: ChildProcess, pid: number) {
    this.#child = child;
    this.pid = pid;
    this.startTicks = startTicksOf(pid);
  }

  static async start(words: Readonly<Record<string, string>>): Promise<RankProcess> {
    const child = spawn("cat", [], {
      stdio: ["pipe", "ignore", "ignore"],
      // Ctrl-C is for us: ranks that died of it would look like a crash.
      detached: true,
      env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin", ...words },
    });
    child.stdin?.on("error", () => undefined);
    await once(child, "spawn");
    return new RankProcess(child, child.pid!);
  }

  get isGone(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  kill(): void {
    if (!this.isGone) this.#child.kill("SIGKILL");
  }

  stop(): void {
    if (this.isGone || this.#warden !== null) return;
    // One that is stopped does not see the end of its pipe: somebody has to end it for us if we are killed.
    this.#warden = spawn("sh", ["-c", 'cat >/dev/null; kill -9 "$0"', String(this.pid)], {
      stdio: ["pipe", "ignore", "ignore"],
      detached: true,
    });
    this.#warden.on("error", () => undefined);
    this.#warden.stdin?.on("error", () => undefined);
    this.#child.kill("SIGSTOP");
  }

  /** Ends it, and waits until it has. */
  async close(): Promise<void> {
    this.#warden?.kill("SIGKILL");
    if (this.isGone) return;
    const gone = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await gone;
  }
}

/** Field 22 of /proc/<pid>/stat; 0 where there is none. */
function startTicksOf(pid: number): number {
  try {
    const line = readFileSync(`/proc/${pid}/stat`, "latin1");
    return Number(line.slice(line.lastIndexOf(")") + 2).split(" ")[19]) || 0;
  } catch {
    return 0;
  }
}
