/**
 * Who may do what. On loopback without tokens every user of the machine may do everything; elsewhere a token says what
 * its bearer may do, and a person's groups what a person who has signed in may: send reports (agent), look (read),
 * approve actions (act), for all jobs or for some. Only hashes of tokens are kept.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { UserError } from "../../../base/errors.ts";
import { fitsAny } from "../../../base/patterns.ts";
import { count } from "../../../base/text.ts";
import {
  type Caller,
  type Grant,
  type GroupGrant,
  jobsFor,
  type Scope,
  SCOPES,
} from "../access/grants.ts";
import type { Person } from "../access/sessions.ts";
import { Refusal } from "../view.ts";
import { isLoopback, knownHosts } from "./known-hosts.ts";
import { type WrongTokens, watchWrongTokens } from "./wrong-tokens.ts";

/** "metrics": as read, but a scraper on this machine needs no token. "nothing": anybody. */
export type Need = Scope | "metrics" | "nothing";

export interface Token extends Grant {
  /** Stands in the audit trail. */
  readonly name: string;
  /** Only the agent of this name may use it; null for any. */
  readonly agent: string | null;
  /** SHA-256 of the token, 64 hexadecimal digits. */
  readonly sha256: string;
}

/** What of a request matters here. */
export type Asking = Pick<IncomingMessage, "headers"> & {
  readonly method?: string | undefined;
  readonly socket: {
    readonly remoteAddress?: string | undefined;
    readonly localAddress?: string | undefined;
  };
};

export interface Authorizer {
  /** Sentences: who may do what. */
  readonly says: readonly string[];
  knowsHost(this: void, request: Asking): boolean;
  /** Throws Denial. */
  authorize(this: void, request: Asking, need: Need): Caller;
  /** Whether the caller who was let in would be again, in the same way; nothing is counted, whoever guesses meanwhile. */
  holds(this: void, request: Asking, need: Need, caller: Caller): boolean;
  /** What stands for somebody's right to act on an incident, for links; null where there is none. Never shown. */
  rightOf(this: void, who: string, incident: string): string | null;
  /** Hears of each token that is turned away, and from which address it came. */
  onRefused(this: void, listener: (address: string) => void): void;
  /** From now on these hold. Throws UserError, and changes nothing then. */
  reload(this: void, rules: AccessRules): void;
}

/** What can change while the service runs. */
export interface AccessRules {
  readonly tokens: readonly Token[];
  readonly publicRead: boolean;
  readonly allowedHosts: readonly string[];
  /** What people who sign in may; null where nobody can sign in. */
  readonly groups?: readonly GroupGrant[] | null;
}

export interface AuthorizerOptions extends AccessRules {
  readonly host: string;
  readonly insecure: boolean;
  readonly tls: boolean;
  /** Who signed in, by the cookie of a request. */
  personOf?(this: void, request: Asking): Person | null;
  nowMs(): number;
}

export class Denial extends Refusal {
  readonly headers: Readonly<Record<string, string>>;
  /** Whose it is, where that is known. */
  readonly who: string | null;
  constructor(
    status: number,
    message: string,
    headers: Readonly<Record<string, string>> = {},
    who: string | null = null,
  ) {
    super(status, message);
    this.name = "Denial";
    this.headers = headers;
    this.who = who;
  }
}

/** Headers that a proxy adds: the caller may be anywhere then, though the connection comes from this machine. */
const FORWARDED = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"];
const BEARER = { "www-authenticate": 'Bearer realm="faultline"' };
const MOST_TOKEN_LENGTH = 1024;

export function makeAuthorizer(options: AuthorizerOptions): Authorizer {
  const guard = watchWrongTokens(() => options.nowMs());
  let inForce = options;
  let rules = rulesOf(options);
  let refused: (address: string) => void = () => undefined;
  const authorize = (request: Asking, need: Need, counting: WrongTokens | null): Caller => {
    if (need === "nothing") return { name: "anybody", agent: null, jobs: null };
    const scope = need === "metrics" ? "read" : need;
    const token = rules.isOpen ? null : tokenOf(request.headers.authorization);
    if (token !== null)
      try {
        return rules.bearer(request, token, scope, counting);
      } catch (error) {
        const isUnknown = error instanceof Denial && error.status !== 403;
        if (isUnknown && counting !== null) refused(request.socket.remoteAddress ?? "");
        throw error;
      }
    const person = rules.isOpen ? null : (options.personOf?.(request) ?? null);
    return person === null
      ? rules.anonymous(request, need)
      : rules.signedIn(request, person, scope);
  };
  return {
    get says() {
      return sentences(inForce, isLoopback(inForce.host));
    },
    knowsHost: ({ headers, socket }) => rules.isKnown(headers.host, socket.localAddress),
    authorize: (request, need) => authorize(request, need, guard),
    holds(request, need, { name, agent, jobs }) {
      try {
        const now = authorize(request, need, null);
        return now.name === name && now.agent === agent && String(now.jobs) === String(jobs);
      } catch {
        return false;
      }
    },
    onRefused: (listener) => void (refused = listener),
    rightOf: (who, incident) => rules.rightOf(who, incident),
    reload(next) {
      rules = rulesOf({ ...options, ...next });
      inForce = { ...options, ...next };
    },
  };
}

