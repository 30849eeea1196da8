/** The service's end over NATS: several services share the jobs, each follows those that it holds the lease of. */
import type { Msg, NatsConnection, Subscription } from "@nats-io/transport-node";
import { errorText, UserError } from "../../base/errors.ts";
import { decodeFrame, encodeRequest, FrameError } from "./codec.ts";
import { type AgentHello, LIMITS, NAME } from "./messages.ts";
import {
  connectNats,
  loadNats,
  natsAddress,
  QUEUE,
  SAY_AGAIN_MS,
  subjects,
} from "./nats-connect.ts";
import { createNatsCoordinator } from "./nats-coordinator.ts";
import { type Follower, followJob, createReportIntake } from "./nats-intake.ts";
import { DEFAULT_STREAM_BYTES, ensureStream, replicasOf } from "./nats-stream.ts";
import { createPendingReplies } from "./replies.ts";
import type { AgentBus, AgentBusHandlers, Coordinator } from "./transport.ts";
import { createTroubleReporter, safely } from "./trouble.ts";

export interface NatsBusOptions {
  /** nats:// or tls://, several brokers with commas. */
  readonly url: string;
  readonly token: string | null;
  readonly handlers: AgentBusHandlers;
  nowMs(this: void): number;
  /** How far back a job that is followed begins; 5 minutes. */
  readonly replayMs?: number;
  /** This service's name. */
  readonly server: string;
  readonly ca?: string | null;
  /** Of the stream and the buckets; as many as there are brokers, at most 3. */
  readonly replicas?: number;
  readonly streamBytes?: number;
}

const REPLAY_MS = 5 * 60_000;

/** Rejects with UserError where the cluster is not there or JetStream is not on. */
export async function connectNatsBus(
  options: NatsBusOptions,
): Promise<{ bus: AgentBus; coordinator: Coordinator }> {
  const { handlers, nowMs, replayMs = REPLAY_MS, server } = options;
  const address = natsAddress(options.url);
  const modules = await loadNats();
  const { token, ca = null } = options;
  const nc = await connectNats(modules, address, { token, ca, name: server }).catch(
    (error: unknown): never => {
      throw new UserError(
        `NATS cannot be reached: ${errorText(error)}`,
        "check the URL, the token, and that a broker is running there",
      );
    },
  );
  const trouble = createTroubleReporter(handlers.onTrouble);
  try {
    const js = modules.jetstream.jetstream(nc);
    const jsm = await modules.jetstream.jetstreamManager(nc, { checkAPI: false });
    const replicas = replicasOf(nc, options.replicas);
    await ensureStream(jsm, replicas, options.streamBytes ?? DEFAULT_STREAM_BYTES);
    const coordinator = await createNatsCoordinator(modules, nc, {
      replicas,
      server,
      tell: trouble.report,
    });

    const traffic = { reports: 0, reportBytes: 0, replyBytes: 0, refused: 0 };
    const followers = new Map<string, Follower>();
    const questions = new Map<string, Subscription>();
    const presence = createPresence(nc, handlers);
    nc.subscribe(subjects.announce("*"), {
      queue: QUEUE,
      callback: (error, { subject }) => {
        const job = subject.split(".").at(-1)!;
        if (error === null && NAME.test(job)) safely(() => handlers.announced(job));
      },
    });
    let isAway = false;
    void watch(nc, {
      lost() {
        isAway = true;
        trouble.report("the connection to NATS is lost");
      },
      back() {
        isAway = false;
        trouble.clear();
        presence.renew();
      },
    });

    const bus: AgentBus = {
      traffic,
      get agents() {
        return presence.agents();
      },
      get broker() {
        return isAway ? "away" : "ok";
      },
      async follow(job) {
        if (!NAME.test(job)) throw new Error("no name of a job");
        if (followers.has(job)) return;
        const follower = followJob(js, {
          job,
          fromMs: nowMs() - replayMs,
          take: createReportIntake(job, handlers, traffic),
          onTrouble: trouble.report,
        });
        followers.set(job, follower);
        questions.set(
          job,
          nc.subscribe(subjects.askWatcher(job), {
            callback: (error, message) => {
              if (error === null) message.respond(handlers.asked(job, message.string()));
            },
          }),
        );
        await follower.started;
        // What was said longer ago than we look back, agents say again.
        nc.publish(subjects.follow(job));
      },
      async unfollow(job) {
        const follower = followers.get(job);
        followers.delete(job);
        questions.get(job)?.unsubscribe();
        questions.delete(job);
        await follower?.stop();
      },
      async ask(agent, request, timeoutMs) {
        if (!NAME.test(agent)) throw new Error("no name of an agent");
        const replies = createPendingReplies(agent);
        const inbox = modules.transport.createInbox();
        const subscription = nc.subscribe(inbox, {
          callback: (error, message) => {
            if (error !== null) replies.failAll(error.message);
            else traffic.replyBytes += receive(message, replies);
          },
        });
        try {
          return await replies.ask(request, timeoutMs, (id) => {
            const frame = encodeRequest(id, request);
            const most = Math.min(LIMITS.reportBytes, nc.info?.max_payload ?? LIMITS.reportBytes);
            if (frame.length > most) throw new Error("the request is too large");
            nc.publish(subjects.ask(agent), frame, { reply: inbox });
          });
        } finally {
          if (!nc.isClosed()) subscription.unsubscribe();
        }
      },
      async askWatcher(job, text, timeoutMs) {
        const answer = await nc.request(subjects.askWatcher(job), text, { timeout: timeoutMs });
        return answer.string();
      },
      async close() {
        presence.close();
        await Promise.all([...followers.values()].map(async (follower) => await follower.stop()));
        followers.clear();
        await coordinator.close();
        await nc.close().catch(() => undefined);
      },
    };
    return { bus, coordinator };
  } catch (error) {
    await nc.close().catch(() => undefined);
    throw error;
  }
}

