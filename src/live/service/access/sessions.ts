/** People who have signed in: a random id in a cookie, and what is known of the person in memory, until it expires. */
import { createHash, randomBytes } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

/** What is kept of a person's claims. */
export interface Person {
  readonly name: string;
  /** As the provider names them; what they may is decided at each request. */
  readonly groups: readonly string[];
}

interface Session {
  readonly person: Person;
  readonly untilMs: number;
}

const MOST_SESSIONS = 10_000;
const ID = /^[A-Za-z0-9_-]{43}$/;

export class Sessions {
  /** By the hash of the id, the oldest first: ids that are looked up tell nothing by the time that takes. */
  readonly #sessions = new Map<string, Session>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Returns the id. */
  open(person: Person, lifeMs: number): string {
    for (const [key, { untilMs }] of this.#sessions)
      if (untilMs <= this.#nowMs() || this.#sessions.size >= MOST_SESSIONS)
        this.#sessions.delete(key);
    const id = randomBytes(32).toString("base64url");
    this.#sessions.set(keyOf(id), { person, untilMs: this.#nowMs() + lifeMs });
    return id;
  }

  of(id: string | null): Person | null {
    if (id === null || !ID.test(id)) return null;
    const found = this.#sessions.get(keyOf(id));
    return found && found.untilMs > this.#nowMs() ? found.person : null;
  }

  close(id: string | null): void {
    if (id !== null) this.#sessions.delete(keyOf(id));
  }
}

function keyOf(id: string): string {
  return createHash("sha256").update(id).digest("base64url");
}

/** The value of a cookie; null where it is absent, or there twice. */
export function cookieOf({ cookie = "" }: IncomingHttpHeaders, name: string): string | null {
  const values = cookie
    .split(";")
    .map((part) => part.trim())
    .filter((part) => part.startsWith(`${name}=`))
    .map((part) => part.slice(name.length + 1));
  return values.length === 1 ? values[0]! : null;
}

/** `isSecure`: over TLS, also that of a proxy in front; browsers then take it from this very host alone. */
export function cookieName(word: "session" | "sign-in", isSecure: boolean): string {
  return `${isSecure ? "__Host-" : ""}faultline-${word}`;
}

/** A lifetime of 0 takes it back. */
export function setCookie(
  name: string,
  value: string,
  lifeSeconds: number,
  isSecure: boolean,
): string {
  const kept = `Path=/; Max-Age=${Math.floor(lifeSeconds)}; HttpOnly; SameSite=Lax`;
  return `${name}=${value}; ${kept}${isSecure ? "; Secure" : ""}`;
}
