/** `faultline serve`: the live service. */
import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { UserError } from "../base/errors.ts";
import { harmless } from "../base/text.ts";
import { bufferHistory } from "../history/buffered-history.ts";
import { openClickHouseHistory } from "../history/clickhouse-history.ts";
import { openDuckDbHistory } from "../history/duckdb-history.ts";
import type { History } from "../history/history.ts";
import { readJobFile } from "../live-pipeline.ts";
import { connect } from "../machines-pipeline.ts";
import { readServeConfig, type ServeConfig, type ServeFlags } from "../live/service/config.ts";
import { embeddedCoordinator } from "../live/service/embedded-coordinator.ts";
import { authorizeAgent, makeAuthorizer } from "../live/service/http/authorize.ts";
import { serveHttp } from "../live/service/http/serve-http.ts";
import { serviceView } from "../live/service/service-view.ts";
import { Service, type ServiceOptions } from "../live/service/service.ts";
import type { AgentBusHandlers } from "../live/wire/transport.ts";
import { connectNatsBus } from "../live/wire/nats-bus.ts";
import { serveAgents } from "../live/wire/ws-bus.ts";

export interface ServeCliFlags extends ServeFlags {
  readonly config?: string;
  readonly json?: boolean;
  readonly quiet?: boolean;
  /** Seconds. */
  readonly hang?: number;
}

const RELAPSE_MS = 30 * 60_000;

export async function runServe(flags: ServeCliFlags, version: string): Promise<number> {
  const config = readServeConfig(flags.config ?? null, flags, process.env);
  const log = (line: string): void => {
    const time = new Date().toISOString();
    if (flags.json) process.stdout.write(`${JSON.stringify({ time, event: "log", line })}\n`);
    else if (!flags.quiet) process.stderr.write(`${time.slice(0, 19)}Z ${harmless(line)}\n`);
  };
  // Before anything is opened: what is off in the words is said at once.
  const auth = makeAuthorizer({ ...config, tls: config.tls !== null, nowMs: Date.now });
  const jobFiles = new Map(
    await Promise.all(
      config.jobs.map(async ({ name, jobFile }) => [name, await readJobFile(jobFile)] as const),
    ),
  );
  const machines = machinesOf(config);
  await mkdir(config.dataFolder, { recursive: true, mode: 0o700 }).catch((error: unknown) => {
    const why = error instanceof Error ? error.message : String(error);
    throw new UserError(
      `${config.dataFolder} cannot be made: ${why}`,
      "say another --data FOLDER",
      2,
    );
  });
  const history = await openHistory(config, log);
  // Without NATS documents lie on this machine, wherever the history is: incidents must not wait for a database.
  const isLocal = config.history.kind === "duckdb" || config.nats !== null;
  const documents = isLocal
    ? history
    : await openDuckDbHistory(join(config.dataFolder, "state.duckdb"));
  // Whoever carries reports needs somebody to hand them to, and the service needs a carrier: it is attached afterwards.
  let service: Service | null = null;
  const handlers: AgentBusHandlers = {
    report: (agent, report) => service?.handlers.report(agent, report),
    connected: (agent) => service?.handlers.connected(agent),
    gone: (agent) => service?.handlers.gone(agent),
    announced: (job) => service?.handlers.announced(job),
    onTrouble: (line) => (service ? service.handlers.onTrouble(line) : log(line)),
  };
  const nats = config.nats
    ? await connectNatsBus({ ...config.nats, handlers, nowMs: Date.now, server: serverName() })
    : null;
  const options: ServiceOptions = {
    history,
    coordinator: nats?.coordinator ?? embeddedCoordinator(documents),
    folder: config.dataFolder,
    alerts: config.alerts,
    actions: config.actions,
    hangMs: 1000 * (flags.hang ?? config.detection.hangSeconds),
    relapseMs: RELAPSE_MS,
    silentMs: 1000 * config.detection.silentSeconds,
    jobFiles,
    machines,
    nowMs: Date.now,
    newId: randomUUID,
    fetch: (url, init) => fetch(url, init),
    environment: process.env,
    log,
  };
  service = new Service(options);
  const view = serviceView(service, Date.now());
  const http = await serveHttp({ ...config, view, auth, nowMs: Date.now, version, log });
  const authorize = (
    request: Parameters<typeof authorizeAgent>[1],
  ): ReturnType<typeof authorizeAgent> => authorizeAgent(auth, request);
  const bus = nats?.bus ?? serveAgents(http.server, { authorize, handlers, nowMs: Date.now });
  service.attach(bus);
  try {
    await service.start();
  } catch (error) {
    await bus.close();
    await http.close();
    throw error;
  }
  for (const line of [...config.notes, ...auth.says]) log(line);
  say(flags, http.url, config);
  await told();
  log("ends: writes down what is open");
  await service.close();
  await bus.close();
  await http.close();
  if (nats) await nats.coordinator.close();
  await history.close();
  if (documents !== history) await documents.close();
  return 0;
}

function say(flags: ServeCliFlags, bound: string, config: ServeConfig): void {
  const { nats, history, dataFolder } = config;
  const where = history.kind === "duckdb" ? history.path : "ClickHouse";
  // "All addresses" is none that an agent could be given.
  const url = bound.replace(/\/\/(?:0\.0\.0\.0|\[::\])(?=:)/, `//${hostname()}`);
  if (flags.json)
    process.stdout.write(`${JSON.stringify({ event: "listening", url, dataFolder })}\n`);
  else
    process.stdout.write(
      `listens on ${url}\n${nats ? `agents: faultline agent --server ${nats.url}` : `agents: faultline agent --server ${url}`}\nhistory: ${where}; Ctrl-C ends it\n`,
    );
}

async function openHistory(config: ServeConfig, log: (line: string) => void): Promise<History> {
  if (config.history.kind === "clickhouse") {
    const store = await openClickHouseHistory(config.history.url, { mayBeDown: true });
    return bufferHistory(store, { acknowledge: "stored", onTrouble: log });
  }
  await mkdir(dirname(config.history.path), { recursive: true, mode: 0o700 });
  return await openDuckDbHistory(config.history.path);
}

function machinesOf({ prometheus }: ServeConfig): ServiceOptions["machines"] {
  if (!prometheus) return null;
  const { url, headers, match, via, everySeconds, rangeSeconds } = prometheus;
  const { signal } = new AbortController();
  return {
    connect: () => connect({ url, headers, signal }),
    match,
    via,
    rangeS: rangeSeconds,
    everyMs: 1000 * everySeconds,
  };
}

/** Two services on one machine are two. */
function serverName(): string {
  const plain = hostname()
    .replace(/[^A-Za-z0-9_-]/g, "-")
    .slice(0, 40);
  return `${plain || "service"}-${process.pid}`;
}

function told(): Promise<void> {
  return new Promise((resolve) => {
    for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => resolve());
  });
}
