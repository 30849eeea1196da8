/**
 * The service's HTTP side: what is known, live events, actions, figures. The same server carries the agents'
 * WebSockets, which are attached to it by whoever starts the service.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import http, { type IncomingMessage, type ServerResponse } from "node:http";
import https from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { getRequestListener } from "@hono/node-server";
import { errorText, UserError } from "../../../base/errors.ts";
import { harmless } from "../../../base/text.ts";
import type { DemoControl, ServiceView } from "../view.ts";
import type { Authorizer, Denial } from "./authorize.ts";
import { demoRoutes, ROUTES } from "./routes.ts";
import { openEventStreams } from "./events.ts";
import { turnAway } from "./gate.ts";
import { HTTP_LIMITS, type HttpLimits } from "./limits.ts";
import { jsonText } from "./json.ts";
import { countRequests } from "./metrics.ts";
import { BARE_POLICY, readPage, WEB_FOLDER } from "./page.ts";
import { makeRouter } from "./router.ts";

export interface ServeHttpOptions {
  readonly view: ServiceView;
  readonly auth: Authorizer;
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** PEM texts. */
  readonly tls: { readonly cert: string; readonly key: string } | null;
  nowMs(): number;
  readonly version: string;
  log(line: string): void;
  readonly limits?: Partial<HttpLimits>;
  /** A job that can be broken, of a demonstration. */
  readonly demo?: DemoControl | undefined;
  /** Where the page's files lie; where the build puts them by default. */
  readonly webFolder?: string | undefined;
}

export interface HttpSide {
  readonly url: string;
  readonly server: http.Server | https.Server;
  close(): Promise<void>;
}

const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy": BARE_POLICY,
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
};

export async function serveHttp(options: ServeHttpOptions): Promise<HttpSide> {
  const { view, auth, host, port, tls, version } = options;
  const limits: HttpLimits = { ...HTTP_LIMITS, ...options.limits };
  const server = makeServer(tls, limits);
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  server.on("clientError", closeClient);
  const bound = await listen(server, host, port);
  // Trouble with a single connection must not end the service.
  server.on("error", (error) => options.log(`HTTP: ${harmless(error.message)}`));

  const requests = countRequests();
  const streams = openEventStreams(view, limits, randomBytes(6).toString("hex"), !!options.demo);
  const router = makeRouter({
    view,
    auth,
    limits,
    version,
    routes: options.demo ? [...ROUTES, ...demoRoutes(options.demo)] : ROUTES,
    page: readPage(options.webFolder ?? WEB_FOLDER),
    streams,
    requests,
    nowMs: () => options.nowMs(),
    log: (line) => options.log(line),
  });
  const listener = getRequestListener((request, env) => router.fetch(request, env), {
    overrideGlobalObjects: false,
    errorHandler: () =>
      new Response(jsonText({ error: "this is no request" }), {
        status: 400,
        headers: { "content-type": "application/json; charset=utf-8", connection: "close" },
      }),
  });
  const scheme = tls ? "https" : "http";
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    response.on("error", () => undefined);
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value);
    const refusal = turnAway(request, auth, limits, scheme, options.demo !== undefined);
    if (refusal) {
      requests.add("(refused)", refusal.status);
      send(response, refusal);
      return;
    }
    listener(request, response).catch((error: unknown) => {
      options.log(`HTTP: ${harmless(String(error)).slice(0, 500)}`);
      response.destroy();
    });
  });
  return {
    url: `${scheme}://${host.includes(":") ? `[${host}]` : host}:${bound}`,
    server,
    async close() {
      streams.close();
      const closed = once(server, "close");
      server.close();
      // Also those that were handed over to agents: the server would wait for them.
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function makeServer(tls: ServeHttpOptions["tls"], limits: HttpLimits): http.Server | https.Server {
  const shared = {
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.headersMs,
    requestTimeout: limits.headersMs + limits.bodyMs,
    keepAliveTimeout: limits.headersMs,
    // How often those are looked at.
    connectionsCheckingInterval: Math.max(50, Math.min(limits.headersMs, limits.bodyMs) / 4),
    // Names are checked by us, with an answer of ours.
    requireHostHeader: false,
  };
  const server = tls ? secureServer(tls, shared, limits) : http.createServer(shared);
  server.timeout = limits.idleMs;
  server.maxConnections = limits.connections;
  return server;
}

function secureServer(
  { cert, key }: { readonly cert: string; readonly key: string },
  shared: http.ServerOptions,
  limits: HttpLimits,
): https.Server {
  try {
    const server = https.createServer({
      ...shared,
      cert,
      key,
      minVersion: "TLSv1.2",
      handshakeTimeout: limits.headersMs,
    });
    server.on("tlsClientError", (_, socket) => socket.destroy());
    return server;
  } catch (error) {
    const why = errorText(error);
    throw new UserError(
      `the certificate and its key cannot be used: ${why}`,
      "tls.cert and tls.key are files in PEM, and belong together",
      2,
    );
  }
}

async function listen(server: http.Server, host: string, port: number): Promise<number> {
  try {
    const listening = once(server, "listening");
    server.listen(port, host);
    await listening;
  } catch (error) {
    const why = errorText(error);
    throw new UserError(`cannot listen on ${host} port ${port}: ${why}`, "give another --port", 2);
  }
  return (server.address() as AddressInfo).port;
}

/** Refused before a route was looked for. A body that may follow is not waited for. */
function send(response: ServerResponse, { status, message, headers }: Denial): void {
  const body = Buffer.from(jsonText({ error: message }));
  response.writeHead(status, {
    ...headers,
    "content-type": "application/json; charset=utf-8",
    "content-length": body.length,
    "cache-control": "no-store",
    connection: "close",
  });
  response.end(body);
}

const BROKEN: Readonly<Record<string, readonly [status: string, why: string]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: ["408 Request Timeout", "the request took too long"],
  HPE_HEADER_OVERFLOW: ["431 Request Header Fields Too Large", "the headers are too large"],
};

/** What is no request, or did not come in time. The place is free at once, whether or not the client hangs up, too. */
function closeClient(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const [status, why] = BROKEN[error.code ?? ""] ?? ["400 Bad Request", "this is no HTTP request"];
  const body = jsonText({ error: why });
  const head = `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\nconnection: close`;
  socket.end(`${head}\r\ncontent-length: ${body.length}\r\n\r\n${body}`, () => socket.destroy());
}
