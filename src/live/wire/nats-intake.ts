/** What lies in the stream, checked and handed over: nobody stands for its sender but the subject it came by. */
import { errorText } from "../../base/errors.ts";
import { setTimeout as pause } from "node:timers/promises";
import type { ConsumerMessages, JetStreamClient, OrderedConsumerOptions } from "@nats-io/jetstream";
import { decodeFrame, FrameError, type PartFrame, type ReportFrame } from "./codec.ts";
import { LIMITS, type Report } from "./messages.ts";
import { STREAM, subjects } from "./nats-connect.ts";
import type { AgentBusHandlers } from "./transport.ts";
import { createTroubleReporterByKey } from "./trouble.ts";

interface Parts {
  readonly id: number;
  readonly list: Uint8Array[];
  bytes: number;
}

const MOST_TRIES = 3;
const RETRY_MS = 100;
const MOST_SENDERS = 20_000;

/**
 * For one job: each (agent, boot, sequence) is handed over once, in ascending order of the sequence, whatever the
 * stream holds twice. Never rejects.
 */
export function createReportIntake(
  job: string,
  handlers: AgentBusHandlers,
  traffic: { reports: number; reportBytes: number; refused: number },
): (subject: string, data: Uint8Array) => Promise<void> {
  const taken = new Map<string, number>();
  const halves = new Map<string, Parts>();
  const tellOf = createTroubleReporterByKey(handlers.onTrouble);

  const refuse = (agent: string, why: string): void => {
    traffic.refused++;
    tellOf(agent, `agent ${agent}: a report was refused: ${why}`);
  };
  const hand = async (agent: string, { from, sequence, report }: ReportFrame): Promise<void> => {
    if (from?.agent !== agent) return refuse(agent, "it was sent under another name");
    if (report === null) return refuse(agent, "it is of a kind that this service does not know");
    if (!isOf(job, report)) return refuse(agent, "it was sent under another job");
    const sender = `${agent} ${from.boot}`;
    if (sequence <= (taken.get(sender) ?? 0)) return;
    if (taken.size > MOST_SENDERS) taken.clear();
    taken.set(sender, sequence);
    for (let tries = 1; ; tries++) {
      try {
        await handlers.report(from, report);
        return;
      } catch (error) {
        if (tries >= MOST_TRIES) return refuse(agent, errorText(error));
        await pause(RETRY_MS);
      }
    }
  };
  /** Parts of one report lie one after the other: another beginning ends what was there before. */
  const join = (agent: string, { id, index, parts, bytes }: PartFrame): Uint8Array | null => {
    let half = halves.get(agent);
    if (index === 0) {
      half = { id, list: [], bytes: 0 };
      halves.set(agent, half);
    }
    if (half === undefined || half.id !== id) return null;
    // Told twice, or its beginning lies before what we follow.
    if (half.list.length !== index) return null;
    half.list.push(new Uint8Array(bytes));
    half.bytes += bytes.length;
    if (half.list.length < parts && half.bytes <= LIMITS.reportBytes) return null;
    halves.delete(agent);
    return Buffer.concat(half.list);
  };

  return async (subject, data) => {
    const agent = subject.split(".").at(-1) ?? "";
    traffic.reportBytes += data.length;
    let frame = decodeFrame(data);
    if (!(frame instanceof FrameError) && frame.type === "part") {
      const whole = join(agent, frame);
      if (whole === null) return;
      frame = decodeFrame(whole);
    }
    traffic.reports++;
    if (frame instanceof FrameError) refuse(agent, frame.message);
    else if (frame.type !== "report") refuse(agent, "it is not a report");
    else await hand(agent, frame);
  };
}

function isOf(job: string, report: Report): boolean {
  if (report.kind === "beat") return report.jobs.every((one) => one.job === job);
  return report.job === job;
}

interface FollowOptions {
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

const FOLLOW_RETRY_MS = 250;
/** Without a heartbeat for two of these the consumer is made again where the last one stopped. */
const HEARTBEAT_MS = 1000;
const EXPIRES_MS = 5000;
/**
 * The client makes a lost consumer again by itself, except when the connection goes with it: it then waits for ever.
 * Without any sign for so long we begin anew.
 */
const STALL_MS = 3000;
const AT_ONCE = 500;

/** One job's reports out of JetStream, in order, from some minutes ago on; brokers may come and go meanwhile. */
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
        if (!isStopped) onTrouble(`reports of job ${job}: ${errorText(error)}`);
      }
      messages = null;
      if (!isStopped) await pause(FOLLOW_RETRY_MS);
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
