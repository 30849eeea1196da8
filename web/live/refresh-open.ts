/** What open incidents lose grows without a word of the service's: it is asked for while somebody looks. */
import { ask, type Incident, paths } from "./api.ts";
import { incidents, line } from "./store.ts";
import type { FeedEvent } from "./take-events.ts";

const EVERY_MS = 5000;
/** The newest; nobody reads more figures than that. */
const MOST = 20;

/** Hands them over as if they had been told. Returns how to stop. */
export function refreshOpen(tell: (event: FeedEvent) => void): () => void {
  let isAsking = false;
  const refresh = async (): Promise<void> => {
    const isAnyOpen = [...incidents.value.values()].some(({ state }) => state !== "resolved");
    if (isAsking || document.hidden || line.value.state !== "up" || !isAnyOpen) return;
    isAsking = true;
    try {
      const path = paths.incidents(`?open=true&most=${MOST}`);
      const answer = await ask<{ readonly incidents: readonly Incident[] }>(path);
      for (const incident of answer.incidents) tell({ type: "incident", incident });
    } catch {
      // The next try comes by itself.
    } finally {
      isAsking = false;
    }
  };
  const timer = setInterval(() => void refresh(), EVERY_MS);
  return () => clearInterval(timer);
}
