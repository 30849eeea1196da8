/**
 * The agent's end over NATS: reports go into JetStream one after the other, so that they lie there in order; one counts
 * as taken when JetStream has it. Requests come by request and reply.
 */
import { errorText } from "../../base/errors.ts";
import { setTimeout as pause } from "node:timers/promises";
import type { JetStreamClient } from "@nats-io/jetstream";
import type { Msg, NatsConnection } from "@nats-io/transport-node";
import { createAnswerer } from "./answer.ts";
import { decodeFrame, encodeHello, encodeParts, encodeReply, FrameError } from "./codec.ts";
import type { Report } from "./messages.ts";
import { createNatsJobs } from "./nats-agent-jobs.ts";
import { loadNats, SAY_AGAIN_MS, subjects, connectNats, natsAddress } from "./nats-connect.ts";
import { createOutbox, type OutboxEntry } from "./outbox.ts";
import type { AgentLink, AgentLinkOptions } from "./transport.ts";
import { createTroubleReporter, safely } from "./trouble.ts";

const PUBLISH_MS = 2000;
const CLOSING_MS = 1000;
const FIRST_RETRY_MS = 100;
const LONGEST_RETRY_MS = 2000;
const FIRST_CONNECT_MS = 500;
const LONGEST_CONNECT_MS = 15_000;
/** What was said so shortly before lies in the stream, where whoever begins with the job finds it. */
const INTRODUCE_MS = 1000;

/** Throws UserError where the URL is none; afterwards nothing throws. */
export function openNatsLink(options: AgentLinkOptions): AgentLink {
  const address = natsAddress(options.url);
  const { hello } = options;
  const outbox = createOutbox(options.bufferBytes, hello);
  const trouble = createTroubleReporter(options.onTrouble);
  const answer = createAnswerer(options.answer);
  const ending = new AbortController();
  let connection: NatsConnection | null = null;
  let js: JetStreamClient | null = null;
  let isUp = false;
  let isPumping = false;
  let introducedAt = -Infinity;

  const wait = async (ms: number): Promise<void> => {
    await pause(ms, undefined, { signal: ending.signal }).catch(() => undefined);
  };
  const respond = async (nc: NatsConnection, { data, reply }: Msg): Promise<void> => {
    if (reply === undefined || reply === "") return;
    const frame = decodeFrame(data);
    if (frame instanceof FrameError || frame.type !== "request") {
      nc.publish(reply, encodeReply(0, { kind: "refused", why: "the request cannot be read" }));
      return;
    }
    for (const part of await answer(frame.id, frame.request)) {
      nc.publish(reply, part);
      // Reports get through between the parts of a long answer.
      if (part.length > 1 << 16) await nc.flush();
    }
  };
  const jobs = createNatsJobs((nc, message) => {
    respond(nc, message).catch((error: unknown) =>
      trouble.report(`an answer was not sent: ${errorText(error)}`),
    );
  });

  const publish = async (entry: OutboxEntry): Promise<void> => {
    if (entry.bytes === null) return;
    const parts = encodeParts(entry.sequence, entry.bytes);
    const subject = subjects.report(entry.job, hello.agent);
    const id = `${hello.agent}-${hello.boot}-${entry.sequence}`;
    let retryMs = FIRST_RETRY_MS;
    for (let i = 0; i < parts.length && entry.bytes !== null && !ending.signal.aborted;) {
      try {
        if (js === null) throw new Error("not connected");
        const msgID = parts.length === 1 ? id : `${id}-${i}`;
        await js.publish(subject, parts[i], { msgID, timeout: PUBLISH_MS, retries: 0 });
        i++;
        retryMs = FIRST_RETRY_MS;
      } catch (error) {
        if (isUp) trouble.report(`JetStream accepts no reports: ${errorText(error)}`);
        await wait(retryMs * (0.5 + Math.random() / 2));
        retryMs = Math.min(2 * retryMs, LONGEST_RETRY_MS);
      }
    }
    if (ending.signal.aborted) return;
    if (entry.bytes !== null) trouble.clear();
    outbox.taken(entry);
  };
  const pump = async (): Promise<void> => {
    if (isPumping) return;
    isPumping = true;
    while (!ending.signal.aborted) {
      const entry = outbox.next();
      if (entry === null) break;
      await publish(entry);
    }
    isPumping = false;
  };

  const arrive = (): void => {
    isUp = true;
    trouble.clear();
    say();
    introducedAt = performance.now();
    safely(options.onConnected);
  };
  const say = (): void => {
    if (!isUp || connection === null) return;
    connection.publish(subjects.present(hello.agent), encodeHello(hello));
    for (const job of jobs.names()) connection.publish(subjects.announce(job));
  };
  const saying = setInterval(() => safely(say), SAY_AGAIN_MS);

  const serve = async (nc: NatsConnection): Promise<void> => {
    nc.subscribe(subjects.ask(hello.agent), {
      callback: (error, message) => {
        if (error === null) jobs.respond(nc, message);
      },
    });
    nc.subscribe(subjects.follow("*"), {
      callback: (error, { subject }) => {
        if (error !== null || !jobs.has(subject.split(".").at(-1)!)) return;
        if (performance.now() - introducedAt < INTRODUCE_MS) return;
        introducedAt = performance.now();
        safely(options.onConnected);
      },
    });
    jobs.attach(nc);
    arrive();
    for await (const { type } of nc.status()) {
      if (type === "disconnect") {
        isUp = false;
        trouble.report("the connection to NATS is lost");
      } else if (type === "reconnect") arrive();
    }
  };
  const run = async (): Promise<void> => {
    const modules = await loadNats();
    for (let attempt = 0; !ending.signal.aborted; attempt++) {
      try {
        const ca = options.ca;
        const nc = await connectNats(modules, address, {
          token: options.token,
          ca,
          name: hello.agent,
        });
        connection = nc;
        if (ending.signal.aborted) break;
        js = modules.jetstream.jetstream(nc);
        attempt = 0;
        await serve(nc);
      } catch (error) {
        trouble.report(`NATS cannot be reached: ${errorText(error)}`);
      }
      isUp = false;
      js = null;
      jobs.detach();
      const longest = Math.min(LONGEST_CONNECT_MS, FIRST_CONNECT_MS * 2 ** Math.min(attempt, 10));
      await wait(longest * (0.5 + Math.random() / 2));
    }
  };
  const running = run().catch((error: unknown) => trouble.report(errorText(error)));

  const push = (report: Report, job: string): void => {
    const why = outbox.push(report, job);
    if (why !== null) trouble.report(`a report was not sent: ${why}`);
  };
  return {
    get isConnected() {
      return isUp;
    },
    get dropped() {
      return { ...outbox.dropped };
    },
    get bufferedBytes() {
      return outbox.bytes;
    },
    send(report) {
      if (ending.signal.aborted) return;
      safely(() => jobs.note(report));
      // Whoever follows a job hears of that job only.
      if (report.kind === "beat") {
        for (const one of report.jobs) push({ ...report, jobs: [one] }, one.job);
      } else push(report, report.job);
      void pump();
    },
    async flush(withinMs) {
      await outbox.emptied(withinMs);
    },
    async close() {
      if (ending.signal.aborted) return;
      ending.abort();
      clearInterval(saying);
      outbox.close();
      await connection?.close().catch(() => undefined);
      // The one wait that nothing can end early is for a broker that is being dialled.
      await Promise.race([running, pause(CLOSING_MS, undefined, { ref: false })]);
    },
  };
}
