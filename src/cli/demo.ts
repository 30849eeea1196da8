/** `faultline demo`: the service in this process, a simulated job and its agents in another. Everything ends with it. */
import { spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { UserError } from "../base/errors.ts";
import { harmless } from "../base/text.ts";
import { makeRehearsalFolder } from "../live/fleet/rehearsal-folder.ts";
import { SimulatedMetrics } from "../live/fleet/simulated-metrics.ts";
import { metricsServer } from "../live/fleet/simulated-prometheus.ts";
import { readServeConfig } from "../live/service/config/config.ts";
import { PORT } from "../live/service/config/config-schema.ts";
import { simulate } from "../simulate/cluster/engine.ts";
import { DemoJob } from "./demo-control.ts";
import { startDemoEndpoint } from "./demo-endpoint.ts";
import { makeDataFolder } from "./demo-folder.ts";
import { DEMO, demoSpec, playDemoJob } from "./demo-play.ts";
import { startPlayer } from "./demo-player.ts";
import { openService } from "./open-service.ts";
import type { Io } from "./io.ts";

export interface DemoFlags {
  readonly port?: number;
  readonly open: boolean;
  readonly data?: string;
  readonly verbose?: boolean;
  /** For the child that plays the job. */
  readonly play?: string;
}

/** A busy laptop puts the job off for seconds, and that is no hang. */
const HANG_MS = 10_000;
const PAST_MS = 20 * 60_000;
const SCRAPE_MS = 10_000;
const PORTS_TRIED = 100;

export async function runDemo(io: Io, flags: DemoFlags, version: string): Promise<number> {
  if (flags.play !== undefined)
    return await playDemoJob(
      io,
      JSON.parse(flags.play) as { folder: string; url: string },
      version,
    );
  const ending = new AbortController();
  const folder = makeRehearsalFolder(tmpdir());
  const stop = (): void => {
    if (ending.signal.aborted) {
      // Second signal: ranks and agents end by themselves when we are gone.
      rmSync(folder, { recursive: true, force: true });
      process.exit(130);
    }
    ending.abort();
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, stop);
  const closings: (() => Promise<void>)[] = [];
  try {
    await start(io, flags, version, folder, ending, closings);
    if (!ending.signal.aborted)
      await new Promise((done) => ending.signal.addEventListener("abort", done, { once: true }));
    return Number(process.exitCode ?? 0);
  } finally {
    await Promise.allSettled(closings.map((close) => close()));
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Whatever is opened is put onto `closings`; where the end is near, the rest is not started. */
async function start(
  io: Io,
  flags: DemoFlags,
  version: string,
  folder: string,
  ending: AbortController,
  closings: (() => Promise<void>)[],
): Promise<void> {
  const say = (line: string): void => void io.out.write(`${harmless(line)}\n`);
  const log = (line: string): void => {
    if (flags.verbose === true) io.err.write(`${harmless(line)}\n`);
  };
  const dataFolder = flags.data === undefined ? join(folder, "service") : resolve(flags.data);
  makeDataFolder(dataFolder);
  const port = await freePort(flags.port, say);
  const simulation = simulate(demoSpec());
  const metrics = new SimulatedMetrics({
    simulation,
    startMs: Date.now(),
    pastMs: PAST_MS,
    stepMs: SCRAPE_MS,
  });
  let acts: readonly string[] = [];
  const demo = new DemoJob({
    job: DEMO.job,
    simulation,
    nowMs: Date.now,
    random: () => randomInt(2 ** 32) / 2 ** 32,
    onChange(words) {
      acts = words;
      metrics.change(words, false, Date.now());
    },
  });
  const endpoint = await startDemoEndpoint(metricsServer(metrics, Date.now), (action) =>
    demo.carryOut(action),
  );
  closings.push(() => endpoint.close());
  const configFile = join(folder, "demo.json");
  writeFileSync(configFile, JSON.stringify(configOf(endpoint)), { mode: 0o600 });
  const config = readServeConfig(configFile, { host: "127.0.0.1", port, data: dataFolder }, io.env);
  const service = await openService(io, config, { hangMs: HANG_MS, version, log, demo });
  closings.push(() => service.close());
  io.out.write(`${service.url}\n`);
  if (ending.signal.aborted) return;
  const rings = join(folder, "rings");
  mkdirSync(rings, { mode: 0o700 });
  let isHung = false;
  const player = startPlayer({
    folder: rings,
    url: service.url,
    log,
    onNews(news) {
      if (news.isHung && !isHung) metrics.change(acts, true, Date.now());
      isHung = news.isHung;
    },
    onLost() {
      io.err.write("faultline: the simulated job stopped unexpectedly; start the demo again\n");
      process.exitCode = 1;
      ending.abort();
    },
  });
  closings.push(() => player.close());
  demo.attach(player, service.view);
  say(
    `A simulated job of ${DEMO.gpus} GPUs is running, one iteration every ${DEMO.everyMs / 1000} s.`,
  );
  say(
    "Open the address above, break something, and watch Faultline find it. Ctrl-C stops the demo.",
  );
  if (flags.open && mayOpenBrowser(io.env, process.platform, io.out.isTTY === true))
    openBrowser(service.url, process.platform);
}

/** What a site would write into its configuration, with hooks that reach the simulated cluster. */
function configOf({
  hookUrl,
  prometheusUrl,
}: {
  readonly hookUrl: string;
  readonly prometheusUrl: string;
}): object {
  const hooks = HOOKED.map((word) => ({ do: word, webhook: hookUrl, timeoutSeconds: 10 }));
  return {
    // A visitor may take out machine after machine, and on a verdict that is only probable: none of them is real.
    actions: {
      dryRun: false,
      hooks,
      leastConfidence: 0.6,
      mostMachinesPerDay: 1000,
      leastMachines: 0,
      mostActionsPerHour: 1000,
      mostActionsPerHourOfJob: 1000,
    },
    prometheus: { url: prometheusUrl, every: "60s", range: "15m", via: "raw" },
  };
}

const HOOKED = ["cordon-node", "replace-link"];

async function freePort(asked: number | undefined, say: (line: string) => void): Promise<number> {
  if (asked !== undefined) {
    if (await isFree(asked)) return asked;
    throw new UserError(
      `port ${asked} is in use`,
      "give another --port, or leave it out to use a free one",
      2,
    );
  }
  for (let port = PORT; port < PORT + PORTS_TRIED; port++)
    if (await isFree(port)) {
      if (port !== PORT) say(`Port ${PORT} is in use; using ${port} instead.`);
      return port;
    }
  throw new UserError(
    `ports ${PORT} to ${PORT + PORTS_TRIED - 1} are in use`,
    "give a free one with --port",
    1,
  );
}

function isFree(port: number): Promise<boolean> {
  return new Promise((answer) => {
    const server = createServer();
    server.once("error", () => answer(false));
    server.listen(port, "127.0.0.1", () => server.close(() => answer(true)));
  });
}

/** Whether somebody can see a page that is opened here. */
function mayOpenBrowser(
  env: Readonly<Record<string, string | undefined>>,
  platform: string,
  isTerminal: boolean,
): boolean {
  if (!isTerminal || env["CI"] || env["SSH_CONNECTION"]) return false;
  return platform === "darwin" || Boolean(env["DISPLAY"]) || Boolean(env["WAYLAND_DISPLAY"]);
}

/** A courtesy: whatever goes wrong, the address is on the terminal. */
function openBrowser(url: string, platform: string): void {
  try {
    const child = spawn(platform === "darwin" ? "open" : "xdg-open", [url], {
      stdio: "ignore",
      detached: true,
    });
    child.on("error", () => undefined);
    child.unref();
  } catch {
    // The address is printed.
  }
}
