/** A value that parts of the page look at: they are drawn again when it changes, and only they. */
import { useEffect, useState } from "preact/hooks";

export interface Observable<T> {
  readonly value: T;
  set(value: T): void;
  /** Returns how to stop. */
  watch(listener: (value: T) => void): () => void;
}

export function observable<T>(value: T): Observable<T> {
  const listeners = new Set<(value: T) => void>();
  return {
    get value() {
      return value;
    },
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const listener of listeners) listener(value);
    },
    watch(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export function useObservable<T>(source: Observable<T>): T {
  const [, draw] = useState(0);
  const drawn = source.value;
  useEffect(() => {
    const again = (): void => draw((count) => count + 1);
    // It may have changed between drawing and this.
    if (!Object.is(source.value, drawn)) again();
    return source.watch(again);
  }, [source]);
  return drawn;
}
