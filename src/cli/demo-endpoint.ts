/**
 * What a site would have around the service, played on this machine: the hook that its actions call, and its monitoring
 * server. Loopback only, and below a path that nobody else knows.
 */
import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { MetricsServer } from "../live/fleet/simulated-prometheus.ts";
import type { DemoAction } from "./demo-control.ts";

const MOST_BODY = 65_536;
const SLOWEST_MS = 5000;

export interface DemoEndpoint {
  readonly hookUrl: string;
  readonly prometheusUrl: string;
  close(): Promise<void>;
}

export async function startDemoEndpoint(
  metrics: MetricsServer,
  carryOut: (action: DemoAction) => string,
): Promise<DemoEndpoint> {
  const secret = randomBytes(18).toString("base64url");
  const server = createServer((request, response) => {
    const reply = (status: number, type: string, body: string): void => {
      if (response.destroyed) return;
      response.writeHead(status, { "content-type": type, "x-content-type-options": "nosniff" });
      response.end(body);
    };
    answer(request, secret, metrics, carryOut).then(
      ({ status, type, body }) => reply(status, type, body),
      (error: unknown) =>
        reply(400, "text/plain", error instanceof Error ? error.message : "failed"),
    );
  });
  server.requestTimeout = server.headersTimeout = SLOWEST_MS;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  const base = `http://127.0.0.1:${port}/${secret}`;
  return {
    hookUrl: `${base}/hook`,
    prometheusUrl: `${base}/prometheus`,
    close: () => closed(server),
  };
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

async function answer(
  request: IncomingMessage,
  secret: string,
  metrics: MetricsServer,
  carryOut: (action: DemoAction) => string,
): Promise<Answer> {
  const url = new URL(request.url ?? "/", "http://127.0.0.1");
  const [, given, ...rest] = url.pathname.split("/");
  const nothing = { status: 404, type: "text/plain", body: "not found" };
  if (given !== secret) return nothing;
  if (rest[0] === "prometheus") {
    const form = request.method === "POST" ? new URLSearchParams(await textOf(request)) : null;
    const { status, body } = metrics.answer(
      `/${rest.slice(1).join("/")}`,
      form ?? url.searchParams,
    );
    return { status, type: "application/json", body: JSON.stringify(body) };
  }
  if (rest.join("/") !== "hook" || request.method !== "POST") return nothing;
  const { action } = JSON.parse(await textOf(request)) as {
    action?: { do?: unknown; data?: { machine?: unknown; rank?: unknown } };
  };
  const { machine, rank } = action?.data ?? {};
  const said = carryOut({
    do: typeof action?.do === "string" ? action.do : "the action",
    machine: typeof machine === "string" ? machine : null,
    rank: typeof rank === "number" ? rank : null,
  });
  return { status: 200, type: "text/plain", body: said };
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > MOST_BODY) throw new Error("the body is too large");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
