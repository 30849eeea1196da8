/** A running live service made of its configuration: what `serve` and `demo` share. */
import { randomUUID } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { UserError, errorText } from "../base/errors.ts";
import { bufferHistory } from "../history/buffered-history.ts";
import type { History } from "../history/history.ts";
import { openClickHouseHistory } from "../history/clickhouse-history.ts";
import { type LocalHistory, openLocalHistory } from "../history/local-history.ts";
import { answerBackups, STATE_FILE } from "../live/service/store/backup-folder.ts";
import type { ServeConfig } from "../live/service/config/config.ts";
import { embeddedCoordinator } from "../live/service/lease/embedded-coordinator.ts";
import { authorizeAgent } from "../live/service/http/authorize.ts";
import { serveHttp } from "../live/service/http/serve-http.ts";
import { serviceView } from "../live/service/service-view.ts";
import { SlackApp } from "../live/service/slack/slack-app.ts";
import { steadyClock } from "../live/service/lease/steady-clock.ts";
import { Service, type ServiceOptions } from "../live/service/service.ts";
import { judgeInThread } from "../live/service/slowdown/judge-thread.ts";
import type { DemoControl, ServiceView } from "../live/service/view.ts";
import type { AgentBusHandlers } from "../live/wire/transport.ts";
import { connectNatsBus } from "../live/wire/nats-bus.ts";
import { serveAgents } from "../live/wire/ws-bus.ts";
import type { Io } from "./io.ts";
import { readyService, rulesOf } from "./ready-service.ts";
import { type Changes, changesOf, limitsOf, tokensChanged } from "./reload-config.ts";

export interface OpenServiceOptions {
  readonly hangMs: number;
  readonly version: string;
  readonly log: (line: string) => void;
  /** Of the demonstration: what can be broken. */
  readonly demo?: DemoControl;
}

export interface OpenService {
  readonly url: string;
  readonly view: ServiceView;
  /** Where the history is, in words. */
  readonly history: string;
  /** Sentences for the start. */
  readonly says: readonly string[];
  /** Puts another configuration in force, as far as that goes without a restart. Rejects with UserError, and changes nothing. */
  reload(next: ServeConfig): Promise<Changes>;
  /** Whether the configuration file has an error, which /healthz then says. */
  configFailed(isFailed: boolean): void;
  /** Writes down what is open, and ends it. */
  close(): Promise<void>;
}

function isClosedOff({ tokens, oidc }: Pick<ServeConfig, "tokens" | "oidc">): boolean {
  return tokens.length > 0 || oidc !== null;
}

const RELAPSE_MS = 30 * 60_000;

