/** Says new incidents to those who listen to the page: one sentence at a time, not more than one in some seconds. */
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Incident } from "../live/api.ts";
import { jobOf } from "../fleet/kinds.ts";
import { incidents, snapshots } from "../live/store.ts";

const PAUSE_MS = 5000;

export function Announcer(): VNode {
  const [said, say] = useState("");
  useEffect(() => {
    const announced = new Map<string, string>();
    let waiting: Incident[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    let seen = -1;
    const speak = (): void => {
      timer = undefined;
      if (waiting.length === 0) return;
      say(sentenceOf(waiting));
      waiting = [];
      timer = setTimeout(speak, PAUSE_MS);
    };
    const look = (all: ReadonlyMap<string, Incident>): void => {
      // What was open when the page came up is on the page; only what comes is announced.
      const isOld = seen < 0 && snapshots.value === 0;
      for (const incident of all.values()) {
        const before = announced.get(incident.id);
        announced.set(incident.id, incident.state);
        if (before === incident.state || incident.state === "suspected" || isOld) continue;
        // One from the past, which the viewer has opened.
        if (before === undefined && incident.state === "resolved") continue;
        waiting = [...waiting.filter(({ id }) => id !== incident.id), incident];
      }
      for (const id of announced.keys()) if (!all.has(id)) announced.delete(id);
      seen = snapshots.value;
      if (timer === undefined && waiting.length > 0) timer = setTimeout(speak, 0);
    };
    look(incidents.value);
    waiting = [];
    const stop = incidents.watch(look);
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, []);
  return (
    <p class="visually-hidden" role="status" aria-live="polite">
      {said}
    </p>
  );
}

const STATE = {
  suspected: "Something is wrong",
  confirmed: "New incident",
  relapsed: "It came back",
  resolved: "Resolved",
} as const;

export function sentenceOf(fresh: readonly Incident[]): string {
  const [last] = fresh.slice(-1);
  if (!last) return "";
  if (fresh.length > 1)
    return `${fresh.length} incidents changed, the last: ${last.summary.slice(0, 200)}`;
  const job = jobOf(last);
  const where = job === null ? "" : ` in job ${job.slice(0, 80)}`;
  return `${STATE[last.state]}${where}: ${last.summary.slice(0, 300)}`;
}
