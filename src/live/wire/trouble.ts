/** Trouble reported to people once: the same line comes back with every retry. */
import { cutText, harmless } from "../../base/text.ts";

/** Reports a line that differs from the last one; after `clear` the same line is reported again. */
export interface TroubleReporter {
  report(this: void, line: string): void;
  clear(this: void): void;
}

export function createTroubleReporter(onTrouble: (line: string) => void): TroubleReporter {
  let last = "";
  return {
    report(line) {
      const clean = harmless(cutText(line, 500));
      if (clean === last) return;
      last = clean;
      safely(() => onTrouble(clean));
    },
    clear() {
      last = "";
    },
  };
}

/** Reports one line per key; keys beyond a bound are forgotten, so that strangers cannot fill the memory with names. */
export function createTroubleReporterByKey(
  onTrouble: (line: string) => void,
): (key: string, line: string) => void {
  const reported = new Set<string>();
  return (key, line) => {
    if (reported.has(key)) return;
    if (reported.size >= 10_000) reported.clear();
    reported.add(key);
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
