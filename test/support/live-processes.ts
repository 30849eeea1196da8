/** The live system as processes: services, a rehearsal with its agents, and what breaks them. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { JobView } from "../../src/live/service/view.ts";
import type { Incident } from "../../src/model/incident.ts";
import { until } from "./until.ts";

const FAULTLINE = fileURLToPath(new URL("../../faultline", import.meta.url));

export interface ServiceProcess {
  readonly url: string;
  readonly pid: number;
  jobs(): Promise<readonly JobView[]>;
  incidents(): Promise<readonly Incident[]>;
  history(id: string): Promise<readonly Incident[]>;
  kill(): Promise<void>;
  /** In order. */
  end(): Promise<void>;
}

export class Processes {
  readonly folder = mkdtempSync(join(tmpdir(), "faultline-drill-"));
  readonly #children: ChildProcess[] = [];
  readonly said: string[] = [];

  /** `under`: a program that starts it, with its words. */
  start(words: readonly string[], under: readonly string[] = []): ChildProcess {
    const [program, ...all] = [...under, FAULTLINE, ...words];
    const child = spawn(program!, all, { stdio: ["pipe", "pipe", "pipe"] });
    this.#children.push(child);
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => {
        this.said.push(`${words[0]}: ${chunk.toString()}`);
        if (this.said.length > 400) this.said.shift();
      });
    return child;
  }

  async service(words: readonly string[], under?: readonly string[]): Promise<ServiceProcess> {
    const child = this.start(["serve", "--json", ...words], under);
    let text = "";
    child.stdout!.on("data", (chunk: Buffer) => (text += chunk.toString()));
    const url = await until(
      () => {
        if (child.exitCode !== null)
          throw new Error(`serve ended: ${this.said.join("").slice(-2000)}`);
        return /"event":"listening","url":"([^"]+)"/.exec(text)?.[1] ?? null;
      },
      `serve ${words.join(" ")}`,
    );
    const get = async <T>(path: string): Promise<T> => {
      const response = await fetch(`${url}/api/v1/${path}`);
      if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
      return (await response.json()) as T;
    };
    return {
      url,
      pid: child.pid!,
      jobs: async () => (await get<{ jobs: JobView[] }>("jobs")).jobs,
      incidents: async () => (await get<{ incidents: Incident[] }>("incidents")).incidents,
      history: async (id) =>
        (await get<{ revisions: Incident[] }>(`incidents/${encodeURIComponent(id)}/history`))
          .revisions,
      kill: () => killed(child, "SIGKILL"),
      end: () => killed(child, "SIGTERM"),
    };
  }

  /** A job of 16 GPUs on two machines, or fewer, an agent process each; an iteration every half second. */
  async rehearsal(
    server: string,
    gpus = 16,
  ): Promise<{
    break(fault: string): Promise<void>;
    mend(): Promise<void>;
    agents(): AgentProcess[];
  }> {
    const words = [
      "--gpus",
      String(gpus),
      "--tp",
      "2",
      "--pp",
      "2",
      "--every",
      "500ms",
      "--control",
      "0",
    ];
    const child = this.start(["simulate", "--live", server, "--name", "drill", ...words]);
    let text = "";
    child.stdout!.on("data", (chunk: Buffer) => (text += chunk.toString()));
    const control = await until(
      () => /control (http:\S+)/.exec(text)?.[1] ?? null,
      "the rehearsal",
    );
    const ask = async (method: string, body?: object): Promise<void> => {
      const headers = { "content-type": "application/json" };
      const json = body === undefined ? {} : { headers, body: JSON.stringify(body) };
      const response = await fetch(`${control}/faults`, { method, ...json });
      if (!response.ok) throw new Error(await response.text());
    };
    return {
      break: (fault) => ask("POST", { fault }),
      mend: () => ask("DELETE"),
      agents: () => agentsOf(child.pid!),
    };
  }

  async close(): Promise<void> {
    await Promise.all(this.#children.map((child) => killed(child, "SIGTERM", 8000)));
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export interface AgentProcess {
  readonly pid: number;
  /** Words behind the program. */
  readonly words: readonly string[];
}

/** `./faultline` is a shell that becomes node: the rehearsal's own process is the child, and agents are its children. */
function agentsOf(parent: number): AgentProcess[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "latin1");
      const [, ppid] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      const words = readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0").filter(Boolean);
      const at = words.indexOf("agent");
      return Number(ppid) === parent && at > 0
        ? [{ pid: Number(name), words: words.slice(at) }]
        : [];
    } catch {
      return [];
    }
  });
}

async function killed(
  child: ChildProcess,
  signal: NodeJS.Signals,
  patienceMs = 60_000,
): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, "exit");
  child.kill(signal);
  const timer = setTimeout(() => child.kill("SIGKILL"), patienceMs);
  await exit;
  clearTimeout(timer);
}
