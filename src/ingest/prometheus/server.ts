/** What a server is, what it has, and what its clock says. */
import { UserError } from "../../base/errors.ts";
import { ServerFailure, toUserError } from "./failure.ts";
import { newAgent, requestJson, headerFault, type Target } from "./http.ts";

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
  /** What is no header is a UserError. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** The longest silence of one request; the whole of it may take twice as long. */
  readonly timeoutMs?: number;
}

const DEFAULT_TIMEOUT_MS = 30_000;
/** Of a server's first answers, which are small. */
const MOST_HELLO_BYTES = 1 << 20;
/** For lists beside the samples; samples themselves are taken by PARALLEL at once. */
const MORE_SOCKETS = 2;
/** Enough to keep the server busy while we decode; more would only wait for its cores. */
export const PARALLEL = 2;

export async function connect(options: ConnectOptions): Promise<Server> {
  const base = parseUrl(options.url);
  const headers = headersOf(base, options.headers ?? {});
  const url = base.href.replace(/\/+$/, "");
  const timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  const agent = newAgent(base, PARALLEL + MORE_SOCKETS);
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
    const { head, json } = await requestJson(target, { path }, MOST_HELLO_BYTES);
    if (json["status"] === "success") {
      const { version = "" } = (json["data"] ?? {}) as { version?: string };
      return { version, ...told(head, asked) };
    }
  } catch (failure) {
    // Thanos and older proxies have no such page: then only the query itself can tell.
    if (!(failure instanceof ServerFailure) || !hasAnswered(failure)) throw failure;
  }
  const probe = { path: "/api/v1/query", query: [["query", "vector(1)"]] } as const;
  const { head, json } = await requestJson(target, probe, MOST_HELLO_BYTES);
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

/**
 * The headers of all requests to a server.
 * `base` loses its credentials: it may be shown.
 */
function headersOf(
  base: URL,
  given: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const headers: Record<string, string> = { "user-agent": "faultline" };
  for (const [name, value] of Object.entries(given)) {
    check(name, value);
    headers[name.toLowerCase()] = value;
  }
  if (base.username !== "") {
    const login = `${decoded(base.username)}:${decoded(base.password)}`;
    headers["authorization"] ??= `Basic ${Buffer.from(login).toString("base64")}`;
    base.username = base.password = "";
  }
  return headers;
}

/** Shows the name only, on one line: the value may be a secret. */
function check(name: string, value: string): void {
  const hint = "Write it as --header 'Authorization: Bearer …', on one line.";
  const fault = headerFault(name, value);
  if (fault === "name") {
    throw new UserError(`--header: ${JSON.stringify(name)} is no name of a header`, hint, 2);
  }
  if (fault === "value") {
    const what = "a line break or another character that headers cannot have";
    throw new UserError(`--header ${name}: its value has ${what}`, hint, 2);
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A plain percent sign: a password that nobody encoded.
    return text;
  }
}
