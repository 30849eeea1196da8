/** HTTP by hand: what no client library would send. */
import { connect, type Socket } from "node:net";

export interface RawAnswer {
  /** 0 where the connection was closed without an answer. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Sends the bytes and reads until the other side closes. */
export async function sendRaw(url: string, text: string | Buffer): Promise<RawAnswer> {
  return parseAnswer(await untilClosed(openRaw(url), text));
}

export function openRaw(url: string): Socket {
  const { hostname, port } = new URL(url);
  return connect(Number(port), hostname.replace(/^\[|\]$/g, ""));
}

export function untilClosed(socket: Socket, text: string | Buffer): Promise<string> {
  return new Promise((resolve) => {
    let said = "";
    socket.on("data", (chunk: Buffer) => (said += chunk.toString("latin1")));
    // A reset after the answer is a way to end, too.
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(said));
    socket.write(text);
  });
}

export function parseAnswer(said: string): RawAnswer {
  const [head = "", ...rest] = said.split("\r\n\r\n");
  const [first = "", ...lines] = head.split("\r\n");
  const headers = Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  return { status: Number(first.split(" ")[1] ?? 0), headers, body: rest.join("\r\n\r\n") };
}
