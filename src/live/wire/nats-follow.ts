/** One job's reports out of JetStream, in order, from some minutes ago on; brokers may come and go meanwhile. */
import { setTimeout as pause } from "node:timers/promises";
import type { ConsumerMessages, JetStreamClient, OrderedConsumerOptions } from "@nats-io/jetstream";
import { messageOf } from "./nats-connect.ts";
import { STREAM, subjects } from "./nats-subjects.ts";

export interface FollowOptions {
  readonly job: string;
  readonly fromMs: number;
  /** The next one waits for the promise; it must not reject. */
  take(this: void, subject: string, data: Uint8Array): Promise<void>;
  onTrouble(this: void, line: string): void;
}

export interface Follower {
  /** Resolves at the first consumer. */
  readonly started: Promise<void>;
  stop(): Promise<void>;
}

const RETRY_MS = 250;
/** Without a heartbeat for two of these the consumer is made again where the last one stopped. */
const HEARTBEAT_MS = 1000;
const EXPIRES_MS = 5000;
/**
 * The client makes a lost consumer again by itself, except when the connection goes with it: it then waits for ever.
 * Without any sign for so long we begin anew.
 */
const STALL_MS = 3000;
const AT_ONCE = 500;

export function followJob(js: JetStreamClient, options: FollowOptions): Follower {
  const { job, fromMs, take, onTrouble } = options;
  let isStopped = false;
  let messages: ConsumerMessages | null = null;
  /** Number in the stream of the last that was taken. */
  let last = 0;
  let isTaking = false;
  let signAt = performance.now();
  let begin = (): void => {};
  const started = new Promise<void>((resolve) => (begin = resolve));

  const place = (): Partial<OrderedConsumerOptions> =>
    last > 0
      ? { deliver_policy: "by_start_sequence", opt_start_seq: last + 1 }
      : { deliver_policy: "by_start_time", opt_start_time: new Date(fromMs).toISOString() };
  const once = async (): Promise<void> => {
    const filter = { filter_subjects: subjects.reportsOf(job) };
    const consumer = await js.consumers.get(STREAM, { ...filter, ...place() });
    messages = await consumer.consume({
      max_messages: AT_ONCE,
      expires: EXPIRES_MS,
      idle_heartbeat: HEARTBEAT_MS,
    });
    begin();
    signAt = performance.now();
    void listen(messages);
    for await (const message of messages) {
      if (isStopped) return;
      if (message.seq <= last) continue;
      isTaking = true;
      await take(message.subject, message.data);
      isTaking = false;
      signAt = performance.now();
      last = message.seq;
    }
  };
  const listen = async (at: ConsumerMessages): Promise<void> => {
    for await (const { type } of at.status()) {
      if (type === "heartbeat" || type === "next") signAt = performance.now();
    }
  };
  const watchdog = setInterval(() => {
    if (!isTaking && performance.now() - signAt > STALL_MS) messages?.stop();
  }, STALL_MS / 4);
  watchdog.unref();
  const run = async (): Promise<void> => {
    while (!isStopped) {
      try {
        await once();
      } catch (error) {
        if (!isStopped) onTrouble(`reports of job ${job}: ${messageOf(error)}`);
      }
      messages = null;
      if (!isStopped) await pause(RETRY_MS);
    }
    begin();
  };
  const running = run();

  return {
    started,
    async stop() {
      isStopped = true;
      clearInterval(watchdog);
      messages?.stop();
      // A handler that hangs must not hold up whoever stops.
      await Promise.race([running, pause(1000, undefined, { ref: false })]);
    },
  };
}
