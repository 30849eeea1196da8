/**
 * A real ClickHouse on loopback, for tests: Debian's package `clickhouse-server` (18.16, the oldest that is supported)
 * with a small configuration of its own in a temporary folder.
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

export interface ClickHouseServer {
  /** clickhouse://user:password@host:port/default */
  readonly url: string;
  /** http://host:port, for questions of a test's own. */
  readonly httpUrl: string;
  /** kill -9; the data stays. */
  kill(): Promise<void>;
  /** Starts again on the same port with the same data; resolves when it answers. */
  start(): Promise<void>;
  /** SIGSTOP and SIGCONT: it takes connections and says nothing. */
  freeze(): void;
  thaw(): void;
  stop(): Promise<void>;
}

const USER = "faultline";
const PASSWORD = "it's a p@ss/word";
const READY_TRIES = 300;
const READY_PAUSE_MS = 100;

const PROGRAM = programPath("clickhouse-server");
/** For titles of tests; "" where it can be started. */
export const whyNoClickHouse = unlessThere(PROGRAM !== null, "ClickHouse", "clickhouse-server");

export async function startClickHouse(): Promise<ClickHouseServer> {
  const at = PROGRAM;
  if (at === null) throw new Error("clickhouse-server not found");
  const folder = mkdtempSync(join(tmpdir(), "faultline-clickhouse-"));
  const [httpPort, tcpPort] = [await freePort(), await freePort()];
  const httpUrl = `http://127.0.0.1:${httpPort}`;
  const config = writeConfig(folder, httpPort, tcpPort);
  let child: ChildProcess | null = null;
  let said = "";
  const killNow = (): void => void child?.kill("SIGKILL");
  // The server must not outlive a test run that is ended half-way.
  process.once("exit", killNow);

  async function kill(): Promise<void> {
    const dying = child;
    child = null;
    if (dying === null || dying.exitCode !== null || dying.signalCode !== null) return;
    const ended = once(dying, "exit");
    dying.kill("SIGKILL");
    await ended;
  }

  async function start(): Promise<void> {
    await kill();
    said = "";
    const started = spawn(at!, [`--config-file=${config}`], {
      cwd: folder,
      stdio: ["ignore", "pipe", "pipe"],
    });
    child = started;
    const keep = (chunk: Buffer): void => void (said = (said + chunk.toString()).slice(-2000));
    started.stdout.on("data", keep);
    started.stderr.on("data", keep);
    for (let i = 0; i < READY_TRIES; i++) {
      if (await isReady(`${httpUrl}/ping`)) return;
      if (started.exitCode !== null || started.signalCode !== null) break;
      await pause(READY_PAUSE_MS);
    }
    throw new Error(`clickhouse-server did not start: ${said}`);
  }

  async function stop(): Promise<void> {
    process.off("exit", killNow);
    await kill();
    rmSync(folder, { recursive: true, force: true });
  }

  try {
    await start();
  } catch (error) {
    await stop();
    throw error;
  }
  const login = `${USER}:${encodeURIComponent(PASSWORD)}`;
  return {
    url: `clickhouse://${login}@127.0.0.1:${httpPort}/default`,
    httpUrl,
    kill,
    start,
    freeze: () => void child?.kill("SIGSTOP"),
    thaw: () => void child?.kill("SIGCONT"),
    stop,
  };
}

function writeConfig(folder: string, httpPort: number, tcpPort: number): string {
  for (const name of ["data", "tmp"]) mkdirSync(join(folder, name));
  const users = join(folder, "users.xml");
  const config = join(folder, "config.xml");
  writeFileSync(
    users,
    `<yandex>
  <profiles><default><max_memory_usage>1000000000</max_memory_usage></default></profiles>
  <users><${USER}>
    <password>${PASSWORD}</password><profile>default</profile><quota>default</quota>
    <networks><ip>127.0.0.1</ip></networks>
  </${USER}></users>
  <quotas><default/></quotas>
</yandex>
`,
    { mode: 0o600 },
  );
  writeFileSync(
    config,
    `<yandex>
  <logger><level>warning</level><console>1</console></logger>
  <listen_host>127.0.0.1</listen_host>
  <http_port>${httpPort}</http_port>
  <tcp_port>${tcpPort}</tcp_port>
  <path>${join(folder, "data")}/</path>
  <tmp_path>${join(folder, "tmp")}/</tmp_path>
  <users_config>${users}</users_config>
  <default_profile>default</default_profile>
  <default_database>default</default_database>
  <mark_cache_size>67108864</mark_cache_size>
  <keep_alive_timeout>3</keep_alive_timeout>
</yandex>
`,
  );
  return config;
}

function isReady(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const call = get(url, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    call.setTimeout(2000, () => call.destroy());
    call.on("error", () => resolve(false));
  });
}
