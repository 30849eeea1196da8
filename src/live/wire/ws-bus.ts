/** The service's end over WebSockets: its own port, path /agent. Knows who is there, delivers each report once, and asks. */
import { createHash } from "node:crypto";
import type { IncomingMessage, Server } from "node:http";
import type { Server as SecureServer } from "node:https";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { fitsAny } from "../../base/patterns.ts";
import { encodeAck, encodeRequest, type Frame, type ReportFrame } from "./codec.ts";
import { type AgentHello, LIMITS, PROTOCOL, type Report } from "./messages.ts";
import { createPendingReplies, type PendingReplies } from "./replies.ts";
import type { AgentBus, AgentBusHandlers } from "./transport.ts";
import { createTroubleReporterByKey, safely } from "./trouble.ts";
import { CLOSE } from "./ws-close.ts";
import { type Connection, createConnection } from "./ws-connection.ts";
import { type Authorization, type Authorized, pathOf, refuseUpgrade } from "./ws-upgrade.ts";

export interface ServeAgentsOptions {
  authorize(this: void, request: IncomingMessage): Authorization;
  /** Whether who was let in by this request would be again, in the same way. */
  holds(this: void, request: IncomingMessage, who: Authorized): boolean;
  readonly handlers: AgentBusHandlers;
  readonly helloTimeoutMs?: number;
  /** Without a sign of life for so long, an agent is gone. */
  readonly idleTimeoutMs?: number;
  readonly mostAgents?: number;
}

/** What is remembered of an agent, also while it is away: how far its reports of this boot have been taken. */
interface Known {
  boot: string;
  taken: number;
  /** How often the handler failed on the next one. */
  failures: number;
  live: Live | null;
}

interface Live {
  readonly connection: Connection;
  readonly hello: AgentHello;
  readonly replies: PendingReplies;
  /** The report as far as the token is for its jobs; null for one of no such job. */
  allowed(this: void, report: Report): Report | null;
}

const ACK_MS = 20;
const SWEEP_MS = 1000;
const CONTENDER_MS = 3000;
const ANNOUNCE_MS = 2000;
/** A frame that is not whole after so long, with so much of it in memory beside pings, comes too slowly. */
const SLOW_FRAME_MS = 30_000;
const SLOW_FRAME_BYTES = 64 << 10;
const PING_BYTES_PER_MS = 0.016;
const MOST_UNSENT = 16 << 20;
const MOST_TRIES = 3;

function isDripping({ halfBytes, frameAt }: Connection, now: number): boolean {
  const sinceMs = now - frameAt;
  return sinceMs > SLOW_FRAME_MS && halfBytes > SLOW_FRAME_BYTES + sinceMs * PING_BYTES_PER_MS;
}

/** As agents make their own name of the machine's. */
function plainName(machine: string): string {
  return machine
    .replace(/[^A-Za-z0-9_-]/g, "_")
    .replace(/^[_-]+/, "")
    .slice(0, 64);
}

/**
 * Tokens of some jobs have names of their own: they can neither take an agent's name from others nor be asked in its
 * place. Tokens of the same jobs share theirs, so that a token can be replaced.
 */
function ownName(agent: string, jobs: readonly string[] | null): string {
  if (jobs === null) return agent;
  const scope = createHash("sha256").update([...jobs].sort().join("\n"));
  return `${agent}.${scope.digest("hex").slice(0, 8)}`;
}

/** Nothing to look at for a token of all jobs; else each name is judged once. */
function allowedOf(jobs: readonly string[] | null): (report: Report) => Report | null {
  if (jobs === null) return (report) => report;
  const judged = new Map<string, boolean>();
  const isMine = (job: string): boolean => {
    let known = judged.get(job);
    if (known === undefined) {
      if (judged.size > 1000) judged.clear();
      known = fitsAny(job, jobs);
      judged.set(job, known);
    }
    return known;
  };
  return (report) => {
    if (report.kind === "beat")
      return { ...report, jobs: report.jobs.filter(({ job }) => isMine(job)) };
    return isMine(report.job) ? report : null;
  };
}