/** Bytes that belonged to the answer. */
function receive({ data, headers }: Msg, replies: ReturnType<typeof createPendingReplies>): number {
  if (data.length === 0 && headers?.code === 503) {
    replies.failAll("it is not connected");
    return 0;
  }
  const frame = decodeFrame(data);
  if (frame instanceof FrameError) replies.failAll(`its answer is broken: ${frame.message}`);
  else if (frame.type === "reply" || frame.type === "part") return replies.take(frame, data.length);
  return 0;
}

async function watch(
  nc: NatsConnection,
  { lost, back }: { lost(this: void): void; back(this: void): void },
): Promise<void> {
  for await (const { type } of nc.status()) {
    if (type === "disconnect") lost();
    else if (type === "reconnect") back();
  }
}

const GONE_MS = 5 * SAY_AGAIN_MS;
const MOST_AGENTS = 65_536;

interface Presence {
  agents(): readonly AgentHello[];
  /** Nobody could be heard for a while: nobody is gone because of that. */
  renew(): void;
  close(): void;
}

/** Which agents are there: each says so every few seconds, and whoever falls silent is gone. */
function createPresence(nc: NatsConnection, handlers: AgentBusHandlers): Presence {
  const present = new Map<string, { hello: AgentHello; heardAt: number }>();
  const subscription = nc.subscribe(subjects.present("*"), {
    callback: (error, { subject, data }) => {
      if (error !== null) return;
      const frame = decodeFrame(data);
      if (frame instanceof FrameError || frame.type !== "hello") return;
      const { hello } = frame;
      if (!subject.endsWith(`.${hello.agent}`)) return;
      const before = present.get(hello.agent);
      if (before === undefined && present.size >= MOST_AGENTS) return;
      present.set(hello.agent, { hello, heardAt: performance.now() });
      if (before?.hello.boot === hello.boot) return;
      if (before !== undefined) safely(() => handlers.gone(hello.agent));
      safely(() => handlers.connected(hello));
    },
  });
  const sweep = setInterval(() => {
    if (nc.isClosed()) return;
    const now = performance.now();
    for (const [agent, { heardAt }] of present) {
      if (now - heardAt < GONE_MS) continue;
      present.delete(agent);
      safely(() => handlers.gone(agent));
    }
  }, SAY_AGAIN_MS / 2);
  sweep.unref();
  return {
    agents: () => [...present.values()].map(({ hello }) => hello),
    renew() {
      const now = performance.now();
      for (const one of present.values()) one.heardAt = now;
    },
    close() {
      clearInterval(sweep);
      if (!nc.isClosed()) subscription.unsubscribe();
    },
  };
}
