/** Streams and buckets: made where they are missing, spread over more brokers where there are more now than then. */
import { setTimeout as pause } from "node:timers/promises";
import type { JetStreamClient, JetStreamManager, StreamConfig } from "@nats-io/jetstream";
import type { KV } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/transport-node";
import { errorText, UserError } from "../../base/errors.ts";
import { type NatsModules, STREAM, subjects } from "./nats-connect.ts";

const NANOS = 1_000_000;
const MAX_AGE_MS = 30 * 60_000;
/** An agent that lost an acknowledgement publishes again within this; later ones are known by their number. */
const DUPLICATE_WINDOW_MS = 5 * 60_000;
const MOST_REPLICAS = 3;
/** A cluster that has just been started, or has just lost a broker, needs some seconds to agree. */
const PATIENCE_MS = 20_000;
const RETRY_MS = 250;

export const DEFAULT_STREAM_BYTES = 2 ** 30;

/** Rejects with UserError where JetStream does not answer in time. */
export async function ensureStream(
  jsm: JetStreamManager,
  replicas: number,
  maxBytes: number,
): Promise<void> {
  await patiently(async () => {
    if (await spread(jsm, STREAM, replicas)) return;
    await jsm.streams.add({
      name: STREAM,
      subjects: [subjects.allReports],
      storage: "file",
      discard: "old",
      max_age: MAX_AGE_MS * NANOS,
      max_bytes: maxBytes,
      duplicate_window: DUPLICATE_WINDOW_MS * NANOS,
      num_replicas: replicas,
    } satisfies Partial<StreamConfig> & { name: string });
  });
}

/** Reads go to the leader, never to a replica that lags behind: a lease must not be judged by what was. */
export async function ensureBucket(
  { kv }: NatsModules,
  js: JetStreamClient,
  jsm: JetStreamManager,
  name: string,
  options: { readonly replicas: number; readonly ttlMs?: number },
): Promise<KV> {
  const { replicas, ttlMs } = options;
  return await patiently(async () => {
    await spread(jsm, `KV_${name}`, replicas);
    return await new kv.Kvm(js).create(name, {
      replicas,
      history: 1,
      storage: "file",
      allow_direct: false,
      ...(ttlMs === undefined ? {} : { ttl: ttlMs }),
    });
  });
}

/** As many as there can be: a broker that belongs to no cluster keeps one. */
export function replicasOf(nc: NatsConnection, wanted: number | undefined): number {
  if (wanted !== undefined) return wanted;
  if (nc.info?.cluster === undefined) return 1;
  return Math.min(MOST_REPLICAS, Math.max(1, nc.info.connect_urls?.length ?? 1));
}

/** Whether the stream is there; with more replicas than before where there can be. */
async function spread(jsm: JetStreamManager, name: string, replicas: number): Promise<boolean> {
  let now: number;
  try {
    now = (await jsm.streams.info(name)).config.num_replicas;
  } catch (error) {
    if (errorText(error) === "stream not found") return false;
    throw error;
  }
  // Failing is no harm: it is as safe as it was.
  if (now < replicas) await jsm.streams.update(name, { num_replicas: replicas }).catch(() => null);
  return true;
}

async function patiently<T>(attempt: () => Promise<T>): Promise<T> {
  const end = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (performance.now() > end) {
        throw new UserError(
          `NATS JetStream cannot be used: ${errorText(error)}`,
          "is JetStream switched on, and are enough brokers there?",
        );
      }
      await pause(RETRY_MS);
    }
  }
}
