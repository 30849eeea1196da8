/** The shares of all ranks of a run on this machine, as reports. */
import { LIMITS, type SharesReport } from "../../wire/messages.ts";
import type { RankTrack } from "../iterations/rank-track.ts";
import { RankShares } from "./rank-shares.ts";
import { reportOf, type SlotRow } from "./shares-report.ts";

/** Slots of a rank that are kept while the run has no name by which anybody could be told. */
const MOST_KEPT = 240;

export class RunShares {
  readonly #shares = new Map<number, RankShares>();
  /** Rows that nobody was told of: by rank, in the order of slots. */
  readonly #rows = new Map<number, SlotRow[]>();

  tick(tracks: Iterable<RankTrack>, nowMs: number): void {
    const present = new Set<number>();
    for (const { rank, native, groups, clockOffsetNs } of tracks) {
      if (native === null) continue;
      present.add(rank);
      let shares = this.#shares.get(rank);
      if (shares?.follower !== native) {
        shares = new RankShares(native, groups);
        this.#shares.set(rank, shares);
      }
      shares.take(nowMs, clockOffsetNs, (row) => {
        const rows = this.#rows.get(rank);
        if (rows === undefined) this.#rows.set(rank, [row]);
        else if (rows.push(row) > MOST_KEPT) rows.shift();
      });
    }
    for (const rank of this.#shares.keys()) if (!present.has(rank)) this.#shares.delete(rank);
  }

  /** As few reports as hold them; empty afterwards. */
  take(job: string, run: string): SharesReport[] {
    const reports: SharesReport[] = [];
    const ranks = [...this.#rows.keys()].toSorted((a, b) => a - b);
    const all = ranks.flatMap((rank) => this.#rows.get(rank)!.map(({ slot }) => slot));
    const last = all.reduce((most, slot) => Math.max(most, slot), -Infinity);
    let first = all.reduce((least, slot) => Math.min(least, slot), Infinity);
    const most = Math.floor(LIMITS.sharesPerFrame / Math.max(1, ranks.length));
    for (; first <= last; first += most) {
      const slots = Math.min(most, last - first + 1);
      const rows = ranks.map((rank) => this.#rows.get(rank)!);
      reports.push(reportOf({ job, run, ranks, firstSlot: first }, rows, slots));
    }
    this.#rows.clear();
    return reports;
  }
}
