/** Does the broker answer, from here and from the service? */
import { type Line, linesOf, some } from "./line.ts";

export interface BrokerSeen {
  /** Addresses of NATS, and why each did not answer; empty where none is configured here. */
  readonly brokers: readonly { readonly address: string; readonly failure: string | null }[];
  /** What the service says: "ok", "away", "none"; null where it says nothing. */
  readonly saysService: string | null;
}

const { ok, warning, broken, none } = linesOf("broker");

export function judgeBroker({ brokers, saysService }: BrokerSeen): Line {
  const dead = brokers.filter(({ failure }) => failure !== null);
  const names = some(dead.map(({ address, failure }) => `${address} (${failure})`));
  if (saysService === "away")
    return broken(
      "the service cannot reach its broker: agents keep their reports",
      "nats server check connection    # on the service's machine; systemctl status nats",
    );
  if (brokers.length > 0 && dead.length === brokers.length)
    return broken(`no broker answers: ${names}`, "systemctl status nats    # on those machines");
  if (dead.length > 0)
    return warning(
      `brokers do not answer: ${names}`,
      "systemctl status nats    # on those machines",
    );
  if (brokers.length > 0) return ok(`all ${brokers.length} brokers answer`);
  return saysService === "ok"
    ? ok("the service reaches its broker")
    : none("no broker: agents connect to the service itself");
}
