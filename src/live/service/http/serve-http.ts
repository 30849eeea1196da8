/**
 * The service's HTTP side: what is known, live events, actions, figures. The same server carries the agents'
 * WebSockets, which are attached to it by whoever starts the service.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import http, { type IncomingMessage, type ServerResponse } from "node:http";
import https from "node:https";
import type { AddressInfo, Server, Socket } from "node:net";
import { createSecureContext } from "node:tls";
import type { Duplex } from "node:stream";
import { getRequestListener } from "@hono/node-server";
import { errorText, UserError } from "../../../base/errors.ts";
import { harmless } from "../../../base/text.ts";
import type { DemoControl, ServiceView } from "../view.ts";
import { SignIn } from "../access/sign-in.ts";
import { SLACK_PATH, type SlackApp } from "../slack/slack-app.ts";
import { noteSparingly } from "./admit.ts";
import { type Authorizer, Denial } from "./authorize.ts";
import { openEventStreams } from "./events.ts";
import { jsonText } from "./json.ts";
import { HTTP_LIMITS, type HttpLimits } from "./limits.ts";
import { countRequests } from "./metrics.ts";
import { BARE_POLICY, readPage, WEB_FOLDER } from "./page.ts";
import { makeRouter } from "./router.ts";
import { demoRoutes } from "./demo-routes.ts";
import { SHARE_ROUTES } from "./job-routes.ts";
import type { Route } from "./route.ts";
import { ROUTES } from "./routes.ts";

export interface ServeHttpOptions {
  readonly view: ServiceView;
  readonly auth: Authorizer;
  /** Of people; nobody can sign in where it is absent. */
  readonly signIn?: SignIn;
  /** Buttons of Slack messages; absent where there are none. */
  readonly slackApp?: SlackApp;
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
  /** Rights have changed: who reads events and may not any more is let go. */
  recheck(this: void): void;
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

/** Rows of the audit trail a minute: tokens that nobody knows come from anywhere. */
const MOST_REFUSED = 10;

export async function serveHttp(options: ServeHttpOptions): Promise<HttpSide> {
  const note = noteSparingly(options.view, MOST_REFUSED, () => options.nowMs());
  options.auth.onRefused(
    (address) => void note("anybody", "refuse", "", `a token that is not known, from ${address}`),
  );
  return await serveRoutes(
    options,
    options.demo ? [...ROUTES, ...demoRoutes(options.demo)] : ROUTES,
  );
}

interface ServeSharesOptions extends Pick<
  ServeHttpOptions,
  "auth" | "host" | "port" | "nowMs" | "limits"
> {
  readonly ask: ServiceView["askShares"];
}

/** Nothing but what jobs ask for their micro-batches. */
export async function serveShares({ ask, ...options }: ServeSharesOptions): Promise<HttpSide> {
  // As much of the view as its routes use.
  const view = { askShares: ask, listen: () => () => undefined } as Partial<ServiceView>;
  const rest = { view: view as ServiceView, tls: null, version: "", log: () => undefined };
  return await serveRoutes({ ...options, ...rest }, SHARE_ROUTES);
}

async function serveRoutes(options: ServeHttpOptions, routes: readonly Route[]): Promise<HttpSide> {
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

  const scheme = tls ? "https" : "http";
  const requests = countRequests();
  const streams = openEventStreams(view, limits, randomBytes(6).toString("hex"), !!options.demo);
  const router = makeRouter({
    view,
    auth,
    signIn: options.signIn ?? new SignIn({ oidc: null, isTls: tls !== null, nowMs: Date.now }),
    slackApp: options.slackApp ?? null,
    scheme,
    limits,
    version,
    routes,
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
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    response.on("error", () => undefined);
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value);
    const refusal = turnAway(request, auth, limits, scheme);
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
    recheck: () => streams.recheck(),
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
  checkCertificate({ cert, key });
  const server = https.createServer({
    ...shared,
    cert,
    key,
    minVersion: "TLSv1.2",
    handshakeTimeout: limits.headersMs,
  });
  server.on("tlsClientError", (_, socket) => socket.destroy());
  return server;
}

/** Throws UserError. */
export function checkCertificate({ cert, key }: NonNullable<ServeHttpOptions["tls"]>): void {
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    const why = errorText(error);
    throw new UserError(
      `the certificate and its key cannot be used: ${why}`,
      "tls.cert and tls.key are files in PEM, and belong together",
      2,
    );
  }
}

