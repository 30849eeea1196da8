/** What is open, asked for from time to time: for a hidden tab, which holds no stream but has a title. */
import { ask, AskError, type Incident, paths } from "./api.ts";

const EVERY_MS = 15_000;
/** As many as a snapshot holds. */
const MOST = 200;

/** `areAll`: none were left out. Returns how to stop; a request under way tells nothing any more then. */
export function watchOpen(
  tell: (open: readonly Incident[], areAll: boolean) => void,
  everyMs = EVERY_MS,
): () => void {
  const stopping = new AbortController();
  const { signal } = stopping;
  const look = async (): Promise<void> => {
    try {
      const path = paths.incidents(`?open=true&most=${MOST}`);
      const answer = await ask<{ readonly incidents: readonly Incident[] }>(path, { signal });
      if (!signal.aborted) tell(answer.incidents, answer.incidents.length < MOST);
    } catch (error) {
      // A token that is refused is refused again. Anything else: the next try comes by itself.
      if (error instanceof AskError && (error.status === 401 || error.status === 403)) stop();
    }
  };
  const timer = setInterval(() => void look(), everyMs);
  const stop = (): void => {
    clearInterval(timer);
    stopping.abort();
  };
  return stop;
}
