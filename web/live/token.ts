/** The viewer's tokens: one to read with, and one to act with where that is another. */
import { observable } from "./observable.ts";

export type TokenScope = "read" | "act";

/** Counts changes of the tokens: whoever was refused may try again. */
export const tokens = observable(0);
/** "": none. */
const known: Record<TokenScope, string> = { read: stored("read"), act: stored("act") };

/** What a header can carry. */
export function isToken(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}

/**
 * Kept until the tab is closed, not longer: it may act. One that was given for an action does not take the place of the
 * one that reads, for it may not be allowed to.
 */
export function useToken(given: string, scope: TokenScope): void {
  known[scope] = given;
  try {
    sessionStorage.setItem(nameOf(scope), given);
  } catch {
    // Storage may be full or forbidden: the token holds for this page then.
  }
  tokens.set(tokens.value + 1);
}

export function headers(scope: TokenScope): Record<string, string> {
  const token = (scope === "act" && known.act) || known.read;
  return token === "" ? {} : { authorization: `Bearer ${token}` };
}

export const hasToken = (): boolean => known.read !== "";

function stored(scope: TokenScope): string {
  try {
    const token = sessionStorage.getItem(nameOf(scope)) ?? "";
    return isToken(token) ? token : "";
  } catch {
    return "";
  }
}

function nameOf(scope: TokenScope): string {
  return scope === "read" ? "faultline-token" : "faultline-act-token";
}
