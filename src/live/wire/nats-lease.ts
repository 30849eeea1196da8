/**
 * One lease: an entry that is renewed by its revision, and given up by its own clock before it can have vanished.
 *
 * Brokers up to 2.9 check an expected revision before they agree on a message, so of two at the same moment both may
 * pass; only "there must be none" is checked when the message is applied. A claim therefore always makes an entry where
 * none is, never one over another; a release removes the entry itself instead of marking it as deleted.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { KV } from "@nats-io/kv";
import { messageOf } from "./nats-connect.ts";
import { type Documents, store } from "./nats-documents.ts";
import { type Lease, LeaseLost } from "./transport.ts";

export const TTL_MS = 6000;
const RENEW_MS = 2000;
const RETRY_MS = 250;
/** The holder stops this long before the entry can vanish: clocks of two machines do not run alike. */
const MARGIN_MS = 1000;
/** How long one claim tries while brokers agree on a leader. */
const CLAIM_MS = 4000;

export interface Leases {
  readonly kv: KV;
  /** Removes the entry with this revision, and no other. */
  remove(this: void, revision: number): Promise<unknown>;
}

export interface Acquired {
  readonly job: string;
  readonly holder: string;
  /** Grows with every claim of any job. */
  readonly fence: number;
  /** performance.now() before the entry was sent: it cannot be older than that. */
  readonly since: number;
}

export interface HeldLease extends Lease {
  /** The document's revision at the claim; writes are possible from here on. */
  begin(revision: number): void;
}

/** null where another has it. Rejects where that cannot be found out. */
export async function acquire(
  { kv }: Leases,
  job: string,
  holder: string,
): Promise<Acquired | null> {
  const end = performance.now() + CLAIM_MS;
  const firstAt = performance.now();
  for (;;) {
    const since = performance.now();
    try {
      const fence = await kv.put(job, holder, { previousSeq: 0 });
      return { job, holder, fence, since };
    } catch (error) {
      try {
        const entry = await kv.get(job);
        if (entry !== null) {
          // One of our tries went through unseen: the entry may be as old as the first.
          return entry.string() === holder
            ? { job, holder, fence: entry.revision, since: firstAt }
            : null;
        }
      } catch {
        // No leader yet.
      }
      if (performance.now() > end) throw error;
      await pause(RETRY_MS);
    }
  }
}

export function holdLease(
  { kv, remove }: Leases,
  documents: Documents,
  { job, holder, fence, since }: Acquired,
  ended: () => void,
): HeldLease {
  const listeners: (() => void)[] = [];
  let state: "held" | "lost" | "released" = "held";
  let revision = fence;
  let validUntil = since + TTL_MS - MARGIN_MS;
  let documentRevision: number | undefined;
  let writes = 0;
  /** Writes one after the other. */
  let line: Promise<unknown> = Promise.resolve();

  const lose = (): void => {
    if (state !== "held") return;
    state = "lost";
    stop();
    ended();
    for (const listener of listeners) listener();
  };
  const isHeld = (): boolean => {
    if (state === "held" && performance.now() >= validUntil) lose();
    return state === "held";
  };
  const renew = async (): Promise<void> => {
    const sentAt = performance.now();
    try {
      revision = await kv.update(job, holder, revision);
      // Only what was acknowledged in time was certainly done before the entry could vanish.
      if (isHeld()) validUntil = sentAt + TTL_MS - MARGIN_MS;
    } catch (error) {
      if (!/wrong last sequence/.test(messageOf(error))) return;
      await recognize();
    }
  };
  /** An update of ours went through, and only its acknowledgement was lost; or the lease is another's. */
  const recognize = async (): Promise<void> => {
    const entry = await kv.get(job).catch(() => undefined);
    if (entry === undefined) return;
    if (entry?.string() === holder) revision = entry.revision;
    else lose();
  };

  let renewing: NodeJS.Timeout | undefined;
  let renewal: Promise<void> = Promise.resolve();
  const schedule = (ms: number): void => {
    renewing = setTimeout(() => {
      const before = validUntil;
      renewal = renew().then(() => {
        if (state === "held") schedule(validUntil > before ? RENEW_MS : RETRY_MS);
      });
    }, ms);
  };
  /** Notices in time that renewing has not worked, also when a call hangs. */
  const watching = setInterval(isHeld, RETRY_MS);
  const stop = (): void => {
    clearTimeout(renewing);
    clearInterval(watching);
  };
  // Claiming may have taken most of the time that the entry has.
  schedule(Math.max(0, Math.min(RENEW_MS, (validUntil - performance.now()) / 3)));

  return {
    job,
    begin(at) {
      documentRevision = at;
    },
    get isHeld() {
      return isHeld();
    },
    onLost(listener) {
      if (state === "lost") listener();
      else listeners.push(listener);
    },
    async write(document) {
      const write = ++writes;
      const mine = line.then(async () => {
        const mark = { fence, write };
        try {
          documentRevision = await store(
            documents,
            job,
            mark,
            isHeld,
            () => document,
            documentRevision,
          );
        } catch (error) {
          documentRevision = undefined;
          if (error instanceof LeaseLost) lose();
          throw error;
        }
      });
      line = mine.catch(() => undefined);
      await mine;
    },
    async release() {
      if (state !== "held") return;
      await line;
      if (state !== "held") return;
      state = "released";
      stop();
      ended();
      // The entry can only be removed by the revision that it has.
      await renewal;
      // Where it fails the entry vanishes by itself.
      await remove(revision).catch(() => undefined);
    },
  };
}
