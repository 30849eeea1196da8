/** Something asked of the service, asked again when what it depends on changes; what was there stays meanwhile. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ask, AskError } from "./api.ts";
import { useObservable } from "./observable.ts";
import { snapshots } from "./store.ts";
import { tokens } from "./token.ts";

/** After an outage that the line survived there is no snapshot to say that it is over. */
const TRY_AGAIN_MS = 4000;

export interface Asked<T> {
  /** The last answer; null before the first. */
  readonly value: T | null;
  /** Why the last try failed; null when it did not. */
  readonly error: AskError | null;
  readonly again: () => void;
}

/** Asked anew after each snapshot, with another token, and when one of `causes` changes. null asks nothing. `get`: the same function each time. */
export function useAsked<T>(
  path: string | null,
  causes: readonly unknown[] = [],
  get: (path: string, init: RequestInit) => Promise<T> = ask,
): Asked<T> {
  const [answer, setAnswer] = useState<{
    readonly path: string | null;
    readonly value: T | null;
    readonly error: AskError | null;
  }>({ path, value: null, error: null });
  const [tries, setTries] = useState(0);
  const latest = useRef(0);
  const seen = useObservable(snapshots);
  const token = useObservable(tokens);
  const again = useCallback(() => setTries((count) => count + 1), []);
  useEffect(() => {
    if (path === null) return;
    const request = new AbortController();
    const number = ++latest.current;
    get(path, { signal: request.signal }).then(
      (value) => {
        if (number === latest.current) setAnswer({ path, value, error: null });
      },
      (error: unknown) => {
        if (number !== latest.current || request.signal.aborted) return;
        const why = error instanceof AskError ? error : new AskError(0, String(error));
        setAnswer((before) => ({
          path,
          value: before.path === path ? before.value : null,
          error: why,
        }));
      },
    );
    return () => request.abort();
  }, [path, seen, token, tries, ...causes]);
  const isSame = answer.path === path;
  const error = isSame ? answer.error : null;
  useEffect(() => {
    if (error?.status !== 0) return;
    const retry = (): void => {
      // Nobody looks; the timer goes on, for whoever comes back has waited already.
      if (document.hidden) timer = setTimeout(retry, TRY_AGAIN_MS);
      else again();
    };
    let timer = setTimeout(retry, TRY_AGAIN_MS);
    return () => clearTimeout(timer);
    // Each failure is an object of its own. Not by `tries`: a slow answer must not be cut off by the next try.
  }, [error]);
  return { value: isSame ? answer.value : null, error, again };
}
