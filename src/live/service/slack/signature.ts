/** Whether a request comes from Slack: signed with the app's secret, fresh, and not seen before. */
import { createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { Refusal } from "../view.ts";

/** How old a request may be: Slack's own advice. */
const MOST_AGE_MS = 300_000;
const MOST_SEEN = 10_000;

export interface Signed {
  readonly timestamp: string;
  readonly signature: string;
}

/** Looked at before the body is read. Throws Refusal. */
export function signedOf(headers: IncomingHttpHeaders, nowMs: number): Signed {
  const timestamp = String(headers["x-slack-request-timestamp"] ?? "");
  const signature = String(headers["x-slack-signature"] ?? "");
  if (!/^\d{1,12}$/.test(timestamp) || !/^v0=[0-9a-f]{64}$/.test(signature))
    throw new Refusal(401, "the request is not signed by Slack");
  if (Math.abs(nowMs - 1000 * Number(timestamp)) > MOST_AGE_MS)
    throw new Refusal(401, "the request is more than 5 minutes old, or a clock is wrong");
  return { timestamp, signature };
}

export class SlackSignatures {
  /** Those that were right, and until when they would be taken again. */
  readonly #seen = new Map<string, number>();

  /** Throws Refusal. */
  check(secret: string, { timestamp, signature }: Signed, body: string, nowMs: number): void {
    const right = createHmac("sha256", secret).update(`v0:${timestamp}:${body}`).digest();
    if (!timingSafeEqual(right, Buffer.from(signature.slice("v0=".length), "hex")))
      throw new Refusal(401, "the signature is not Slack's: see alerts.slackApp.signingSecret");
    for (const [seen, untilMs] of this.#seen) if (untilMs < nowMs) this.#seen.delete(seen);
    if (this.#seen.has(signature)) throw new Refusal(409, "the request was answered before");
    if (this.#seen.size >= MOST_SEEN) throw new Refusal(503, "too many requests came from Slack");
    this.#seen.set(signature, 1000 * Number(timestamp) + MOST_AGE_MS);
  }
}
