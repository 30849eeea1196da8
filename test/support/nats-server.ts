/**
 * A real NATS with JetStream on loopback, one broker or a cluster, for tests: Debian's package `nats-server`. Single
 * brokers can be stopped in their tracks, killed and started again on what they had on disk.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { programPath, unlessThere } from "./lacking.ts";
import { freePort } from "./free-port.ts";

export interface NatsBroker {
  readonly url: string;
  /** SIGSTOP: it is there and says nothing. */
  pause(): void;
  resume(): void;
  /** kill -9. */
  kill(): Promise<void>;
  /** After `kill`; resolves when it takes connections. */
  restart(): Promise<void>;
}

export interface NatsCluster {
  /** All brokers, with commas. */
  readonly url: string;
  readonly brokers: readonly NatsBroker[];
  /** The broker whose replica of a stream leads; null where nobody knows. */
  leaderOf(stream: string): Promise<NatsBroker | null>;
  stop(): Promise<void>;
}

const READY_MS = 30_000;
const READY_PAUSE_MS = 50;

const PROGRAM = programPath("nats-server");
/** For titles of tests; "" where it can be started. */
export const whyNoNats = unlessThere(PROGRAM !== null, "NATS", "nats-server");

export async function startNats(
  brokerCount: 1 | 3,
  { token }: { readonly token?: string } = {},
): Promise<NatsCluster> {
  const path = PROGRAM;
  if (path === null) throw new Error("nats-server not found");
  const folder = mkdtempSync(join(tmpdir(), "faultline-nats-"));
  const names = Array.from({ length: brokerCount }, (_, i) => `broker-${i}`);
  // Three ports a broker: clients, the cluster, and the one that says how it stands.
  const ports: (readonly [number, number, number])[] = [];
  for (const _ of names) ports.push([await freePort(), await freePort(), await freePort()]);
  const routes = ports.map(([, route]) => `nats-route://127.0.0.1:${route}`);
  const children: (ChildProcess | null)[] = names.map(() => null);
  const killAll = (): void => {
    for (const child of children) child?.kill("SIGKILL");
  };
  // Brokers must not outlive a test run that is ended half-way.
  process.once("exit", killAll);

  const start = async (i: number): Promise<void> => {
    const child = spawn(path, ["-c", join(folder, `${names[i]}.conf`)], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    children[i] = child;
    let said = "";
    child.stderr.on("data", (chunk: Buffer) => (said = (said + chunk.toString()).slice(-2000)));
    const end = performance.now() + READY_MS;
    while (performance.now() < end && child.exitCode === null) {
      if ((await ask(ports[i]![2], "/varz")) !== null) return;
      await pause(READY_PAUSE_MS);
    }
    throw new Error(`nats-server did not start: ${said}`);
  };
  const kill = async (i: number): Promise<void> => {
    const child = children[i];
    if (child == null || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  };
  const stop = async (): Promise<void> => {
    process.off("exit", killAll);
    await Promise.all(names.map(async (_, i) => await kill(i)));
    rmSync(folder, { recursive: true, force: true });
  };

  const brokers = names.map((name, i): NatsBroker => {
    mkdirSync(join(folder, name));
    const [client, route, monitor] = ports[i]!;
    const lines = [
      `server_name: ${name}`,
      `listen: "127.0.0.1:${client}"`,
      `http: "127.0.0.1:${monitor}"`,
      `jetstream { store_dir: "${join(folder, name)}", max_mem: 64MB, max_file: 4GB }`,
    ];
    if (token !== undefined) lines.push(`authorization { token: "${token}" }`);
    if (brokerCount > 1) {
      lines.push(
        `cluster { name: test, listen: "127.0.0.1:${route}", routes: [${routes.join(", ")}] }`,
      );
    }
    writeFileSync(join(folder, `${name}.conf`), `${lines.join("\n")}\n`);
    return {
      url: `nats://127.0.0.1:${client}`,
      pause: () => void children[i]?.kill("SIGSTOP"),
      resume: () => void children[i]?.kill("SIGCONT"),
      kill: async () => await kill(i),
      restart: async () => await start(i),
    };
  });
  const leaderOf = async (stream: string): Promise<NatsBroker | null> => {
    for (const [, , monitor] of ports) {
      const leader = findLeader(await ask(monitor, "/jsz?streams=1&accounts=1"), stream);
      const i = names.indexOf(leader ?? "");
      if (i >= 0) return brokers[i]!;
    }
    return null;
  };
  try {
    await Promise.all(names.map(async (_, i) => await start(i)));
    await electLeader(
      ports.map(([, , monitor]) => monitor),
      brokerCount,
    );
  } catch (error) {
    await stop();
    throw error;
  }
  return { url: brokers.map(({ url }) => url).join(","), brokers, leaderOf, stop };
}

/** JetStream of a cluster answers once its brokers have agreed on one that leads. */
async function electLeader(monitors: readonly number[], brokerCount: number): Promise<void> {
  const end = performance.now() + READY_MS;
  while (performance.now() < end) {
    const states = await Promise.all(monitors.map(async (port) => await ask(port, "/healthz")));
    const whole = await Promise.all(monitors.map(async (port) => await ask(port, "/jsz")));
    const hasLeader =
      brokerCount === 1 ||
      whole.some((state) => {
        const meta = fields(fields(state)["meta_cluster"]);
        return typeof meta["leader"] === "string" && meta["cluster_size"] === brokerCount;
      });
    if (hasLeader && states.every((state) => state !== null)) return;
    await pause(READY_PAUSE_MS);
  }
  throw new Error("nats-server: no leader of the cluster");
}

function fields(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function findLeader(state: unknown, stream: string): string | null {
  const accounts = fields(state)["account_details"];
  for (const account of Array.isArray(accounts) ? accounts : []) {
    const streams = fields(account)["stream_detail"];
    for (const one of Array.isArray(streams) ? streams : []) {
      if (fields(one)["name"] !== stream) continue;
      const leader = fields(fields(one)["cluster"])["leader"];
      if (typeof leader === "string" && leader !== "") return leader;
    }
  }
  return null;
}

/** The JSON of a broker's page; null where it is not there or not well. */
async function ask(port: number, path: string): Promise<unknown> {
  return await new Promise((resolve) => {
    const call = get({ host: "127.0.0.1", port, path, timeout: 1000 }, (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => (text += chunk.toString()));
      response.on("error", () => resolve(null));
      response.on("end", () => {
        try {
          resolve(response.statusCode === 200 ? JSON.parse(text) : null);
        } catch {
          resolve(null);
        }
      });
    });
    call.on("timeout", () => call.destroy());
    call.on("error", () => resolve(null));
  });
}
