/** Asks for every rank's latest values once a second, as long as somebody looks and the job runs. */
import { useEffect, useMemo } from "preact/hooks";
import { ask, paths, type Ranks, type RankValues } from "../live/api.ts";
import { type Observable, observable } from "../live/observable.ts";
import { snapshots } from "../live/store.ts";
import { fill, type RankTable, rankTable } from "./rank-table.ts";

export interface RankState {
  /** The same object until the layout changes; its columns are filled anew. null before the first answer. */
  readonly table: RankTable | null;
  /** When the values were asked for last with success; 0 before. */
  readonly atMs: number;
  /** Why the last question failed; the values stay. */
  readonly problem: unknown;
}

export interface RankFeed {
  readonly state: Observable<RankState>;
  /** Ask now, also after polling has stopped. */
  poke(): void;
  stop(): void;
}

const EVERY_MS = 1000;
const MOST_PAUSE_MS = 10_000;

export function followRanks(job: string, isOver: () => boolean): RankFeed {
  const state = observable<RankState>({ table: null, atMs: 0, problem: null });
  const aborting = new AbortController();
  const { signal } = aborting;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let pauseMs = EVERY_MS;
  let isAsking = false;

  const poll = async (): Promise<void> => {
    if (isAsking || document.hidden || signal.aborted) return;
    isAsking = true;
    const begunMs = performance.now();
    try {
      let { table } = state.value;
      if (table === null || !fill(table, await ask<RankValues>(paths.ranks(job, true), { signal })))
        table = rankTable(await ask<Ranks>(paths.ranks(job, false), { signal }));
      state.set({ table, atMs: Date.now(), problem: null });
      pauseMs = EVERY_MS;
    } catch (problem) {
      if (signal.aborted) return;
      state.set({ ...state.value, problem });
      pauseMs = Math.min(MOST_PAUSE_MS, pauseMs * 2);
    } finally {
      isAsking = false;
    }
    if (isOver() && state.value.problem === null) return;
    clearTimeout(timer);
    timer = setTimeout(poll, Math.max(100, pauseMs - (performance.now() - begunMs)));
  };
  const poke = (): void => {
    clearTimeout(timer);
    pauseMs = EVERY_MS;
    void poll();
  };
  document.addEventListener("visibilitychange", poke, { signal });
  void poll();
  return {
    state,
    poke,
    stop() {
      clearTimeout(timer);
      aborting.abort();
    },
  };
}

/** Of the page's job; begins anew with another job or run. */
export function useRanks(job: string, run: string, isOver: boolean): Observable<RankState> {
  const over = useMemo(() => ({ is: isOver }), []);
  over.is = isOver;
  const feed = useMemo(() => followRanks(job, () => over.is), [job, run]);
  useEffect(() => {
    const stopWatching = snapshots.watch(() => feed.poke());
    return () => {
      stopWatching();
      feed.stop();
    };
  }, [feed]);
  useEffect(() => feed.poke(), [feed, isOver]);
  return feed.state;
}
