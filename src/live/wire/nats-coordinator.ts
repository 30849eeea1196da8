/**
 * Who looks after a job, and what it knows, in NATS' key-value store. A lease is an entry that vanishes when it is not
 * renewed; the number that it was made with only ever grows, and goes into every document. A service that takes over
 * writes its number first, so that whoever had the lease before can no longer write, even if it does not know yet.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { KV } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/transport-node";
import { NAME } from "./messages.ts";
import { messageOf } from "./nats-connect.ts";
import { fenceDocument, readDocument, type Documents } from "./nats-documents.ts";
import { acquire, holdLease, type HeldLease, type Leases, TTL_MS } from "./nats-lease.ts";
import type { NatsModules } from "./nats-modules.ts";
import { ensureBucket } from "./nats-stream.ts";
import { JOBS, LEASES } from "./nats-subjects.ts";
import type { Coordinator } from "./transport.ts";

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
        tell(`job ${job} could not be claimed: ${messageOf(error)}`);
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
