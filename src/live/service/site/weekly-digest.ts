/** The week in figures, sent to the webhooks and Slack channels that alerts go to, on a day and hour of the week. */
import type { History } from "../../../history/history.ts";
import { digestMarkdown, digestText } from "../../../report/digest-words.ts";
import type { Digest } from "../../../model/digest.ts";
import { headersOf } from "../alerts/alerts.ts";
import { originOf, post } from "../alerts/post.ts";
import { type AlertsConfig, type DigestTime, type Fetch, TIMINGS } from "../alerts/types.ts";
import { slackEscaped } from "../slack/message.ts";

export interface WeeklyDigestOptions {
  alerts(this: void): AlertsConfig;
  digest(this: void, fromMs: number, toMs: number): Promise<Digest>;
  /** Rejects where it is away. */
  readonly history: Pick<History, "document" | "putDocument">;
  pause(this: void, ms: number): Promise<void>;
  nowMs(this: void): number;
  newId(this: void): string;
  readonly fetch: Fetch;
  log(this: void, line: string): void;
}

const KEY = "site/digest-sent";
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const WEEK_MS = 7 * DAY_MS;
/** A service that was away for longer leaves it out. */
const LATE_MS = DAY_MS;
/** Of services that share a history the last to write sends. */
const OTHERS_MS = 5000;
const TRIES = 3;
const TRY_AGAIN_MS = 30_000;

export class WeeklyDigest {
  readonly #options: WeeklyDigestOptions;
  #isBusy = false;

  constructor(options: WeeklyDigestOptions) {
    this.#options = options;
  }

  /** Sends it where it is due. Never rejects. */
  async look(): Promise<void> {
    const { alerts, nowMs, log } = this.#options;
    const { digest: when = null } = alerts();
    if (when === null || this.#isBusy) return;
    this.#isBusy = true;
    try {
      const dueMs = lastDue(when, nowMs());
      if (await this.#isOurs(dueMs)) await this.#send(dueMs);
    } catch {
      log("the weekly digest could not be made: the history is away");
    } finally {
      this.#isBusy = false;
    }
  }

  /** Written down before it is sent: rather not at all than twice. */
  async #isOurs(dueMs: number): Promise<boolean> {
    const { history, newId, pause, nowMs } = this.#options;
    const { dueMs: sentMs } = ((await history.document(KEY)) ?? {}) as { dueMs?: unknown };
    if (typeof sentMs === "number" && sentMs >= dueMs) return false;
    const id = newId();
    await history.putDocument(KEY, { dueMs, id });
    // The first week of a new service is not over yet.
    if (typeof sentMs !== "number" || nowMs() - dueMs > LATE_MS) return false;
    await pause(OTHERS_MS);
    return ((await history.document(KEY)) as { id?: unknown } | null)?.id === id;
  }

  async #send(dueMs: number): Promise<void> {
    const { alerts, digest } = this.#options;
    const { webhooks, slack, externalUrl = null } = alerts();
    // Also where it is sent late: what came since is in the next one.
    const found = await digest(dueMs - WEEK_MS, dueMs);
    const url = externalUrl === null ? null : `${externalUrl.replace(/\/+$/, "")}/#/site`;
    const body = JSON.stringify({
      event: "digest",
      url,
      digest: found,
      markdown: digestMarkdown(found),
    });
    const text = digestText(found);
    const message = {
      text: slackEscaped(url === null ? text : `${text}\n${url}`),
      mrkdwn: false,
    };
    // The same in each try: a receiver can tell a repetition by it.
    const delivery = `digest-${new Date(dueMs).toISOString()}`;
    await Promise.all([
      ...webhooks.map((target) =>
        this.#post(target.url, body, { ...headersOf(target), "x-faultline-delivery": delivery }),
      ),
      ...slack.map((target) => this.#post(target.url, JSON.stringify(message), {})),
    ]);
  }

  async #post(url: string, body: string, headers: Record<string, string>): Promise<void> {
    const { fetch, log, pause } = this.#options;
    const all = { ...headers, "x-faultline-event": "digest" };
    for (let tries = 1; ; tries++) {
      const result = await post(fetch, url, body, all, TIMINGS.requestMs);
      if (result.ok) return;
      if (result.how !== "again" || tries === TRIES) {
        log(`the weekly digest: ${originOf(url)} ${result.why}`);
        return;
      }
      await pause(Math.max(result.pauseMs, TRY_AGAIN_MS));
    }
  }
}

/** The last such hour of a week that has begun. */
export function lastDue({ day, hour }: DigestTime, nowMs: number): number {
  const midnightMs = Math.floor(nowMs / DAY_MS) * DAY_MS;
  const daysAgo = (new Date(midnightMs).getUTCDay() - day + 7) % 7;
  const dueMs = midnightMs - daysAgo * DAY_MS + hour * HOUR_MS;
  return dueMs <= nowMs ? dueMs : dueMs - WEEK_MS;
}
