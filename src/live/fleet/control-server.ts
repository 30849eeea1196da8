/** Faults over HTTP, on this machine only: for scripts that rehearse, and for measurements. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Fields, parseFields } from "../../base/json.ts";
import { errorText, UserError } from "../../base/errors.ts";
import { harmless } from "../../base/text.ts";
import type { BoardFault } from "./fault-board.ts";

const MOST_BODY = 16_384;
const SLOWEST_MS = 10_000;
/** A page of somebody else's must not reach us by a name that resolves to this machine. */
const OWN_HOST = /^(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?$/;

export interface Controlled {
  state(): unknown;
  add(text: string): BoardFault;
  remove(id: number): boolean;
  clear(): number;
  /** Absent where it cannot be started anew. */
  restart?(): Promise<void>;
}

export interface ControlServer {
  readonly url: string;
  close(): Promise<void>;
}

export async function startControl(port: number, what: Controlled): Promise<ControlServer> {
  const server = createServer((request, response) => {
    answer(what, request).then(
      ({ status, body }) => reply(response, status, body),
      (error: unknown) => reply(response, ...problem(error)),
    );
  });
  server.requestTimeout = server.headersTimeout = SLOWEST_MS;
  server.maxConnections = 64;
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) =>
      reject(
        new UserError(
          `port ${port} cannot be opened: ${error.code ?? error.message}`,
          "give --control another port, or 0 for any",
          1,
        ),
      ),
    );
    server.listen(port, "127.0.0.1", resolve);
  });
  const { port: taken } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${taken}`, close: () => closed(server) };
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

async function answer(what: Controlled, request: IncomingMessage): Promise<Answer> {
  if (!OWN_HOST.test(request.headers.host ?? ""))
    return { status: 403, body: { error: "this is for programs of this machine only" } };
  const path = (request.url ?? "/").split("?")[0]!;
  const call = `${request.method} ${path}`;
  if (call === "GET /state") return { status: 200, body: what.state() };
  if (call === "POST /faults") {
    // Pages of others cannot send this type without asking first.
    if (!/^application\/json\b/.test(request.headers["content-type"] ?? ""))
      return { status: 415, body: { error: "content-type must be application/json" } };
    const { fault } = (await jsonOf(request)) as { fault?: unknown };
    if (typeof fault !== "string")
      return { status: 400, body: { error: 'give {"fault":"gpu-slow:rank=17:severity=2"}' } };
    return { status: 201, body: what.add(fault) };
  }
  if (call === "DELETE /faults") return { status: 200, body: { removed: what.clear() } };
  const one = /^DELETE \/faults\/(\d{1,9})$/.exec(call);
  if (one) {
    const isRemoved = what.remove(Number(one[1]));
    return { status: isRemoved ? 200 : 404, body: { removed: isRemoved ? 1 : 0 } };
  }
  if (call === "POST /restart" && what.restart) {
    await what.restart();
    return { status: 200, body: what.state() };
  }
  return { status: 404, body: { error: "GET /state, POST /faults, DELETE /faults[/N]" } };
}

async function jsonOf(request: IncomingMessage): Promise<Fields> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > MOST_BODY) throw new UserError("the body is too large", `${MOST_BODY} bytes`, 2);
    chunks.push(chunk);
  }
  const fields = parseFields(Buffer.concat(chunks).toString("utf8"));
  if (fields) return fields;
  throw new UserError("the body is no JSON object", 'give {"fault":"…"}', 2);
}

function problem(error: unknown): [status: number, body: unknown] {
  if (error instanceof UserError)
    return [400, { error: harmless(error.message), hint: harmless(error.hint) }];
  return [500, { error: harmless(errorText(error)) }];
}

function reply(response: ServerResponse, status: number, body: unknown): void {
  if (response.destroyed) return;
  response.writeHead(status, {
    "content-type": "application/json",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    // The rest of a body that was refused is not waited for.
    ...(status >= 400 ? { connection: "close" } : {}),
  });
  response.end(`${JSON.stringify(body)}\n`);
}
