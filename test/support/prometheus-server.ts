/**
 * A real Prometheus on loopback with a history of our making, for tests: Debian's package `prometheus` has all that it
 * takes. History is backfilled as OpenMetrics text, so that nothing has to wait for scrapes.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { freePort } from "./free-port.ts";
import { programPath, unlessThere } from "./lacking.ts";

export interface TestServer {
  readonly url: string;
  stop(): Promise<void>;
}

export interface TestServerOptions {
  /** More flags of the server: "--query.max-samples=1000". */
  readonly flags?: readonly string[];
  /** Where to keep data between runs; a folder of the server's own otherwise. It is not filled again. */
  readonly dataFolder?: string;
  /** prometheus.yml, for tests that have something to scrape; nothing is scraped by default. */
  readonly config?: string;
}

const READY_TRIES = 150;
const READY_PAUSE_MS = 100;

/** For titles of tests; "" where it can be started. */
export const whyNoPrometheus = unlessThere(
  programPath("prometheus") !== null && programPath("promtool") !== null,
  "Prometheus",
  "prometheus",
);

/** `lines`: `name{label="value"} 1.5 1700000000` with all of a name together; no last line is needed. */
export async function startPrometheus(
  lines: Iterable<string>,
  { flags = [], dataFolder, config: yaml = "scrape_configs: []\n" }: TestServerOptions = {},
): Promise<TestServer> {
  const folder = mkdtempSync(join(tmpdir(), "faultline-prometheus-"));
  const data = dataFolder ?? join(folder, "data");
  if (!existsSync(data)) backfill(folder, data, lines);
  const config = join(folder, "prometheus.yml");
  writeFileSync(config, yaml);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const child = spawn(
    "prometheus",
    [
      `--config.file=${config}`,
      `--storage.tsdb.path=${data}`,
      "--storage.tsdb.retention.time=100y",
      `--web.listen-address=127.0.0.1:${port}`,
      "--log.level=warn",
      ...flags,
    ],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  // The server must not outlive a test run that is ended half-way.
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => (said = (said + chunk.toString()).slice(-2000)));
  const stop = async (): Promise<void> => {
    process.off("exit", kill);
    await end(child);
    rmSync(folder, { recursive: true, force: true });
  };
  for (let i = 0; i < READY_TRIES; i++) {
    if (await isReady(`${url}/-/ready`)) return { url, stop };
    if (child.exitCode !== null) break;
    await pause(READY_PAUSE_MS);
  }
  await stop();
  throw new Error(`prometheus did not start: ${said}`);
}

function backfill(folder: string, data: string, lines: Iterable<string>): void {
  const text = join(folder, "history.txt");
  mkdirSync(data, { recursive: true });
  if (Array.isArray(lines) && lines.length === 0) return;
  const parts: string[] = [];
  writeFileSync(text, "");
  const flush = (): void => {
    writeFileSync(text, parts.join(""), { flag: "a" });
    parts.length = 0;
  };
  for (const line of lines) if (parts.push(`${line}\n`) >= 100_000) flush();
  parts.push("# EOF\n");
  flush();
  execFileSync("promtool", ["tsdb", "create-blocks-from", "openmetrics", text, data], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  rmSync(text);
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  const late = setTimeout(() => child.kill("SIGKILL"), 5000);
  await ended;
  clearTimeout(late);
}

function isReady(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const call = get(url, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    call.on("error", () => resolve(false));
  });
}
