/** Incidents of one job, ended ones too: the service's record, and what the page has heard since. */
import { useEffect, useState } from "preact/hooks";
import { ask, type Incident, paths } from "../live/api.ts";
import { useObservable } from "../live/observable.ts";
import { incidents, snapshots } from "../live/store.ts";

const MOST = 100;

export interface JobIncidents {
  /** Those of this run, in the order of their beginning. */
  readonly episodes: readonly Incident[];
  /** The run before that had incidents, the last of them. */
  readonly earlierRun: string | null;
}

export function useJobIncidents(job: string, run: string): JobIncidents {
  const [recorded, setRecorded] = useState<readonly Incident[]>([]);
  const heard = useObservable(incidents);
  const snapshot = useObservable(snapshots);
  useEffect(() => {
    const aborting = new AbortController();
    const { signal } = aborting;
    const load = async (): Promise<void> => {
      const query = `?job=${encodeURIComponent(job)}&most=${MOST}`;
      const answer = await ask<{ incidents: readonly Incident[] }>(paths.incidents(query), {
        signal,
      });
      setRecorded(answer.incidents);
    };
    // The chart is worth drawing without them, and the next snapshot asks again.
    load().catch(() => undefined);
    return () => aborting.abort();
  }, [job, snapshot]);
  const all = [...recorded, ...heard.values()];
  const earlier = all.filter((one) => one.job === job && one.run !== run);
  const last = earlier.toSorted((a, b) => b.openedMs - a.openedMs)[0];
  return { episodes: merged(all, job, run), earlierRun: last?.run ?? null };
}

/** The newest revision of each. */
export function merged(all: Iterable<Incident>, job: string, run: string): readonly Incident[] {
  const newest = new Map<string, Incident>();
  for (const incident of all) {
    if (incident.job !== job || incident.run !== run) continue;
    const known = newest.get(incident.id);
    if (!known || known.revision <= incident.revision) newest.set(incident.id, incident);
  }
  return [...newest.values()].toSorted((a, b) => a.onsetMs - b.onsetMs);
}
