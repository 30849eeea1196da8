/** Who looks at the page, and what they may: as the service says. */
import { ask, post } from "./api.ts";
import { observable } from "./observable.ts";
import { line } from "./store.ts";
import { tokens, useToken } from "./token.ts";

export interface Session {
  /** Whether people can sign in. */
  readonly canSignIn: boolean;
  /** As it stands in the audit trail; null for nobody. */
  readonly name: string | null;
  readonly scopes: readonly string[];
  /** Patterns of the jobs that they see; null for all. */
  readonly jobs: readonly string[] | null;
  /** Where the page was opened by a read-only link. */
  readonly link: { readonly incident: string; readonly expiresMs: number } | null;
}

/** null before the service has said. */
export const session = observable<Session | null>(null);

const PERSON = "oidc:";

/** The person who has signed in; null where a token or nothing says who it is. */
export function personOf(now: Session | null): string | null {
  return now?.name?.startsWith(PERSON) ? now.name.slice(PERSON.length) : null;
}

/** Asked at the start, with another token, and when the service turns the page away: a session may have ended. */
export function followSession(): void {
  const look = (): void =>
    void ask<Session>("/session").then(
      (said) => session.set(said),
      () => {
        // What was known holds until the service answers.
      },
    );
  look();
  tokens.watch(look);
  let wasRefused = false;
  line.watch(({ state }) => {
    const isRefused = state === "refused";
    if (isRefused && !wasRefused) look();
    wasRefused = isRefused;
  });
}

/** Where to sign in, to come back to this place of the page. */
export function signInAddress(): string {
  return `/auth/login?to=${encodeURIComponent(location.hash)}`;
}

/** Tokens of the tab would stand before the person. */
export function forgetTokens(): void {
  useToken("", "read");
  useToken("", "act");
}

export async function signOut(): Promise<void> {
  await post("/auth/logout", {});
  location.reload();
}
