/** The job's iterations: what the service remembers, then each one as it ends. */
import { useEffect, useMemo } from "preact/hooks";
import { ask, type Iterations, paths } from "../live/api.ts";
import { type Observable, observable } from "../live/observable.ts";
import { newIterations, snapshots } from "../live/store.ts";
import { append, MOST_POINTS, type Points, pointsOf, thinned } from "./iteration-points.ts";

export interface IterationState {
  readonly points: Points | null;
  readonly problem: unknown;
}

/** Beyond the limit by so many before it is thinned out again: not with every point. */
const SLACK = 2_000;

export function useIterations(job: string, run: string): Observable<IterationState> {
  const state = useMemo(
    () => observable<IterationState>({ points: null, problem: null }),
    [job, run],
  );
  useEffect(() => {
    let aborting = new AbortController();
    const early: Iterations[] = [];
    const fetchAll = async (): Promise<void> => {
      aborting.abort();
      aborting = new AbortController();
      const { signal } = aborting;
      try {
        const rows = await ask<Iterations>(paths.iterations(job, MOST_POINTS), { signal });
        const points = pointsOf(rows);
        // What ended while the answer was on its way may or may not be in it.
        for (const more of early.splice(0)) append(points, more);
        state.set({ points, problem: null });
      } catch (problem) {
        if (!signal.aborted) state.set({ ...state.value, problem });
      }
    };
    const stopNew = newIterations.watch((news) => {
      if (news === null || news.job !== job) return;
      const { points } = state.value;
      if (points === null) {
        if (early.length < 1000) early.push(news.rows);
        return;
      }
      if (!append(points, news.rows)) return;
      const isFull = points.endMs.length > MOST_POINTS + SLACK;
      state.set({ points: isFull ? thinned(points) : points, problem: null });
    });
    const stopSnapshots = snapshots.watch(() => void fetchAll());
    void fetchAll();
    return () => {
      stopNew();
      stopSnapshots();
      aborting.abort();
    };
  }, [state]);
  return state;
}
