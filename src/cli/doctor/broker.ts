/** Does the broker answer, from here and from the service? */
import { connect } from "node:net";
import { natsAddress } from "../../live/wire/nats-connect.ts";
import { type Line, linesOf, some } from "./line.ts";

interface BrokerSeen {
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

export async function lookAtBrokers(
  urls: string,
  timeoutMs: number,
): Promise<BrokerSeen["brokers"]> {
  const { servers } = natsAddress(urls);
  return await Promise.all(
    servers.map(async (address) => ({ address, failure: await failureOf(address, timeoutMs) })),
  );
}

function failureOf(address: string, timeoutMs: number): Promise<string | null> {
  const at = address.lastIndexOf(":");
  const host = address.slice(0, at).replace(/^\[|\]$/g, "");
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(address.slice(at + 1)) });
    const end = (failure: string | null): void => {
      socket.destroy();
      resolve(failure);
    };
    socket.setTimeout(timeoutMs, () => end("no answer"));
    socket.on("error", (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
    socket.once("data", (bytes) =>
      end(bytes.toString("latin1", 0, 5) === "INFO " ? null : "is not NATS"),
    );
    socket.once("close", () => end("it closed the connection"));
  });
}
