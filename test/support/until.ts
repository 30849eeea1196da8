/** Waiting in tests: for what is to happen, never for a time. */
import { setTimeout as pause } from "node:timers/promises";

/**
 * Looks until it sees something other than null, undefined and false, and gives that back. `what` tells, in the error, what
 * was awaited. The limit is generous: machines that run tests are busy.
 */
export async function until<T>(
  look: () => Promise<T> | T,
  what: string | (() => string) = "",
  withinMs = 60_000,
): Promise<Exclude<NonNullable<T>, false>> {
  const end = performance.now() + withinMs;
  for (;;) {
    let trouble = "";
    try {
      const found = await look();
      if (found !== null && found !== undefined && found !== false)
        return found as Exclude<NonNullable<T>, false>;
    } catch (error) {
      trouble = ` (${error instanceof Error ? error.message : "?"})`;
    }
    if (performance.now() > end) {
      const words = typeof what === "string" ? what : what().slice(-2000);
      throw new Error(`not within ${withinMs / 1000} s: ${words || String(look)}${trouble}`);
    }
    await pause(5);
  }
}
