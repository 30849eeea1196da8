/**
 * Read-only links to single incidents. A link is a token of its own: incident, times and maker, signed with a key that lies
 * in the history, so that links outlive restarts and hold at every service that shares it; and with the hash of the maker's
 * token, so that links do not outlive that one.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { History } from "../../../history/history.ts";
import { type LinksView, type OpenLink, Refusal } from "../view.ts";

export interface LinkStore {
  /** Rejects where it is away. */
  readonly history: Pick<History, "document" | "putDocument">;
  nowMs(this: void): number;
  /** What stands for the right of this maker to share this incident; null where there is none, or no more. */
  rightOf(this: void, who: string, incident: string): string | null;
}

export const LINK_PREFIX = "fl1.";
/** Backups leave it out. */
export const LINK_KEY = "access/link-key";
const REVOKED = "access/links-revoked/";
/** The key is asked for again so often: two services may have made one at the same moment. */
const KEY_MS = 10_000;

/** How far clocks of services may differ. */
const CLOCKS_MS = 60_000;
const MOST_LIFE_MS = 90 * 86_400_000;

export class Links implements LinksView {
  readonly #store: LinkStore;
  #key: { readonly bytes: Buffer | null; readonly atMs: number } | null = null;

  constructor(store: LinkStore) {
    this.#store = store;
  }

  async create(
    incident: string,
    lifeMs: number,
    who: string,
  ): Promise<{ link: string; expiresMs: number }> {
    const { nowMs, history, rightOf } = this.#store;
    const right = rightOf(who, incident);
    if (right === null) throw new Refusal(403, "the right to share the incident is gone");
    if ((await this.#readKey()) === null) {
      await history.putDocument(LINK_KEY, { key: randomBytes(32).toString("hex") });
      this.#key = null;
    }
    const key = await this.#readKey();
    if (key === null) throw new Refusal(503, "the key of links cannot be kept at the moment");
    // Behind what was revoked, also within the same millisecond.
    const issuedMs = Math.max(nowMs(), revokedMs(await history.document(REVOKED + incident)) + 1);
    const expiresMs = issuedMs + lifeMs;
    const text = JSON.stringify([incident, issuedMs, expiresMs, who]);
    const body = LINK_PREFIX + Buffer.from(text).toString("base64url");
    return { link: `${body}.${signed(body, right, key).toString("base64url")}`, expiresMs };
  }

  async revoke(incident: string): Promise<void> {
    const { nowMs, history } = this.#store;
    // Clocks of services differ: links that another one has just made are revoked, too.
    const atMs = Math.max(
      nowMs() + CLOCKS_MS,
      revokedMs(await history.document(REVOKED + incident)),
    );
    await history.putDocument(REVOKED + incident, { atMs });
  }

  async open(link: string): Promise<OpenLink | null> {
    const [, body, signature] = /^(fl1\.[\w-]{1,800})\.([\w-]{43})$/.exec(link) ?? [];
    const key = body === undefined ? null : await this.#readKey();
    if (body === undefined || signature === undefined || key === null) return null;
    const claims = claimsOf(body);
    if (claims === null) return null;
    const [incident, issuedMs, expiresMs, who] = claims;
    const right = this.#store.rightOf(who, incident);
    if (right === null) return null;
    if (!timingSafeEqual(signed(body, right, key), Buffer.from(signature, "base64url")))
      return null;
    const nowMs = this.#store.nowMs();
    if (expiresMs <= nowMs) return null;
    // Only somebody who has the key, of an old backup, could have made such a one.
    if (issuedMs > nowMs + 2 * CLOCKS_MS || expiresMs - issuedMs > MOST_LIFE_MS) return null;
    const isRevoked = revokedMs(await this.#store.history.document(REVOKED + incident)) >= issuedMs;
    return isRevoked ? null : { incident, who, expiresMs };
  }

  async #readKey(): Promise<Buffer | null> {
    const { nowMs, history } = this.#store;
    if (this.#key === null || Math.abs(nowMs() - this.#key.atMs) > KEY_MS) {
      const { key } = ((await history.document(LINK_KEY)) ?? {}) as { key?: unknown };
      const bytes = typeof key === "string" && key.length === 64 ? Buffer.from(key, "hex") : null;
      this.#key = { bytes, atMs: nowMs() };
    }
    return this.#key.bytes;
  }
}

function signed(body: string, right: string, key: Buffer): Buffer {
  return createHmac("sha256", key).update(`${body}\n${right}`).digest();
}

type Claims = readonly [incident: string, issuedMs: number, expiresMs: number, who: string];

/** Not trusted before the signature was compared. */
function claimsOf(body: string): Claims | null {
  try {
    const text = Buffer.from(body.slice(LINK_PREFIX.length), "base64url").toString();
    const said = JSON.parse(text) as unknown;
    const types = Array.isArray(said) ? said.map((one) => typeof one).join() : "";
    return types === "string,number,number,string" ? (said as Claims) : null;
  } catch {
    return null;
  }
}

function revokedMs(document: unknown): number {
  const { atMs } = (document ?? {}) as { atMs?: unknown };
  return typeof atMs === "number" ? atMs : -Infinity;
}
