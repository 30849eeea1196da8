/** Webhooks and Slack: one message for each state, in order, one at a time, tried again with growing pauses. */
import { errorText } from "../../../base/errors.ts";
import { harmless } from "../../../base/text.ts";
import type { Incident } from "../../../model/incident.ts";
import { backoffMs, channelKey, type Channel, type ChannelMeans } from "./channel.ts";
import type { ChannelMark, LedgerEntry } from "./ledger.ts";
import { originOf, post } from "./post.ts";
import type { Told } from "./alert-text.ts";

/** Messages that wait for one receiver. */
const MOST_WAITING = 100;

export interface NotifierOptions {
  readonly kind: "webhook" | "slack";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  bodyOf(this: void, incident: Incident, told: Told): string;
}

interface Message {
  readonly mark: ChannelMark;
  readonly incident: string;
  readonly order: number;
  /** The same whoever sends it and however often: receivers tell repetitions by it. */
  readonly delivery: string;
  readonly told: Told;
  readonly body: string;
  failures: number;
  silences: number;
}

export function makeNotifier(options: NotifierOptions, means: ChannelMeans): Channel {
  const { kind, url, headers } = options;
  const { env, timings, ledger, counters } = means;
  const key = channelKey(kind, url);
  const where = `${kind} ${originOf(url)}`;
  // Only who can tell a repetition is asked again after a silence.
  const mostSilences = kind === "webhook" ? timings.silentTries : 1;
  const queue: Message[] = [];
  let isClosed = false;
  let isWorking = false;
  let working: Promise<void> = Promise.resolve();
  let wake: (() => void) | null = null;

  function tell(entry: LedgerEntry, incident: Incident): void {
    const mark = markFor(entry);
    const { order } = entry;
    if (isClosed || mark === null || mark.upTo >= order) return;
    if (queue.some((message) => message.incident === entry.id && message.order === order)) return;
    if (mark.sending === order && kind === "slack") {
      env.log(
        `${where}: the service restarted while a message was being sent; it is not sent again`,
      );
      mark.upTo = order;
      mark.sending = null;
      return;
    }
    if (queue.length >= MOST_WAITING) dropOldest();
    const told = order % 2 === 1 ? "resolved" : order === 0 ? "confirmed" : "relapsed";
    queue.push({
      mark,
      incident: entry.id,
      order,
      delivery: `${entry.labels["incident"] ?? ""}-${told}-${Math.floor(order / 2)}`,
      told,
      body: options.bodyOf(incident, told),
      failures: 0,
      silences: 0,
    });
    if (!isWorking) working = work();
  }

  /** A receiver that was configured later hears of what is open, not of what was over before. */
  function markFor(entry: LedgerEntry): ChannelMark | null {
    if (!entry.channels[key] && !entry.isOpen) return null;
    return (entry.channels[key] ??= { upTo: -1, sending: null });
  }

  async function work(): Promise<void> {
    isWorking = true;
    try {
      await sendAll();
    } catch (error) {
      // Nothing here throws; if it does, the next message starts again.
      env.log(`${where}: ${harmless(errorText(error))}`);
    } finally {
      isWorking = false;
    }
  }

  async function sendAll(): Promise<void> {
    for (let message = queue[0]; message && !isClosed; message = queue[0]) {
      message.mark.sending = message.order;
      if ((await ledger.save()) === "lost") {
        queue.length = 0;
        return;
      }
      if (isClosed) {
        // Nothing has left yet: the next start may send it.
        message.mark.sending = null;
        return;
      }
      await attempt(message);
    }
  }

  async function attempt(message: Message): Promise<void> {
    const { mark, body, delivery, told } = message;
    const own = { "x-faultline-delivery": header(delivery), "x-faultline-event": told };
    const all = { ...headers, ...own };
    const result = await post(env.fetch, url, body, all, timings.requestMs, means.closing);
    if (result.ok) {
      counters.sent++;
      await settle(message);
      return;
    }
    if (means.closing.aborted) return;
    counters.failures++;
    message.failures++;
    if (result.how === "silent") message.silences++;
    const isEnd =
      result.how === "never" ||
      message.failures >= timings.tries ||
      message.silences >= mostSilences;
    if (isEnd) {
      env.log(`${where} ${result.why}; the message about ${message.incident} is dropped`);
      await settle(message);
      return;
    }
    if (message.failures === 1) env.log(`${where} ${result.why}; trying again`);
    if (result.how !== "silent") mark.sending = null;
    await ledger.save();
    await pause(Math.max(result.pauseMs, backoffMs(timings, message.failures)));
  }

  async function settle(message: Message): Promise<void> {
    message.mark.upTo = Math.max(message.mark.upTo, message.order);
    message.mark.sending = null;
    const at = queue.indexOf(message);
    if (at >= 0) queue.splice(at, 1);
    await ledger.save();
  }

  /** The first may be on its way. */
  function dropOldest(): void {
    const [dropped] = queue.splice(1, 1);
    if (!dropped) return;
    dropped.mark.upTo = Math.max(dropped.mark.upTo, dropped.order);
    counters.failures++;
    env.log(
      `${where}: too many messages are waiting; the one about ${dropped.incident} is dropped`,
    );
  }

  async function pause(ms: number): Promise<void> {
    if (isClosed) return;
    await new Promise<void>((resolve) => {
      const cancel = env.setTimer(ms, resolve);
      wake = () => {
        cancel();
        resolve();
      };
    });
    wake = null;
  }

  return {
    key,
    get pending() {
      return queue.length;
    },
    tell,
    async close() {
      isClosed = true;
      wake?.();
      await working;
    },
  };
}

/** Ids are made by the service, but a header that throws would stop all messages behind it. */
function header(text: string): string {
  return text.replace(/[^\x21-\x7e]/g, "_").slice(0, 256);
}
