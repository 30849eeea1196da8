/** What became of each fault, kept until the tab is closed: after a reload the incident tells only its latest change. */
import type { Broken, Found, Trial } from "./trial.ts";

const NAME = "faultline-demo-trial";

export function keepTrial({ fault: { id, sinceMs }, found }: Trial): void {
  try {
    globalThis.sessionStorage?.setItem(`${NAME}-${id}`, JSON.stringify({ id, sinceMs, found }));
  } catch {
    // Storage may be full or forbidden.
  }
}

/** null where nothing is known of this very fault. */
export function keptTrial(fault: Broken): Trial | null {
  try {
    return readTrial(globalThis.sessionStorage?.getItem(`${NAME}-${fault.id}`) ?? "", fault);
  } catch {
    return null;
  }
}

/** Anybody may have written it. */
export function readTrial(text: string, fault: Broken): Trial | null {
  let kept: unknown;
  try {
    kept = JSON.parse(text);
  } catch {
    return null;
  }
  const { id, sinceMs, found } = (kept ?? {}) as Record<string, unknown>;
  if (id !== fault.id || sinceMs !== fault.sinceMs) return null;
  if (found !== null && !isFound(found)) return null;
  return { fault, found, isFixed: false };
}

function isFound(value: unknown): value is Found {
  if (typeof value !== "object" || value === null) return false;
  const { incident, afterMs, isAtMost, isRight, says } = value as Record<string, unknown>;
  return (
    typeof incident === "string" &&
    Number.isFinite(afterMs) &&
    typeof isAtMost === "boolean" &&
    typeof isRight === "boolean" &&
    typeof says === "string"
  );
}
