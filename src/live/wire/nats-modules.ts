/** NATS' client is there only where somebody wants it: loaded when asked for. */
import { createRequire } from "node:module";
import type * as JetStream from "@nats-io/jetstream";
import type * as KeyValue from "@nats-io/kv";
import type * as Transport from "@nats-io/transport-node";
import { UserError } from "../../base/errors.ts";

export interface NatsModules {
  readonly transport: typeof Transport;
  readonly jetstream: typeof JetStream;
  readonly kv: typeof KeyValue;
}

const PACKAGES = ["@nats-io/transport-node", "@nats-io/jetstream", "@nats-io/kv"] as const;

/** Throws UserError where a package is missing, before anything is started. */
export function requireNats(): void {
  const { resolve } = createRequire(import.meta.url);
  for (const name of PACKAGES) {
    try {
      resolve(name);
    } catch {
      throw new UserError(
        `the package ${name} is not installed`,
        `nats:// needs it: npm install ${PACKAGES.join(" ")}`,
      );
    }
  }
}

export async function loadNats(): Promise<NatsModules> {
  requireNats();
  const [transport, jetstream, kv] = await Promise.all([
    import("@nats-io/transport-node"),
    import("@nats-io/jetstream"),
    import("@nats-io/kv"),
  ]);
  return { transport, jetstream, kv };
}
