/** What a server is, what it has, and what its clock says. */
import { UserError } from "../../base/errors.ts";
import type { MetricType } from "../../model/metrics.ts";
import { ServerFailure, toUserError } from "./failure.ts";
import { newAgent, requestJson, type Target } from "./http.ts";
import { type Matcher, selector } from "./matchers.ts";

export interface Server {
  /** As it may be shown: without credentials. */
  readonly url: string;
  readonly kind: "prometheus" | "victoria-metrics";
  /** What it says of itself; "" where it does not. */
  readonly version: string;
  /** Its clock less ours; to the second. 0 where it does not tell the time. */
  readonly clockOffsetMs: number;
  readonly target: Target;
}

export interface ConnectOptions {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** The longest silence of one request. */
  readonly timeoutMs?: number;
}

const DEFAULT_TIMEOUT_MS = 60_000;
/** A server has some thousand names; its metadata some hundred bytes for each. */
const MOST_LIST_BYTES = 1 << 26;
/** Enough to keep the server busy while we decode; more would only wait for its cores. */
export const PARALLEL = 2;

export async function connect(options: ConnectOptions): Promise<Server> {
  const base = parseUrl(options.url);
  const headers: Record<string, string> = { "user-agent": "faultline", ...options.headers };
  if (base.username !== "") {
    const login = `${decodeURIComponent(base.username)}:${decodeURIComponent(base.password)}`;
    headers["authorization"] ??= `Basic ${Buffer.from(login).toString("base64")}`;
    base.username = base.password = "";
  }
  const url = base.href.replace(/\/+$/, "");
  const timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  const agent = newAgent(base, PARALLEL);
  const target: Target = { base, headers, agent, timeoutMs, signal: options.signal };
  try {
    return { url, target, ...(await hello(target)) };
  } catch (failure) {
    throw toUserError(failure, url);
  }
}

/** The server's time: what "now" means for its samples. */
export function nowS(server: Server): number {
  return (Date.now() + server.clockOffsetMs) / 1000;
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol !== "http:" && url?.protocol !== "https:") {
    throw new UserError(
      `${text} is no URL of a Prometheus server`,
      "Write it with its scheme: http://prometheus:9090",
      2,
    );
  }
  url.hash = "";
  url.pathname = url.pathname.replace(/(\/api\/v1(\/.*)?|\/graph)?\/*$/, "");
  return url;
}

type Hello = Pick<Server, "kind" | "version" | "clockOffsetMs">;

async function hello(target: Target): Promise<Hello> {
  const asked = Date.now();
  try {
    const path = "/api/v1/status/buildinfo";
    const { head, json } = await requestJson(target, { path }, MOST_LIST_BYTES);
    if (json["status"] === "success") {
      const { version = "" } = (json["data"] ?? {}) as { version?: string };
      return { version, ...told(head, asked) };
    }
  } catch (failure) {
    // Thanos and older proxies have no such page: then only the query itself can tell.
    if (!(failure instanceof ServerFailure) || !hasAnswered(failure)) throw failure;
  }
  const probe = { path: "/api/v1/query", query: [["query", "vector(1)"]] } as const;
  const { head, json } = await requestJson(target, probe, MOST_LIST_BYTES);
  if (json["status"] !== "success") {
    throw new ServerFailure("foreign", "it answers, but not as the Prometheus API");
  }
  return { version: "", ...told(head, asked) };
}

function hasAnswered({ kind }: ServerFailure): boolean {
  return !["unreachable", "timeout", "aborted", "cut"].includes(kind);
}

function told(head: { dateMs: number; server: string }, asked: number): Omit<Hello, "version"> {
  const ours = (asked + Date.now()) / 2;
  return {
    kind: head.server === "VictoriaMetrics" ? "victoria-metrics" : "prometheus",
    // The header has whole seconds: half of one is its mean error.
    clockOffsetMs: Number.isNaN(head.dateMs) ? 0 : Math.round(head.dateMs + 500 - ours),
  };
}

/** The names of metrics that have series under the matchers; null where the server cannot list them. */
export async function metricNames(
  { target }: Server,
  matchers: readonly Matcher[],
  startS: number,
  endS: number,
): Promise<ReadonlySet<string> | null> {
  const query: [string, string][] = [
    ["start", String(startS)],
    ["end", String(endS)],
  ];
  if (matchers.length > 0) query.push(["match[]", selector("", matchers)]);
  const path = "/api/v1/label/__name__/values";
  try {
    const { json } = await requestJson(target, { path, query }, MOST_LIST_BYTES);
    const data = json["data"];
    return Array.isArray(data) ? new Set(data.map(String)) : null;
  } catch (failure) {
    if (!(failure instanceof ServerFailure)) throw failure;
    if (failure.kind === "bad-query" && !/non-empty matcher/.test(failure.message)) throw failure;
    if (failure.kind === "unreachable" || failure.kind === "aborted") throw failure;
    return null;
  }
}

/** Types as scraped exporters declare them. Not all servers know: then all are unknown. */
export async function metricTypes({ target }: Server): Promise<ReadonlyMap<string, MetricType>> {
  const query = [["limit_per_metric", "1"]] as const;
  const types = new Map<string, MetricType>();
  try {
    const asked = { path: "/api/v1/metadata", query };
    const { json } = await requestJson(target, asked, MOST_LIST_BYTES);
    for (const [name, entries] of Object.entries(json["data"] ?? {})) {
      const type = (entries as readonly { type?: unknown }[])[0]?.type;
      if (type === "counter" || type === "gauge") types.set(name, type);
    }
  } catch (failure) {
    if (!(failure instanceof ServerFailure) || failure.kind === "aborted") throw failure;
  }
  return types;
}
