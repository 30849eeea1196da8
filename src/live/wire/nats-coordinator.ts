/**
 * Who looks after a job, and what it knows, in NATS' key-value store. A lease is an entry that vanishes when it is not
 * renewed; the number that it was made with only ever grows, and goes into every document. A service that takes over
 * writes its number first, so that whoever had the lease before can no longer write, even if it does not know yet.
 */
import { errorText } from "../../base/errors.ts";
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { KV } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/transport-node";
import { NAME } from "./messages.ts";
import { JOBS, LEASES, type NatsModules } from "./nats-connect.ts";
import { type Documents, fenceDocument, readDocument, store } from "./nats-documents.ts";
import { ensureBucket } from "./nats-stream.ts";
import { type Coordinator, type Lease, LeaseLost } from "./transport.ts";

/** Short: a broker that was killed must not hold up a takeover, and all that is done is done again. */
const CALL_MS = 1000;

/** Brokers that have lost one of them need some seconds to agree on another. */
const PATIENCE_MS = 12_000;
const RETRY_MS = 250;

async function patiently<T>(attempt: () => Promise<T>): Promise<T> {
  const end = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (performance.now() > end) throw error;
      await pause(RETRY_MS);
    }
  }
}

export async function createNatsCoordinator(
  modules: NatsModules,
  nc: NatsConnection,
  options: {
    readonly replicas: number;
    readonly server: string;
    tell(this: void, line: string): void;
  },
): Promise<Coordinator> {
  const { replicas, server, tell } = options;
  // Making a bucket may take long on a cluster that has just started; calls afterwards do not.
  const jsm = await modules.jetstream.jetstreamManager(nc, { checkAPI: false });
  await ensureBucket(modules, modules.jetstream.jetstream(nc), jsm, LEASES, {
    replicas,
    ttlMs: TTL_MS,
  });
  await ensureBucket(modules, modules.jetstream.jetstream(nc), jsm, JOBS, { replicas });
  const js = modules.jetstream.jetstream(nc, { timeout: CALL_MS });
  const kvm = new modules.kv.Kvm(js);
  const leases: Leases = {
    kv: await kvm.open(LEASES, { allow_direct: false }),
    remove: async (revision) => await jsm.streams.deleteMessage(`KV_${LEASES}`, revision, false),
  };
  const jobs: KV = await kvm.open(JOBS, { allow_direct: false });
  const documents: Documents = {
    kv: jobs,
    mostBytes: () => (nc.info?.max_payload ?? 1 << 20) - 1024,
  };
  const held = new Map<string, HeldLease>();
  const claiming = new Set<string>();

  return {
    list: async () =>
      await patiently(async () => {
        const names: string[] = [];
        for await (const key of await jobs.keys()) names.push(key);
        const known = await Promise.all(
          names.map(async (job) =>
            (await readDocument(documents, job)).document === null ? null : job,
          ),
        );
        return known.filter((job) => job !== null).sort();
      }),
    async read(job) {
      if (!NAME.test(job)) throw new Error("no name of a job");
      return await patiently(async () => (await readDocument(documents, job)).document);
    },
    async claim(job) {
      if (!NAME.test(job)) throw new Error("no name of a job");
      if (held.has(job) || claiming.has(job)) return null;
      claiming.add(job);
      try {
        const got = await acquire(leases, job, `${server} ${randomUUID()}`);
        if (got === null) return null;
        const lease = holdLease(leases, documents, got, () => held.delete(job));
        held.set(job, lease);
        try {
          lease.begin(await fenceDocument(documents, job, got.fence, () => lease.isHeld));
          return lease;
        } catch (error) {
          await lease.release();
          throw error;
        }
      } catch (error) {
        // Announcements come again, and with them the next try.
        tell(`job ${job} could not be claimed: ${errorText(error)}`);
        return null;
      } finally {
        claiming.delete(job);
      }
    },
    async close() {
      await Promise.all([...held.values()].map(async (lease) => await lease.release()));
    },
  };
}

const TTL_MS = 6000;
const RENEW_MS = 2000;
/** The holder stops this long before the entry can vanish: clocks of two machines do not run alike. */
const MARGIN_MS = 1000;
/** How long one claim tries while brokers agree on a leader. */
const CLAIM_MS = 4000;

interface Leases {
  readonly kv: KV;
  /** Removes the entry with this revision, and no other. */
  remove(this: void, revision: number): Promise<unknown>;
}

interface Acquired {
  readonly job: string;
  readonly holder: string;
  /** Grows with every claim of any job. */
  readonly fence: number;
  /** performance.now() before the entry was sent: it cannot be older than that. */
  readonly since: number;
}

interface HeldLease extends Lease {
  /** The document's revision at the claim; writes are possible from here on. */
  begin(revision: number): void;
}

/**
 * null where another service has the lease. Rejects where that cannot be found out. A lease is an entry that is renewed by
 * its revision, and given up by its own clock before it can have vanished.
 *
 * Brokers up to 2.9 check an expected revision before they agree on a message, so of two at the same moment both may
 * pass; only "there must be none" is checked when the message is applied. A claim therefore always makes an entry where
 * none is, never one over another; a release removes the entry itself instead of marking it as deleted.
 */
async function acquire({ kv }: Leases, job: string, holder: string): Promise<Acquired | null> {
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

function holdLease(
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
      if (!/wrong last sequence/.test(errorText(error))) return;
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