export function serveAgents(
  server: Server | SecureServer,
  {
    authorize,
    holds,
    handlers,
    helloTimeoutMs = 5000,
    idleTimeoutMs = 15_000,
    mostAgents = 8192,
  }: ServeAgentsOptions,
): AgentBus {
  const traffic = { reports: 0, reportBytes: 0, replyBytes: 0, refused: 0 };
  const known = new Map<string, Known>();
  const connections = new Set<{
    readonly connection: Connection;
    readonly since: number;
    isNew(this: void): boolean;
    isAsBefore(this: void): boolean;
  }>();
  const due = new Map<Connection, number>();
  const announcedAt = new Map<string, number>();
  const tellOf = createTroubleReporterByKey(handlers.onTrouble);
  const sockets = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: LIMITS.reportBytes,
    clientTracking: false,
  });
  let isClosed = false;

  const announce = (report: Report): void => {
    const jobs = report.kind === "beat" ? report.jobs : [report];
    for (const { job } of jobs) {
      const now = performance.now();
      if (now - (announcedAt.get(job) ?? -Infinity) < ANNOUNCE_MS) continue;
      if (announcedAt.size > 10_000) announcedAt.clear();
      announcedAt.set(job, now);
      safely(() => handlers.announced(job));
    }
  };

  /** Acknowledgements of many reports go out together. */
  let acking: NodeJS.Timeout | undefined;
  const acknowledge = (connection: Connection, taken: number): void => {
    due.set(connection, taken);
    acking ??= setTimeout(() => {
      acking = undefined;
      for (const [connection, taken] of due) connection.send(encodeAck(taken));
      due.clear();
    }, ACK_MS);
  };

  const everyMs = Math.min(SWEEP_MS, helloTimeoutMs, idleTimeoutMs / 3);
  let sweptAt = performance.now();
  const sweep = setInterval(() => {
    const now = performance.now();
    const wasAway = now - sweptAt > 2 * everyMs;
    sweptAt = now;
    // After a pause of our own (a stopped machine, a long diagnosis) what came meanwhile is read first.
    if (wasAway) return;
    for (const { connection, since, isNew } of connections) {
      const silentMs = now - connection.heardAt;
      if (isNew() && now - since > helloTimeoutMs)
        connection.close(CLOSE.tooLate, "no hello in time");
      else if (connection.unsentBytes > MOST_UNSENT) connection.terminate();
      else if (connection.isHeld) continue;
      else if (silentMs > idleTimeoutMs) connection.terminate();
      else if (isDripping(connection, now)) connection.terminate();
      else if (silentMs > idleTimeoutMs / 3) connection.keepAlive();
    }
  }, everyMs);
  sweep.unref();

  /** The agent's record, where this hello may have it; else why not. */
  const admit = async (hello: AgentHello): Promise<Known | null> => {
    const before = known.get(hello.agent);
    if (before?.live != null && before.boot !== hello.boot) {
      const old = before.live;
      if (await old.connection.ping(CONTENDER_MS)) return null;
      // Meanwhile a third may have come.
      if (known.get(hello.agent)?.live !== old && known.get(hello.agent)?.live != null) return null;
      old.connection.terminate();
      leave(hello.agent, old);
    }
    const now = known.get(hello.agent);
    if (now?.boot === hello.boot) return now;
    const fresh: Known = { boot: hello.boot, taken: 0, failures: 0, live: null };
    known.delete(hello.agent);
    known.set(hello.agent, fresh);
    forget();
    return fresh;
  };

  /** Agents that are away are forgotten, the longest known first, when there are too many. */
  const forget = (): void => {
    if (known.size <= 2 * mostAgents) return;
    for (const [agent, { live }] of known) {
      if (live === null) known.delete(agent);
      if (known.size <= mostAgents) return;
    }
  };

  const leave = (agent: string, live: Live): void => {
    const one = known.get(agent);
    if (one?.live !== live) return;
    one.live = null;
    live.replies.failAll("it is gone");
    safely(() => handlers.gone(agent));
  };

  const deliver = (
    one: Known,
    live: Live,
    { sequence, report }: ReportFrame,
  ): Promise<void> | void => {
    const { connection, hello } = live;
    const done = (): void => {
      one.taken = Math.max(one.taken, sequence);
      one.failures = 0;
      acknowledge(connection, one.taken);
    };
    if (sequence <= one.taken) return done();
    const failed = (error: unknown): void => {
      tellOf(
        `${hello.agent} report`,
        `agent ${hello.agent}: a report could not be processed: ${String(error)}`,
      );
      // Tried again on the next connection; a report that fails every time must not stop those behind it.
      if (++one.failures >= MOST_TRIES) done();
      else connection.close(CLOSE.notNow, "a report could not be taken");
    };
    if (report === null) {
      traffic.refused++;
      tellOf(
        `${hello.agent} kind`,
        `agent ${hello.agent} (version ${hello.version}): a report of a kind that this service does not know was left out`,
      );
      return done();
    }
    const mine = live.allowed(report);
    if (mine === null) {
      traffic.refused++;
      tellOf(`${hello.agent} job`, `agent ${hello.agent}: its token is not for the job it reports`);
      return done();
    }
    announce(mine);
    try {
      const wait = handlers.report(hello, mine);
      if (wait === undefined) return done();
      return wait.then(done, failed);
    } catch (error) {
      failed(error);
    }
  };

  const attach = (
    socket: WebSocket,
    raw: Duplex,
    who: Authorized,
    isAsBefore: () => boolean,
  ): void => {
    let one: Known | null = null;
    let live: Live | null = null;
    let isNew = true;
    const refuse = (code: number, agent: string, why: string): void => {
      traffic.refused++;
      tellOf(agent, `agent ${agent}: refused, ${why}`);
      connection.close(code, why);
    };
    const greet = async (said: AgentHello): Promise<void> => {
      isNew = false;
      const hello = { ...said, agent: ownName(said.agent, who.jobs) };
      if (hello.protocol !== PROTOCOL) {
        return refuse(
          CLOSE.forbidden,
          hello.agent,
          `it speaks protocol ${hello.protocol}, not ${PROTOCOL}`,
        );
      }
      // A token of one agent is one of its machine: verdicts name machines, and hooks take them out.
      const isOwn = said.agent === who.agent && plainName(said.machine) === who.agent;
      if (who.agent !== null && !isOwn) {
        return refuse(CLOSE.forbidden, hello.agent, `the token ${who.name} is not for this name`);
      }
      one = await admit(hello);
      if (one === null) {
        return refuse(CLOSE.taken, hello.agent, "another agent of this name is connected");
      }
      if (isClosed || !connections.has(entry)) return;
      const old = one.live;
      const replies = createPendingReplies(hello.agent);
      live = { connection, hello, replies, allowed: allowedOf(who.jobs) };
      one.live = live;
      if (old !== null) {
        old.replies.failAll("it came again on another connection");
        old.connection.close(CLOSE.replaced, "replaced by a newer connection");
      }
      connection.send(encodeAck(one.taken));
      safely(() => handlers.connected(hello));
    };
    const receive = (frame: Frame, bytes: number): Promise<void> | void => {
      if (frame.type === "hello" && isNew) return greet(frame.hello);
      if (isNew) return refuse(CLOSE.malformed, who.name, "something before its hello");
      if (one === null || live === null || one.live !== live) return;
      if (frame.type === "report") {
        traffic.reports++;
        traffic.reportBytes += bytes;
        return deliver(one, live, frame);
      }
      if (frame.type === "reply" || frame.type === "part") {
        traffic.replyBytes += live.replies.take(frame, bytes);
      } else
        refuse(
          CLOSE.malformed,
          live.hello.agent,
          `a frame of type ${frame.type} that agents do not send`,
        );
    };
    const connection = createConnection(socket, raw, {
      frame: receive,
      malformed: (why) => refuse(CLOSE.malformed, live?.hello.agent ?? who.name, why),
      closed() {
        connections.delete(entry);
        if (live !== null) leave(live.hello.agent, live);
      },
    });
    const entry = { connection, since: performance.now(), isNew: () => isNew, isAsBefore };
    connections.add(entry);
  };

  const upgrade = (request: IncomingMessage, raw: Duplex, head: Buffer): void => {
    raw.on("error", () => raw.destroy());
    if (pathOf(request) !== "/agent") return refuseUpgrade(raw, 404, "there is nothing here");
    let who: Authorization;
    try {
      who = authorize(request);
    } catch {
      return refuseUpgrade(raw, 401, "the token could not be checked");
    }
    if ("status" in who) return refuseUpgrade(raw, who.status, who.why);
    if (isClosed || connections.size >= mostAgents)
      return refuseUpgrade(raw, 503, "too many agents");
    const admitted = who;
    sockets.handleUpgrade(request, raw, head, (socket) =>
      attach(socket, raw, admitted, () => holds(request, admitted)),
    );
  };
  server.on("upgrade", upgrade);

  return {
    traffic,
    get agents() {
      const all: AgentHello[] = [];
      for (const { live } of known.values()) if (live !== null) all.push(live.hello);
      return all;
    },
    recheck() {
      for (const { connection, isAsBefore } of connections)
        if (!isAsBefore()) connection.close(CLOSE.notNow, "its token has changed");
    },
    // Everything comes here anyway.
    async follow() {},
    async unfollow() {},
    async ask(agent, request, timeoutMs) {
      const live = known.get(agent)?.live ?? null;
      if (live === null) throw new Error(`agent ${agent}: it is not connected`);
      return await live.replies.ask(request, timeoutMs, (id) => {
        const frame = encodeRequest(id, request);
        if (frame.length > LIMITS.reportBytes) throw new Error("the request is too large");
        live.connection.send(frame);
      });
    },
    async close() {
      isClosed = true;
      clearInterval(sweep);
      clearTimeout(acking);
      server.off("upgrade", upgrade);
      for (const [connection, taken] of due) connection.send(encodeAck(taken));
      const all = [...connections];
      for (const { connection } of all) connection.close(1001, "the service stops");
      for (let i = 0; i < 20 && connections.size > 0; i++)
        await new Promise((go) => setTimeout(go, 10));
      for (const { connection } of connections) connection.terminate();
    },
  };
}
