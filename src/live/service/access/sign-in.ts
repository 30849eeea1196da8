/** People who sign in, from the first click to the end of their session. Everything is in memory, and bounded. */
import { randomBytes } from "node:crypto";
import { harmless } from "../../../base/text.ts";
import type { IncomingHttpHeaders } from "node:http";
import { type Attempt, OidcClient, type OidcConfig, SignInError } from "./oidc.ts";
import { cookieName, cookieOf, type Person, Sessions, setCookie } from "./sessions.ts";

export interface SignInOptions {
  readonly oidc: OidcConfig | null;
  /** Whether the service itself speaks TLS. */
  readonly isTls: boolean;
  nowMs(this: void): number;
}

interface Pending {
  readonly attempt: Attempt;
  /** Where on the page the person was. */
  readonly to: string;
  readonly untilMs: number;
}

const CALLBACK = "/auth/callback";
const ATTEMPT_MS = 600_000;
const MOST_PENDING = 4096;

export class SignIn {
  readonly #options: SignInOptions;
  #client: OidcClient | null;
  #sessions: Sessions;
  /** By the id in the cookie; each holds for one answer. */
  readonly #pending = new Map<string, Pending>();

  constructor(options: SignInOptions) {
    this.#options = options;
    this.#client = options.oidc && new OidcClient(options.oidc, options.nowMs);
    this.#sessions = new Sessions(options.nowMs);
  }

  get isOffered(): boolean {
    return this.#client !== null;
  }

  /** Another provider knows other people: its sessions begin anew. */
  reload(oidc: OidcConfig | null): void {
    const before = this.#client?.config;
    if (before?.issuer !== oidc?.issuer || before?.clientId !== oidc?.clientId)
      this.#sessions = new Sessions(this.#options.nowMs);
    this.#client = oidc && new OidcClient(oidc, this.#options.nowMs);
  }

  personOf(headers: IncomingHttpHeaders): Person | null {
    return this.#client ? this.#sessions.of(cookieOf(headers, this.#name("session"))) : null;
  }

  /** `origin`: of the request, where the configuration does not say where people come back to. */
  async begin(to: string, origin: string): Promise<{ url: string; cookie: string }> {
    const client = this.#offered();
    const { url, attempt } = await client.begin(client.config.redirectUrl ?? origin + CALLBACK);
    const nowMs = this.#options.nowMs();
    for (const [key, { untilMs }] of this.#pending)
      if (untilMs <= nowMs || this.#pending.size >= MOST_PENDING) this.#pending.delete(key);
    const id = randomBytes(32).toString("base64url");
    this.#pending.set(id, { attempt, to, untilMs: nowMs + ATTEMPT_MS });
    return { url, cookie: this.#cookie("sign-in", id, ATTEMPT_MS / 1000) };
  }

  /** Rejects with SignInError. */
  async finish(
    answer: URLSearchParams,
    headers: IncomingHttpHeaders,
  ): Promise<{ person: Person; detail: string; to: string; cookies: readonly string[] }> {
    const client = this.#offered();
    const id = cookieOf(headers, this.#name("sign-in")) ?? "";
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (!pending || pending.untilMs <= this.#options.nowMs())
      throw new SignInError(401, "this browser has begun no sign-in, or it took too long");
    const { subject, ...person } = await client.finish(answer, pending.attempt);
    const { groups, sessionSeconds } = client.config;
    const own = groups.filter(({ group }) => group === "*" || person.groups.includes(group));
    if (own.length === 0)
      throw new UnknownGroup(person.name, `${person.name} is in no group that may use Faultline`);
    const session = this.#sessions.open(person, 1000 * sessionSeconds);
    const names = own.map(({ group }) => group).join(", ");
    return {
      person,
      detail: `subject ${subject} of ${harmless(client.config.issuer)}; groups: ${names}`,
      to: pending.to,
      cookies: [this.#cookie("session", session, sessionSeconds), this.#cookie("sign-in", "", 0)],
    };
  }

  /** Returns the cookie that ends the browser's part. */
  end(headers: IncomingHttpHeaders): string {
    this.#sessions.close(cookieOf(headers, this.#name("session")));
    return this.#cookie("session", "", 0);
  }

  #offered(): OidcClient {
    if (this.#client) return this.#client;
    throw new SignInError(401, "nobody can sign in here: oidc is not configured");
  }

  get #isSecure(): boolean {
    const { redirectUrl = null } = this.#client?.config ?? {};
    return this.#options.isTls || (redirectUrl?.startsWith("https:") ?? false);
  }

  #name(word: "session" | "sign-in"): string {
    return cookieName(word, this.#isSecure);
  }

  #cookie(word: "session" | "sign-in", value: string, lifeSeconds: number): string {
    return setCookie(this.#name(word), value, lifeSeconds, this.#isSecure);
  }
}

/** The provider knows the person, and the configuration does not. */
export class UnknownGroup extends SignInError {
  readonly person: string;
  constructor(person: string, message: string) {
    super(403, message);
    this.person = person;
  }
}
