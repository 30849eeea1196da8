/** Whether brokers answer: NATS greets whoever connects with a line that begins with INFO. */
import { connect } from "node:net";
import { natsAddress } from "../../live/wire/nats-connect.ts";
import type { BrokerSeen } from "./broker.ts";

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
