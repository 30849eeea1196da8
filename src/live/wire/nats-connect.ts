/** A connection to a NATS cluster that comes back by itself. */
import type { NatsConnection } from "@nats-io/transport-node";
import { UserError } from "../../base/errors.ts";
import type { NatsModules } from "./nats-modules.ts";

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

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
