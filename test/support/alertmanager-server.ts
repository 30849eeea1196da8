/** A real Alertmanager on loopback, for tests: Debian's package `prometheus-alertmanager`. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { programPath, unlessThere } from "./lacking.ts";
import { freePort } from "./free-port.ts";

export interface TestAlertmanager {
  readonly url: string;
  /** Alerts that are active now. */
  alerts(): Promise<readonly ActiveAlert[]>;
  /** kill -9: it keeps no alerts over that. */
  kill(): Promise<void>;
  /** Again, at the same address. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

export interface ActiveAlert {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly startsAt: string;
  readonly endsAt: string;
  readonly generatorURL: string;
}

const NAMES = ["prometheus-alertmanager", "alertmanager"];
const TEMPLATE = "/usr/share/prometheus/alertmanager/default.tmpl";
const READY_TRIES = 150;
const READY_PAUSE_MS = 100;

const PROGRAM = programPath(...NAMES);
/** Debian's does not start without its template, which a package that was only unpacked has elsewhere. */
const isThere = PROGRAM !== null && (!PROGRAM.endsWith(NAMES[0]!) || existsSync(TEMPLATE));
/** For titles of tests; "" where it can be started. */
export const whyNoAlertmanager = unlessThere(isThere, "Alertmanager", "prometheus-alertmanager");

/** `receiver`: gets Alertmanager's own notifications, an alert of an incident each, resolved ones too. */
export async function startAlertmanager(receiver: string): Promise<TestAlertmanager> {
  const folder = mkdtempSync(join(tmpdir(), "faultline-alertmanager-"));
  const config = join(folder, "alertmanager.yml");
  writeFileSync(
    config,
    `route:
  receiver: test
  group_by: ["..."]
  group_wait: 0s
  group_interval: 1s
  repeat_interval: 1h
receivers:
  - name: test
    webhook_configs:
      - url: ${receiver}
        send_resolved: true
`,
  );
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  let child: ChildProcess | null = null;
  const killNow = (): void => void child?.kill("SIGKILL");
  // It must not outlive a test run that is ended half-way.
  process.once("exit", killNow);

  async function start(): Promise<void> {
    const started = spawn(
      PROGRAM ?? NAMES[0]!,
      [
        `--config.file=${config}`,
        `--storage.path=${join(folder, "data")}`,
        `--web.listen-address=127.0.0.1:${port}`,
        "--cluster.listen-address=",
        "--log.level=warn",
      ],
      { stdio: ["ignore", "ignore", "pipe"] },
    );
    child = started;
    let said = "";
    started.stderr.on("data", (chunk: Buffer) => (said = (said + chunk.toString()).slice(-2000)));
    for (let i = 0; i < READY_TRIES && started.exitCode === null; i++) {
      if (await isReady(url)) return;
      await pause(READY_PAUSE_MS);
    }
    await end("SIGKILL");
    throw new Error(`alertmanager did not start: ${said}`);
  }

  async function end(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    const running = child;
    child = null;
    if (!running || running.exitCode !== null || running.signalCode !== null) return;
    const ended = once(running, "exit");
    running.kill(signal);
    const late = setTimeout(() => running.kill("SIGKILL"), 5000);
    await ended;
    clearTimeout(late);
  }

  async function stop(): Promise<void> {
    process.off("exit", killNow);
    await end("SIGTERM");
    rmSync(folder, { recursive: true, force: true });
  }

  try {
    await start();
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    url,
    async alerts() {
      const response = await fetch(`${url}/api/v2/alerts`);
      return (await response.json()) as ActiveAlert[];
    },
    kill: () => end("SIGKILL"),
    start,
    stop,
  };
}

async function isReady(url: string): Promise<boolean> {
  return await fetch(`${url}/-/ready`).then(
    async (response) => {
      await response.arrayBuffer();
      return response.status === 200;
    },
    () => false,
  );
}