export async function openService(
  io: Io,
  config: ServeConfig,
  { hangMs, version, log, demo }: OpenServiceOptions,
): Promise<OpenService> {
  // Before anything is opened: a wrong configuration is reported at once.
  const { ready, faults } = await readyService(config);
  if (ready === null) throw faults[0]!;
  const { signIn, auth, jobFiles, fabric, machines } = ready;
  await mkdir(config.dataFolder, { recursive: true, mode: 0o700 }).catch((error: unknown) => {
    throw new UserError(
      `cannot create ${config.dataFolder}: ${errorText(error)}`,
      "give another --data FOLDER",
      2,
    );
  });
  const { history, file, says: saysHistory } = await openHistory(config, log);
  const nowMs = steadyClock({
    wallMs: Date.now,
    monotonicMs: () => performance.now(),
    onStep: log,
  });
  // Without NATS documents lie on this machine, wherever the history is: incidents must not wait for a database.
  const isLocal = config.history.kind === "duckdb" || config.nats !== null;
  const state = isLocal ? null : await openLocalHistory(join(config.dataFolder, STATE_FILE));
  const documents = state?.history ?? history;
  // The bus needs handlers and the service needs the bus: the service is attached afterwards.
  let service: Service | null = null;
  const handlers: AgentBusHandlers = {
    report: (agent, report) => service?.handlers.report(agent, report),
    connected: (agent) => service?.handlers.connected(agent),
    gone: (agent) => service?.handlers.gone(agent),
    asked: (job, text) => service?.handlers.asked(job, text) ?? "{}",
    announced: (job) => service?.handlers.announced(job),
    onTrouble: (line) => (service ? service.handlers.onTrouble(line) : log(line)),
  };
  const nats = config.nats
    ? await connectNatsBus({ ...config.nats, handlers, nowMs: Date.now, server: serverName() })
    : null;
  const options: ServiceOptions = {
    history,
    coordinator: nats?.coordinator ?? embeddedCoordinator(documents),
    serviceId: config.history.kind === "clickhouse" ? await serviceId(config.dataFolder) : "",
    folder: config.dataFolder,
    alerts: config.alerts,
    actions: config.actions,
    hangMs,
    pauseMs: 1000 * config.detection.pauseSeconds,
    thresholds: thresholdsOf(config),
    relapseMs: RELAPSE_MS,
    silentMs: 1000 * config.detection.silentSeconds,
    validation: config.validation.enabled
      ? {
          mostRanks: config.validation.mostRanks,
          everyMs: 1000 * config.validation.everySeconds,
          limitMs: 1000 * config.validation.limitSeconds,
        }
      : null,
    retention: config.retention,
    rightOf: auth.rightOf,
    learnsLogs: config.learning.logs,
    jobFiles,
    fabric,
    machines,
    nowMs,
    newId: randomUUID,
    judging: judgeInThread(handlers.onTrouble),
    fetch: (url, init) => fetch(url, init),
    environment: io.env,
    log,
  };
  const opened = new Service(options);
  service = opened;
  const view = serviceView(opened, nowMs());
  const slackApp = new SlackApp({
    alerts: config.alerts,
    view,
    fetch: options.fetch,
    nowMs: Date.now,
    log,
  });
  const http = await serveHttp({
    ...config,
    view,
    auth,
    signIn,
    slackApp,
    nowMs: Date.now,
    version,
    log,
    ...(demo ? { demo } : {}),
  });
  const stopBackups = answerBackups(
    config.dataFolder,
    [{ part: "history", history, file }, ...(state ? [{ part: "state" as const, ...state }] : [])],
    log,
  );
  const bus =
    nats?.bus ??
    serveAgents(http.server, {
      authorize: (request) => authorizeAgent(auth, request),
      holds: (request, who) => auth.holds(request, "agent", who),
      handlers,
    });
  opened.bus = bus;
  try {
    await opened.start();
  } catch (error) {
    stopBackups();
    await bus.close();
    await http.close();
    throw error;
  }
  let running = config;
  return {
    async reload(next) {
      // A file that went wrong must not open what was closed.
      if (isClosedOff(running) && !isClosedOff(next))
        throw new UserError(
          "it has no tokens and no sign-in any more",
          "restart the service to leave it open to everybody on this machine",
        );
      auth.reload(rulesOf(next));
      for (const line of auth.says) log(line);
      signIn.reload(next.oidc);
      slackApp.reload(next.alerts);
      const { live, restart } = changesOf(running, next);
      const which = tokensChanged(running.tokens, next.tokens);
      const { tokens, oidc, publicRead, allowedHosts, alerts } = next;
      const actions = { ...running.actions, ...limitsOf(next.actions) };
      running = { ...running, tokens, oidc, publicRead, allowedHosts, alerts, actions };
      await opened.reconfigure({ alerts, actions });
      http.recheck();
      bus.recheck?.();
      return { live: live.map((key) => (key === "tokens" ? which : key)), restart };
    },
    configFailed(isFailed) {
      opened.configSays = !isFailed
        ? null
        : "the configuration file has an error, the earlier one stays in force; see the service's log";
    },
    url: http.url,
    view,
    history: file,
    says: [...config.notes, ...auth.says, ...(saysHistory === null ? [] : [saysHistory])],
    async close() {
      stopBackups();
      slackApp.close();
      await opened.close();
      await bus.close();
      await http.close();
      if (nats) await nats.coordinator.close();
      await history.close();
      if (documents !== history) await documents.close();
    },
  };
}

async function openHistory(
  config: ServeConfig,
  log: (line: string) => void,
): Promise<LocalHistory<History>> {
  if (config.history.kind === "clickhouse") {
    const store = await openClickHouseHistory(config.history.url, { mayBeDown: true });
    const history = bufferHistory(store, { acknowledge: "stored", onTrouble: log });
    return { history, file: "ClickHouse", says: null };
  }
  await mkdir(dirname(config.history.path), { recursive: true, mode: 0o700 });
  return await openLocalHistory(config.history.path);
}

function thresholdsOf({ jobs }: ServeConfig): ServiceOptions["thresholds"] {
  return new Map(
    jobs.map(({ name, hangSeconds, pauseSeconds }) => [
      name,
      {
        ...(hangSeconds === null ? {} : { hangMs: 1000 * hangSeconds }),
        ...(pauseSeconds === null ? {} : { pauseMs: 1000 * pauseSeconds }),
      },
    ]),
  );
}

/** Made once, and kept in the data folder. */
async function serviceId(folder: string): Promise<string> {
  const file = join(folder, "service-id");
  await writeFile(file, `${randomUUID()}\n`, { flag: "wx", mode: 0o600 }).catch(() => undefined);
  return (await readFile(file, "utf8")).trim();
}

/** Two services on one machine are two. */
function serverName(): string {
  const plain = hostname()
    .replace(/[^A-Za-z0-9_-]/g, "-")
    .slice(0, 40);
  return `${plain || "service"}-${process.pid}`;
}
