/** What the viewer chose, kept in this browser. Where nothing can be kept it holds until the page is closed. */
import { type Observable, observable } from "../live/observable.ts";

/** `read` makes a value of what was kept, which anybody may have written; null takes the default. */
export function kept<T>(
  key: string,
  preset: T,
  read: (text: string) => T | null,
  write: (value: T) => string = String,
): Observable<T> {
  const name = `faultline-${key}`;
  const choice = observable(parsed(stored(name)) ?? preset);
  // Another tab's choice holds here, too.
  globalThis.addEventListener?.("storage", (event) => {
    if (event.key === name) choice.set(parsed(event.newValue) ?? preset);
  });
  return {
    get value() {
      return choice.value;
    },
    set(value) {
      try {
        globalThis.localStorage?.setItem(name, write(value));
      } catch {
        // Storage may be full or forbidden: the choice holds for this page then.
      }
      choice.set(value);
    },
    watch: (listener) => choice.watch(listener),
  };

  function parsed(text: string | null): T | null {
    return text === null ? null : read(text);
  }
}

/** For choices out of a few words. */
export function oneOf<T extends string>(...words: readonly T[]): (text: string) => T | null {
  return (text) => words.find((word) => word === text) ?? null;
}

function stored(name: string): string | null {
  try {
    return globalThis.localStorage?.getItem(name) ?? null;
  } catch {
    return null;
  }
}
