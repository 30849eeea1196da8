/**
 * Who may do what. On loopback without tokens whoever is on the machine may do everything; elsewhere a token says what
 * its bearer may do: send reports (agent), look (read), approve actions (act). Only hashes of tokens are kept.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { UserError } from "../../../base/errors.ts";
import { count } from "../../../base/text.ts";
import { Refusal } from "../view.ts";
import { isLoopback, knownHosts } from "./known-hosts.ts";

export const SCOPES = ["agent", "read", "act"] as const;
export type Scope = (typeof SCOPES)[number];
/** "metrics": as read, but a scraper on this machine needs no token. "nothing": anybody. */
export type Need = Scope | "metrics" | "nothing";

export interface Token {
  /** Stands in the audit trail. */
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** Only the agent of this name may use it; null for any. */
  readonly agent: string | null;
  /** SHA-256 of the token, 64 hexadecimal digits. */
  readonly sha256: string;
}

export interface Caller {
  /** The token's name, or how the caller came in without one. */
  readonly name: string;
  readonly agent: string | null;
}

/** What of a request matters here. */
export type Asking = Pick<IncomingMessage, "headers"> & {
  readonly socket: {
    readonly remoteAddress?: string | undefined;
    readonly localAddress?: string | undefined;
  };
};

export interface Authorizer {
  /** Sentences for the start: who may do what. */
  readonly says: readonly string[];
  knowsHost(this: void, request: Asking): boolean;
  /** Throws Denial. */
  authorize(this: void, request: Asking, need: Need): Caller;
}

export interface AuthorizerOptions {
  readonly host: string;
  readonly tokens: readonly Token[];
  readonly publicRead: boolean;
  readonly insecure: boolean;
  readonly allowedHosts: readonly string[];
  readonly tls: boolean;
  nowMs(): number;
}

export class Denial extends Refusal {
  readonly headers: Readonly<Record<string, string>>;
  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(status, message);
    this.name = "Denial";
    this.headers = headers;
  }
}

/** Headers that a proxy adds: the caller may be anywhere then, though the connection comes from this machine. */
const FORWARDED = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"];
const BEARER = { "www-authenticate": 'Bearer realm="faultline"' };
const MOST_TOKEN_LENGTH = 1024;

export function makeAuthorizer(options: AuthorizerOptions): Authorizer {
  const { host, tokens, publicRead, insecure } = options;
  const isLocal = isLoopback(host);
  if (!isLocal && tokens.length === 0 && !insecure)
    throw new UserError(
      `${host} can be reached from other machines, and no tokens are configured`,
      "configure tokens (docs/guides/serve.md), stay on 127.0.0.1, or say --insecure",
      2,
    );
  const hashes = tokens.map(({ sha256 }) => Buffer.from(sha256, "hex"));
  const guard = watchWrongTokens(() => options.nowMs());
  const isKnown = knownHosts(host, options.allowedHosts);

  /** All are compared, so that the time does not tell which one was near. */
  const find = (digest: Buffer): Token | null => {
    let found: Token | null = null;
    for (const [i, hash] of hashes.entries())
      if (hash.length === digest.length && timingSafeEqual(hash, digest)) found = tokens[i]!;
    return found;
  };

  const bearer = (request: Asking, token: string, need: Scope): Caller => {
    const address = request.socket.remoteAddress ?? "";
    const digest = createHash("sha256").update(token).digest();
    const found = find(digest);
    const away = found ? guard.guessing(address) : guard.wrong(address, digest.toString("hex"));
    if (away > 0)
      throw new Denial(429, "too many wrong tokens came from this address", {
        "retry-after": String(away),
      });
    if (!found) throw new Denial(401, "the token is not known here", BEARER);
    if (!found.scopes.includes(need) && !(need === "read" && publicRead))
      throw new Denial(403, `the token "${found.name}" does not have the scope ${need}`);
    return { name: found.name, agent: found.agent };
  };

  const anonymous = (request: Asking, need: Need): Caller => {
    const isHere = isLocal && !FORWARDED.some((name) => request.headers[name] !== undefined);
    if (tokens.length === 0 && isHere) return { name: "loopback", agent: null };
    if (need === "metrics" && isHere) return { name: "loopback", agent: null };
    const isReading = need === "read" || need === "metrics";
    if (isReading && publicRead) return { name: "anybody", agent: null };
    if (tokens.length > 0)
      throw new Denial(401, "this needs a token: Authorization: Bearer …", BEARER);
    if (!isLocal && insecure && need !== "act") return { name: "anybody", agent: null };
    throw new Denial(401, "this needs a token, and none are configured on the service", BEARER);
  };

  return {
    says: sentences(options, isLocal),
    knowsHost: ({ headers, socket }) => isKnown(headers.host, socket.localAddress),
    authorize(request, need) {
      if (need === "nothing") return { name: "anybody", agent: null };
      const token = tokens.length === 0 ? null : tokenOf(request.headers.authorization);
      if (token === null) return anonymous(request, need);
      return bearer(request, token, need === "metrics" ? "read" : need);
    },
  };
}