function rulesOf(options: AuthorizerOptions) {
  const { host, tokens, publicRead, insecure, groups = null } = options;
  const isLocal = isLoopback(host);
  /** Nobody has to say who they are. */
  const isOpen = tokens.length === 0 && groups === null;
  if (!isLocal && isOpen && !insecure)
    throw new UserError(
      `${host} can be reached from other machines, and no tokens are configured`,
      "configure tokens (docs/guides/serve.md), stay on 127.0.0.1, or say --insecure",
      2,
    );
  const hashes = tokens.map(({ sha256 }) => Buffer.from(sha256, "hex"));

  /** All are compared, so that the time does not tell which one was near. */
  const find = (digest: Buffer): Token | null => {
    let found: Token | null = null;
    for (const [i, hash] of hashes.entries())
      if (hash.length === digest.length && timingSafeEqual(hash, digest)) found = tokens[i]!;
    return found;
  };

  /** What publicRead gives everybody is not taken from those who say who they are. */
  const granted = (
    grants: readonly Grant[],
    scope: Scope,
    who: string,
    words: string,
  ): readonly string[] | null => {
    const jobs = jobsFor(grants, scope);
    if (jobs !== undefined) return jobs;
    if (scope === "read" && publicRead) return null;
    throw new Denial(403, `${words} does not have the scope ${scope}`, {}, who);
  };

  return {
    isOpen,
    isKnown: knownHosts(host, options.allowedHosts),
    rightOf(who: string, incident: string): string | null {
      if (isOpen) return who === "loopback" ? who : null;
      // What a person may is known while they are signed in.
      if (who.startsWith("oidc:")) return groups === null ? null : "oidc";
      const token = tokens.find(({ name }) => name === who);
      const jobs = token && jobsFor([token], "act");
      // Names of jobs have no dots: ids of incidents begin with the job's.
      const isTheirs =
        jobs === null || fitsAny(incident.slice(0, incident.indexOf(".")), jobs ?? []);
      return token && isTheirs ? token.sha256 : null;
    },
    bearer(request: Asking, token: string, scope: Scope, counting: WrongTokens | null): Caller {
      const address = request.socket.remoteAddress ?? "";
      const digest = createHash("sha256").update(token).digest();
      const found = find(digest);
      const away = found
        ? counting?.guessing(address)
        : counting?.wrong(address, digest.toString("hex"));
      if (away)
        throw new Denial(429, "too many wrong tokens came from this address", {
          "retry-after": String(away),
        });
      if (!found) throw new Denial(401, "the token is not known here", BEARER);
      const { name, agent } = found;
      return { name, agent, jobs: granted([found], scope, name, `the token "${name}"`) };
    },
    signedIn(request: Asking, { name, groups: own }: Person, scope: Scope): Caller {
      const { method = "GET", headers } = request;
      // A cookie comes along by itself. Browsers say where a request comes from, and that was checked before.
      const isSaid = headers.origin !== undefined || headers["sec-fetch-site"] !== undefined;
      if (method !== "GET" && method !== "HEAD" && !isSaid)
        throw new Denial(403, "a request with a cookie must say where it comes from: Origin");
      const grants = (groups ?? []).filter(({ group }) => group === "*" || own.includes(group));
      const who = `oidc:${name}`;
      return { name: who, agent: null, jobs: granted(grants, scope, who, name) };
    },
    anonymous(request: Asking, need: Need): Caller {
      const isHere = isLocal && !FORWARDED.some((name) => request.headers[name] !== undefined);
      const everything = { agent: null, jobs: null };
      if ((isOpen || need === "metrics") && isHere) return { name: "loopback", ...everything };
      const isReading = need === "read" || need === "metrics";
      if (isReading && publicRead) return { name: "anybody", ...everything };
      if (!isOpen) {
        const way = groups === null ? "a token: Authorization: Bearer …" : "a token, or to sign in";
        throw new Denial(401, `this needs ${way}`, BEARER);
      }
      if (!isLocal && insecure && need !== "act") return { name: "anybody", ...everything };
      throw new Denial(401, "this needs a token, and none are configured on the service", BEARER);
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
  const { tokens, publicRead, insecure, tls, groups = null } = options;
  const said: string[] = [];
  if (groups !== null) said.push(`people sign in: ${count(groups.length, "group")}`);
  if (tokens.length === 0 && groups !== null)
    said.push("no tokens are configured: agents can report over NATS only");
  if (tokens.length === 0 && groups === null && isLocal)
    said.push("no tokens are configured: every user of this machine may read, send and act");
  if (tokens.length === 0 && groups === null && !isLocal && insecure)
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
): Caller | { readonly status: 401 | 403; readonly why: string } {
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
