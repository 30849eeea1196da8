/**
 * What people have acknowledged or muted is silenced in Alertmanager, which repeats alerts by rules of its own. A silence
 * is made for a few minutes and renewed for as long as it is wanted: a service that goes away silences nothing for good.
 */
import { parseFields } from "../../../base/json.ts";
import { harmless } from "../../../base/text.ts";
import type { ChannelMeans } from "./channel.ts";
import type { LedgerEntry } from "./ledger.ts";
import { MOST_ANSWER_BYTES, post } from "./post.ts";
import type { Hush } from "./types.ts";

export interface Silences {
  /** Makes or renews the silence of an alert, or ends it where none is wanted. Never rejects. */
  keep(entry: LedgerEntry, hush: Hush | null, forMs: number): Promise<void>;
  has(id: string): boolean;
}

export function makeSilences(base: string, where: string, means: ChannelMeans): Silences {
  const { env, timings, closing } = means;
  /** By incident: Alertmanager's id, and the beginning, for another one would be another silence. */
  const made = new Map<string, { readonly id: string; readonly startsMs: number }>();

  async function make(entry: LedgerEntry, hush: Hush, forMs: number): Promise<void> {
    const known = made.get(entry.id);
    const nowMs = env.nowMs();
    const startsMs = known?.startsMs ?? nowMs;
    const body = JSON.stringify({
      ...(known ? { id: known.id } : {}),
      matchers: [
        { name: "incident", value: entry.labels["incident"] ?? "", isRegex: false, isEqual: true },
      ],
      startsAt: new Date(startsMs).toISOString(),
      endsAt: new Date(nowMs + forMs).toISOString(),
      createdBy: `faultline: ${harmless(hush.who)}`,
      comment: `${hush.how}${hush.why === "" ? "" : `: ${harmless(hush.why)}`}`,
    });
    const result = await post(
      env.fetch,
      `${base}/api/v2/silences`,
      body,
      {},
      timings.requestMs,
      closing,
    );
    const id = result.ok ? idOf(result.answer) : null;
    if (id !== null) made.set(entry.id, { id, startsMs });
    else if (!result.ok) {
      env.log(`${where} ${result.why}; ${entry.id} is not silenced there`);
      // An id that it has forgotten must not stand in the way of a new silence.
      made.delete(entry.id);
    }
  }

  async function end(entry: LedgerEntry): Promise<void> {
    const known = made.get(entry.id);
    if (!known) return;
    made.delete(entry.id);
    try {
      const path = `${base}/api/v2/silence/${encodeURIComponent(known.id)}`;
      const signal = AbortSignal.any([AbortSignal.timeout(timings.requestMs), closing]);
      await env.fetch(path, { method: "DELETE", redirect: "manual", signal });
    } catch {
      // It ends by itself within minutes.
    }
  }

  return {
    has: (id) => made.has(id),
    keep: (entry, hush, forMs) => (hush === null ? end(entry) : make(entry, hush, forMs)),
  };
}

function idOf(answer: string): string | null {
  const { silenceID } = parseFields(answer.slice(0, MOST_ANSWER_BYTES)) ?? {};
  return typeof silenceID === "string" && silenceID.length < 200 ? silenceID : null;
}