function tokenOf(header: string | undefined): string | null {
  if (header === undefined) return null;
  const [, token] = /^bearer +([\x21-\x7e]+) *$/i.exec(header) ?? [];
  if (token === undefined || token.length > MOST_TOKEN_LENGTH)
    throw new Denial(401, "the Authorization header must be: Bearer and a token", BEARER);
  return token;
}

function sentences(options: AuthorizerOptions, isLocal: boolean): readonly string[] {
  const { tokens, publicRead, insecure, tls } = options;
  const said: string[] = [];
  if (tokens.length === 0 && isLocal)
    said.push("no tokens are configured: every user of this machine may read, send and act");
  if (tokens.length === 0 && !isLocal && insecure)
    said.push(
      "--insecure without tokens: anyone who reaches this address may read everything and send reports as any agent; actions are refused",
    );
  if (tokens.length > 0) {
    const can = SCOPES.map((scope) => {
      const having = tokens.filter(({ scopes }) => scopes.includes(scope)).length;
      return `${scope} ${having}`;
    });
    said.push(`${count(tokens.length, "token")} (${can.join(", ")})`);
  }
  if (publicRead && !isLocal) said.push("publicRead: reading needs no token");
  if (tokens.length > 0 && !isLocal && !tls)
    said.push("without TLS tokens can be read on the way: configure tls, or a proxy that has it");
  return said;
}

/** For the agents' WebSockets: what their carrier asks at each upgrade. */
export function authorizeAgent(
  auth: Authorizer,
  request: Asking,
):
  | { readonly name: string; readonly agent: string | null }
  | {
      readonly status: 401 | 403;
      readonly why: string;
    } {
  if (!auth.knowsHost(request))
    return { status: 403, why: "the service does not answer under this name: see allowedHosts" };
  // Agents are no browsers, and a page of somebody's must not open a WebSocket to a service on loopback.
  if (request.headers.origin !== undefined)
    return { status: 403, why: "agents are not connected from a page" };
  try {
    return auth.authorize(request, "agent");
  } catch (error) {
    if (!(error instanceof Denial)) throw error;
    return { status: error.status === 401 ? 401 : 403, why: error.message };
  }
}

/**
 * Who tries tokens. An address that sends many wrong ones is turned away for a while. One agent with an old token
 * repeats the same one for hours, and its neighbours behind the same address must not suffer: right tokens are turned
 * away, too, only where several different ones were tried, which is guessing.
 */
interface WrongTokens {
  /** A wrong token came; returns the seconds that the address is turned away, 0 for not yet. */
  wrong(address: string, digest: string): number;
  /** Seconds that also right tokens of this address are turned away. */
  guessing(address: string): number;
}

const MOST_WRONG = 20;
const DIFFERENT_IS_GUESSING = 5;
const WINDOW_MS = 60_000;
const AWAY_MS = 60_000;
const MOST_ADDRESSES = 4096;

interface Attempts {
  sinceMs: number;
  count: number;
  untilMs: number;
  readonly different: Set<string>;
}

function watchWrongTokens(nowMs: () => number): WrongTokens {
  const byAddress = new Map<string, Attempts>();

  /** The oldest goes when there are too many: whoever has so many addresses is not stopped by this. */
  const attemptsOf = (key: string, now: number): Attempts => {
    let found = byAddress.get(key);
    if (!found || (now - found.sinceMs >= WINDOW_MS && now >= found.untilMs)) {
      byAddress.delete(key);
      const oldest = byAddress.keys().next();
      if (byAddress.size >= MOST_ADDRESSES && !oldest.done) byAddress.delete(oldest.value);
      found = { sinceMs: now, count: 0, untilMs: 0, different: new Set() };
      byAddress.set(key, found);
    }
    return found;
  };

  const seconds = (attempts: Attempts, now: number): number =>
    Math.max(0, Math.ceil((attempts.untilMs - now) / 1000));

  return {
    wrong(address, digest) {
      const now = nowMs();
      const attempts = attemptsOf(network(address), now);
      attempts.count++;
      if (attempts.different.size < DIFFERENT_IS_GUESSING) attempts.different.add(digest);
      if (attempts.count > MOST_WRONG && attempts.untilMs <= now) attempts.untilMs = now + AWAY_MS;
      return seconds(attempts, now);
    },
    guessing(address) {
      const attempts = byAddress.get(network(address));
      if (!attempts || attempts.different.size < DIFFERENT_IS_GUESSING) return 0;
      return seconds(attempts, nowMs());
    },
  };
}

/** IPv6 hands out whole /64 networks to single machines. */
function network(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/, "");
  if (!plain.includes(":")) return plain;
  const [left = "", right] = plain.replace(/%.*$/, "").split("::");
  const head = left === "" ? [] : left.split(":");
  const tail = right === undefined || right === "" ? [] : right.split(":");
  const gap = right === undefined ? 0 : Math.max(0, 8 - head.length - tail.length);
  const groups = [...head, ...Array.from({ length: gap }, () => "0"), ...tail];
  return groups.slice(0, 4).join(":");
}
