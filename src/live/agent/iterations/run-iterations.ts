/**
 * Iterations of a run whose framework marks none: found rank by rank in the calls (called-iterations.ts), and numbered so that
 * all ranks of this machine agree. Ranks that count by the same communicator agree by themselves; stages of a pipeline may
 * count by different ones, with other calls at their start, and are aligned by the time at which their iterations end.
 */
import type { CalledIteration } from "./called-iterations.ts";
import type { RankTrack } from "./rank-track.ts";

/** Calls searched in one tick, over all ranks: some 20 ms. */
const CALLS_PER_TICK = 1 << 14;
/** Iterations are reported once all ranks' are found, or so long after the first one's. */
const WAIT_MS = 15_000;
/** So many ends in a row must say the same before a rank's numbers move. */
const AGREEING = 3;
const MOST_ENDS = 256;
const MOST_HELD = 1024;

interface Aligned {
  /** What is added to the rank's own numbers. */
  shift: number;
  seen: number;
  times: number;
}

export class RunIterations {
  readonly #held = new Map<number, CalledIteration[]>();
  readonly #aligned = new Map<number, Aligned>();
  /** Ends of the rank that the others follow. */
  #leader = -1;
  #leaderEnds: CalledIteration[] = [];
  #foundMs = NaN;
  #turn = 0;

  /** Reads what ranks called since the last tick, and hands each rank the iterations that were found. */
  tick(ranks: readonly RankTrack[], nowMs: number): void {
    const without = ranks.filter(({ isMarked }) => !isMarked);
    for (const track of without) track.readCalls();
    this.#search(without);
    const ready = without.filter(({ called }) => called?.isConfirmed === true);
    if (ready.length === 0) return;
    if (Number.isNaN(this.#foundMs)) this.#foundMs = nowMs;
    for (const track of ready) this.#hold(track);
    const waiting = without.filter(({ called }) => called !== null && !called.isConfirmed);
    if (waiting.length > 0 && Math.abs(nowMs - this.#foundMs) < WAIT_MS) return;
    // The lowest rank first: the others follow it.
    for (const track of ready.toSorted((a, b) => a.rank - b.rank)) this.#hand(track);
  }

  /** In turn, so that a rank whose calls never repeat does not keep the others from being searched. */
  #search(ranks: readonly RankTrack[]): void {
    let left = CALLS_PER_TICK;
    for (let k = 0; k < ranks.length && left > 0; k++) {
      const track = ranks[(this.#turn + k) % ranks.length]!;
      if (!track.called?.isSearchDue) continue;
      left -= track.called.search(track.groups);
      if (left <= 0) this.#turn = (this.#turn + k + 1) % ranks.length;
    }
  }

  #hold({ rank, called }: RankTrack): void {
    const ends = called!.take();
    if (ends.length === 0) return;
    const held = [...(this.#held.get(rank) ?? []), ...ends];
    this.#held.set(rank, held.slice(-MOST_HELD));
  }

  #hand(track: RankTrack): void {
    const ends = this.#held.get(track.rank) ?? [];
    if (ends.length === 0) return;
    this.#held.delete(track.rank);
    if (this.#leader < 0 || track.rank < this.#leader) {
      this.#leader = track.rank;
      this.#leaderEnds = [];
      this.#aligned.clear();
    }
    if (track.rank === this.#leader) {
      this.#leaderEnds = [...this.#leaderEnds, ...ends].slice(-MOST_ENDS);
      track.giveMarks(ends);
      return;
    }
    const aligned = this.#aligned.get(track.rank) ?? { shift: 0, seen: 0, times: 0 };
    this.#aligned.set(track.rank, aligned);
    for (const end of ends) this.#align(aligned, end);
    const { shift } = aligned;
    track.giveMarks(ends.map((end) => ({ ...end, iteration: end.iteration + shift })));
  }

  #align(aligned: Aligned, end: CalledIteration): void {
    const nearest = this.#nearest(end);
    if (nearest === null) return;
    const isSameCount = nearest.counter === end.counter;
    const apart = isSameCount ? 0 : nearest.iteration - end.iteration;
    aligned.times = apart === aligned.seen ? aligned.times + 1 : 1;
    aligned.seen = apart;
    if (aligned.times >= AGREEING) aligned.shift = apart;
  }

  /** The leader's iteration that ended closest to this one's end; null where none did within half an iteration. */
  #nearest({ issuedNs, endedNs }: CalledIteration): CalledIteration | null {
    let best: CalledIteration | null = null;
    let least = (endedNs - issuedNs) / 2;
    for (let i = this.#leaderEnds.length - 1; i >= 0; i--) {
      const one = this.#leaderEnds[i]!;
      const apart = Math.abs(one.endedNs - endedNs);
      if (apart < least) [best, least] = [one, apart];
      else if (one.endedNs < endedNs) break;
    }
    return best;
  }
}
