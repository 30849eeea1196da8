/** `faultline demo` as a user starts it: it comes up, can be broken and mended, and leaves nothing behind. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer, type AddressInfo, type Server } from "node:net";
import { tmpdir } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import type { DemoState } from "../../src/live/service/view.ts";
import type { Incident } from "../../src/model/incident.ts";
import { until } from "../support/until.ts";
import { longTest } from "../support/cases.ts";

const FAULTLINE = fileURLToPath(new URL("../../faultline", import.meta.url));
const children: ChildProcess[] = [];
const servers: Server[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  for (const server of servers.splice(0)) server.close();
});

interface Demo {
  readonly child: ChildProcess;
  readonly said: () => string;
  readonly url: string;
  ask<T>(this: void, path: string, method?: string, body?: object): Promise<T>;
}

function start(...words: string[]): { child: ChildProcess; said: () => string } {
  const child = spawn(FAULTLINE, ["demo", "--no-open", ...words], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  children.push(child);
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
  return { child, said: () => text };
}

async function listening(...words: string[]): Promise<Demo> {
  const { child, said } = start(...words);
  const url = await until(() => /^(http:\S+)$/m.exec(said())?.[1], "the address");
  return {
    child,
    said,
    url,
    async ask<T>(path: string, method = "GET", body?: object): Promise<T> {
      const headers = { "content-type": "application/json" };
      const sent = body === undefined ? {} : { headers, body: JSON.stringify(body) };
      const response = await fetch(`${url}/api/v1${path}`, { method, ...sent });
      if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
      return (await response.json()) as T;
    },
  };
}

describe("the demo", () => {
  longTest(
    "finds what is broken, is mended by approving the action, and leaves nothing behind",
    async () => {
      const { child, ask, said, url } = await listening("--port", "0");
      expect(said().split("\n")[0]).toBe(url);
      await ready(ask);
      await ask("/demo", "POST", { kind: "gpu", rank: 17 });
      await expect(ask("/demo", "POST", { kind: "gpu" })).rejects.toThrow("409");
      const found = await until(async () => {
        const { incidents } = await ask<{ incidents: Incident[] }>("/incidents?open=true");
        return incidents.find(({ verdict, actions }) => verdict?.suspects[0] && actions.length > 0);
      }, "a verdict");
      expect(found.verdict!.suspects[0]).toMatchObject({ ranks: [17], cause: "gpu-slow" });
      const action = found.actions.find(({ do: word }) => word === "cordon-node")!;
      expect(action).toMatchObject({ target: "node002", canRun: true });
      const path = `/incidents/${encodeURIComponent(found.id)}`;
      const verb = { verb: "approve", dryRun: false };
      const done = await ask<Incident>(`${path}/actions/${action.id}`, "POST", verb);
      expect(done.actions.find(({ id }) => id === action.id)).toMatchObject({
        state: "done",
        outcome: "the hook took it: a spare machine replaced node002",
      });
      expect((await ask<DemoState>("/demo")).faults).toEqual([]);
      await until(
        async () => ((await ask<Incident>(path)).state === "resolved" ? true : undefined),
        "the end of the incident",
      );
      const own = descendants(child.pid!);
      expect(own.length).toBeGreaterThan(64);
      const tookMs = await ended(child, "SIGINT");
      expect(child.exitCode).toBe(0);
      expect(tookMs).toBeLessThan(15_000);
      expect(own.filter(isAlive)).toEqual([]);
      expect(foldersOf(child)).toEqual([]);
      await expect(fetch(url)).rejects.toThrow();
    },
  );

  it("ends at once while it starts, with nothing left behind", async () => {
    const { child } = await listening("--port", "0");
    await pause(300);
    const own = descendants(child.pid!);
    await ended(child, "SIGTERM");
    await until(() => (own.some(isAlive) ? undefined : true), "their end");
    expect(foldersOf(child)).toEqual([]);
  });

  it("takes its ranks and agents along when it is killed", async () => {
    const { child } = await listening("--port", "0");
    const own = await until(() => {
      const all = descendants(child.pid!);
      return all.length > 64 ? all : undefined;
    }, "its processes");
    await ended(child, "SIGKILL");
    await until(() => (own.some(isAlive) ? undefined : true), "their end");
    // The next one removes the folder.
    const next = start("--port", String(await takenPort()));
    await once(next.child, "close");
    expect(foldersOf(child)).toEqual([]);
  });

  it("says which port is taken where one was asked for", async () => {
    const port = await takenPort();
    const { child, said } = start("--port", String(port));
    await once(child, "close");
    expect(child.exitCode).toBe(2);
    expect(said()).toBe(
      `faultline: port ${port} is in use; give another --port, or leave it out to use a free one\n`,
    );
  });
});

async function ready(ask: Demo["ask"]): Promise<void> {
  await until(
    async () => ((await ask<DemoState>("/demo")).isReady ? true : undefined),
    "a job that is ready",
  );
}

async function takenPort(): Promise<number> {
  const server = createServer();
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<number> {
  const fromMs = Date.now();
  const gone = once(child, "exit");
  child.kill(signal);
  await gone;
  return Date.now() - fromMs;
}

/** Its own only: other tests play demonstrations at the same time. */
function foldersOf(child: ChildProcess): string[] {
  return readdirSync(tmpdir()).filter(
    (name) => name.startsWith("faultline-rehearsal-") && name.includes(`-${child.pid}-`),
  );
}

function descendants(root: number): number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const parent = parentOf(Number(name));
    if (parent !== null) parents.set(Number(name), parent);
  }
  const found = new Set([root]);
  for (let size = 0; size !== found.size;) {
    size = found.size;
    for (const [pid, parent] of parents) if (found.has(parent)) found.add(pid);
  }
  found.delete(root);
  return [...found];
}

/** null for one that has ended, also where nobody has asked for its status yet. */
function parentOf(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return state === "Z" ? null : Number(parent);
  } catch {
    return null;
  }
}

function isAlive(pid: number): boolean {
  return parentOf(pid) !== null;
}
