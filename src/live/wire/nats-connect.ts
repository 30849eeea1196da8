/** A connection to a NATS cluster that comes back by itself. */
import type * as JetStream from "@nats-io/jetstream";
import type * as KeyValue from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/transport-node";
import type * as Transport from "@nats-io/transport-node";
import { UserError } from "../../base/errors.ts";

export interface NatsAddress {
  readonly servers: readonly string[];
  readonly isSecure: boolean;
  readonly user: string | null;
  readonly password: string | null;
}

/** nats://host:port, several with commas; tls:// for TLS. Throws UserError. */
export function natsAddress(text: string): NatsAddress {
  const servers: string[] = [];
  let isSecure = false;
  let user: string | null = null;
  let password: string | null = null;
  for (const part of text.split(",")) {
    const full = part.includes("://") ? part.trim() : `nats://${part.trim()}`;
    let url: URL;
    try {
      url = new URL(full);
    } catch {
      throw badUrl();
    }
    if ((url.protocol !== "nats:" && url.protocol !== "tls:") || url.hostname === "")
      throw badUrl();
    if (url.protocol === "tls:") isSecure = true;
    if (url.username !== "") user = decodeURIComponent(url.username);
    if (url.password !== "") password = decodeURIComponent(url.password);
    servers.push(`${url.hostname}:${url.port === "" ? "4222" : url.port}`);
  }
  return { servers, isSecure, user, password };
}

// The URL itself is not repeated: it may hold a password.
function badUrl(): UserError {
  return new UserError(
    "the URL of the NATS cluster cannot be read",
    "give it as nats://host:port, several brokers with commas, tls:// for TLS",
    2,
  );
}

/** Rejects where no broker is there. Afterwards it reconnects for ever, quickly: other brokers are there. */
export async function connectNats(
  { transport }: NatsModules,
  { servers, isSecure, user, password }: NatsAddress,
  {
    token,
    ca,
    name,
  }: { readonly token: string | null; readonly ca: string | null; readonly name: string },
): Promise<NatsConnection> {
  const options = {
    servers: [...servers],
    name,
    timeout: 3000,
    ...(token === null ? {} : { token }),
    ...(user === null ? {} : { user }),
    ...(password === null ? {} : { pass: password }),
    ...(isSecure || ca !== null ? { tls: ca === null ? {} : { ca } } : {}),
  };
  // A first connection to a cluster that refuses us would never end: each broker names the others as worth a try.
  const trial = await transport.connect({
    ...options,
    ignoreClusterUpdates: true,
    reconnect: false,
  });
  await trial.close();
  return await transport.connect({
    ...options,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    reconnectJitter: 250,
    ignoreAuthErrorAbort: true,
    // A broker that stands still is left within some 9 seconds.
    pingInterval: 3000,
    maxPingOut: 2,
  });
}

/** Where messages go in NATS. Names of jobs and agents fit a subject's token (NAME), so nothing is escaped. */
const ROOT = "faultline.v1";

export const STREAM = "FAULTLINE";
export const LEASES = "FAULTLINE_LEASES";
export const JOBS = "FAULTLINE_JOBS";
/** Services that share what only one of them has to hear. */
export const QUEUE = "faultline";

export const subjects = {
  allReports: `${ROOT}.report.>`,
  report: (job: string, agent: string): string => `${ROOT}.report.${job}.${agent}`,
  reportsOf: (job: string): string => `${ROOT}.report.${job}.*`,
  announce: (job: string): string => `${ROOT}.announce.${job}`,
  /** An agent is there: its hello, every few seconds. */
  present: (agent: string): string => `${ROOT}.present.${agent}`,
  /** A service begins with a job: its agents introduce themselves. */
  follow: (job: string): string => `${ROOT}.follow.${job}`,
  /** The service that follows the job is asked by another. */
  askWatcher: (job: string): string => `${ROOT}.watcher.${job}`,
  ask: (agent: string): string => `${ROOT}.ask.${agent}`,
  /** Any client of the cluster may ask the agent that has the rank. */
  askRank: (job: string, rank: number): string => `${ROOT}.ask.${job}.${rank}`,
} as const;

/** Seconds between what is said again and again, in milliseconds. */
export const SAY_AGAIN_MS = 2000;

/** NATS' client is loaded when somebody asks for it. */
export interface NatsModules {
  readonly transport: typeof Transport;
  readonly jetstream: typeof JetStream;
  readonly kv: typeof KeyValue;
}

export async function loadNats(): Promise<NatsModules> {
  const [transport, jetstream, kv] = await Promise.all([
    import("@nats-io/transport-node"),
    import("@nats-io/jetstream"),
    import("@nats-io/kv"),
  ]);
  return { transport, jetstream, kv };
}
