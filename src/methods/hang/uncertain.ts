/**
 * Ranks whose dump has counters but no entries (a GIL that is held, a ring that was reset): what is
 * pending is known, in which of it the rank stands is not.
 */
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { Head, RankState } from "./frontier.ts";
import { opKey } from "./op-key.ts";

/** Counters without entries: what is pending is known, but not in which of it the rank is. */
export function isUncertain(state: RankState): boolean {
  const started = state.heads.some((head) => head.started);
  if (state.hiddenP2p.length > 0) return !(state.timing && started);
  return !state.timing && state.heads.length > 1 && state.heads.every((head) => head.op < 0);
}

/**
 * A rank of unknown place cannot be in an operator that waits for it alone. It is where somebody else
 * is absent too; failing that, in a P2P operator that only its group's counter shows; failing that,
 * nowhere: its own GPU is stuck.
 */
export function placeUncertain(
  job: Job,
  states: ReadonlyMap<Rank, RankState>,
  blocking: Map<Rank, readonly Head[]>,
  uncertain: readonly RankState[],
): void {
  const present = new Map<string, Set<Rank>>();
  const enter = (rank: Rank, heads: readonly Head[]): void => {
    blocking.set(rank, heads);
    for (const head of heads) {
      const key = opKey(rank, head);
      present.set(key, (present.get(key) ?? new Set()).add(rank));
    }
  };
  for (const [rank, heads] of blocking) enter(rank, heads);
  const unsure = new Map(uncertain.map((state) => [state.rank, state]));
  const openHeads = (state: RankState, among: "placed" | "all"): Head[] =>
    state.heads.filter((head) => {
      const here = present.get(opKey(state.rank, head));
      return (job.groups[head.group]?.ranks ?? []).some(
        (rank) => rank !== state.rank && !here?.has(rank) && (among === "all" || !unsure.has(rank)),
      );
    });
  // Placing one may place others: go on until nothing moves.
  for (let before = -1; before !== unsure.size;) {
    before = unsure.size;
    for (const state of unsure.values()) {
      const open = state.timing ? [] : openHeads(state, "placed");
      if (open.length === 0) continue;
      unsure.delete(state.rank);
      enter(state.rank, open);
    }
  }
  for (const state of unsure.values()) {
    const hidden = state.hiddenP2p.flatMap((group) => hiddenHeads(job, blocking, state, group));
    const open = state.timing ? [] : openHeads(state, "all");
    blocking.set(state.rank, hidden.length > 0 ? hidden : open);
  }
}

/** Possible partners of a P2P operator that only a counter tells of: neighbours that do not wait for us. */
function hiddenHeads(
  job: Job,
  blocking: ReadonlyMap<Rank, readonly Head[]>,
  state: RankState,
  group: number,
): Head[] {
  const ranks = job.groups[group]?.ranks ?? [];
  const at = ranks.indexOf(state.rank);
  const neighbours = [ranks[at - 1], ranks[at + 1]].filter((rank) => rank !== undefined);
  const free = neighbours.filter(
    (rank) => !blocking.get(rank)?.some((head) => head.isP2p && head.peer === state.rank),
  );
  return (free.length > 0 ? free : neighbours).map((peer) => ({
    group,
    seq: 0,
    isP2p: true,
    peer,
    isSend: false,
    op: -1,
    started: true,
  }));
}
