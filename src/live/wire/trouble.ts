/** Lines for people, told once: the same trouble comes back with every try. */
import { cutText, harmless } from "../../base/text.ts";
import { LIMITS, type Report } from "./messages.ts";

/** Tells a line when it is another than the last; `over` lets the same one be told again. */
export interface Teller {
  tell(this: void, line: string): void;
  over(this: void): void;
}

export function createTeller(onTrouble: (line: string) => void): Teller {
  let last = "";
  return {
    tell(line) {
      const clean = harmless(cutText(line, 500));
      if (clean === last) return;
      last = clean;
      safely(() => onTrouble(clean));
    },
    over() {
      last = "";
    },
  };
}

/** Tells one line a key, and forgets keys beyond a bound so that strangers cannot fill the memory with names. */
export function createTellerByKey(
  onTrouble: (line: string) => void,
): (key: string, line: string) => void {
  const told = new Set<string>();
  return (key, line) => {
    if (told.has(key)) return;
    if (told.size >= 10_000) told.clear();
    told.add(key);
    safely(() => onTrouble(harmless(cutText(line, 500))));
  };
}

/** Others' code that must not end a socket's event in an exception. */
export function safely(call: () => void): void {
  try {
    call();
  } catch {
    // Whoever was called has to look after its own errors; the carrier goes on.
  }
}

/** Whether a report speaks of times that cannot have been yet, by the service's clock. */
export function isAhead(report: Report, nowMs: number): boolean {
  const most = nowMs + LIMITS.futureMs;
  switch (report.kind) {
    case "points":
      return report.endMs.some((endMs) => endMs > most);
    case "beat":
      return report.nowMs > most;
    case "event":
      return report.atMs > most;
    case "job":
      return report.startedMs > most;
  }
}