/** The port that it is. Rejects with UserError. */
export async function listen(server: Server, host: string, port: number): Promise<number> {
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

const METHODS = ["GET", "HEAD", "POST", "DELETE"];
/** Names of jobs, ids of incidents and actions; no percent sign, so nothing is decoded twice. */
const SEGMENT = /^[A-Za-z0-9_.~:@+=,!-]{1,256}$/;

/** null: let it in. */
function turnAway(
  request: IncomingMessage,
  auth: Authorizer,
  limits: HttpLimits,
  scheme: "http" | "https",
): Denial | null {
  const { method = "", url = "", headers } = request;
  if (url.length > limits.urlBytes)
    return new Denial(414, `the URL is longer than ${limits.urlBytes} bytes`);
  if (!METHODS.includes(method)) {
    const allow = METHODS.join(", ");
    return new Denial(405, `only ${allow} are known here`, { allow });
  }
  if (!url.startsWith("/")) return new Denial(400, "the request must name a path");
  if (sameHeaders(request, "host") > 1)
    return new Denial(400, "there is more than one Host header");
  if (!auth.knowsHost(request))
    return new Denial(421, "the service does not answer under this name: see allowedHosts");
  if (!isPlainPath(url)) return new Denial(404, "there is nothing at this path");
  if (method === "POST" || method === "DELETE") return postFault(request, scheme);
  if (Number(headers["content-length"] ?? 0) > 0 || headers["transfer-encoding"] !== undefined)
    return new Denial(400, `a ${method} request has no body`);
  return isOtherSite(request) ? new Denial(403, "pages of other sites may not read this") : null;
}

function sameHeaders({ rawHeaders }: IncomingMessage, name: string): number {
  let found = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) if (rawHeaders[i]!.toLowerCase() === name) found++;
  return found;
}

/** Judged as it came, for URL parsers fold dots and backslashes away; each part by itself, for %2F is no slash. */
function isPlainPath(url: string): boolean {
  const [path = ""] = url.split(/[?#]/, 1);
  return path === "/" || path.slice(1).split("/").every(isPlainSegment);
}

function isPlainSegment(segment: string): boolean {
  try {
    const plain = decodeURIComponent(segment);
    return SEGMENT.test(plain) && plain !== "." && plain !== "..";
  } catch {
    return false;
  }
}

/** A page of another site can send a form unasked, but neither this type nor its own name for ours. */
function postFault(request: IncomingMessage, scheme: "http" | "https"): Denial | null {
  const { headers } = request;
  if (headers.origin !== undefined && !isOurs(headers.origin, headers.host ?? "", scheme))
    return new Denial(403, "pages of other sites may not do this");
  const site = headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin" && site !== "none")
    return new Denial(403, "pages of other sites may not do this");
  // Slack sends a form; its signature says that it is Slack.
  const type =
    request.url === SLACK_PATH ? "application/x-www-form-urlencoded" : "application/json";
  const [given = ""] = (headers["content-type"] ?? "").split(";", 1);
  return given.trim().toLowerCase() === type
    ? null
    : new Denial(415, `the content-type must be ${type}`);
}

/** A proxy in front may add TLS: https is ours, too. */
function isOurs(origin: string, host: string, scheme: "http" | "https"): boolean {
  const [, said = "", rest = ""] = /^(https?):\/\/([^/?#@]+)$/i.exec(origin) ?? [];
  const theirs = said.toLowerCase();
  if (theirs !== scheme && theirs !== "https") return false;
  const port = theirs === "https" ? /:443$/ : /:80$/;
  return rest.toLowerCase().replace(port, "") === host.toLowerCase().replace(port, "");
}

/** Browsers say where a request comes from. Following a link is fine, reading from a script elsewhere is not. */
function isOtherSite({ headers }: IncomingMessage): boolean {
  const site = headers["sec-fetch-site"];
  if (site !== "cross-site" && site !== "same-site") return false;
  return headers["sec-fetch-mode"] !== "navigate";
}
