/** How the time of eight ranks passed that wait for the last one in a tenth of it, until one of them is slow. */
import { type Random, seeded } from "../../../src/base/random.ts";
import { SLOT_MS, WHOLE_SHARE } from "../../../src/model/rank-shares.ts";
import type { JudgedLayout, ToJudge } from "../../../src/live/service/slowdown/judge-host.ts";

const RANKS = Array.from({ length: 8 }, (_, rank) => rank);
const START_MS = 1_800_000_000_000;

export const LAYOUT: JudgedLayout = { job: { ranks: RANKS, groups: [] }, wireKeys: [] };

export class PlayedShares {
  /** A slow rank does not wait, and the others do for longer. */
  readonly slow = new Set<number>();
  readonly #random: Random = seeded(3);
  #slot = START_MS / SLOT_MS;

  get nowMs(): number {
    return this.#slot * SLOT_MS;
  }

  /** What the judge is told half a second later. */
  next(): ToJudge[] {
    const told = this.#told();
    this.#slot++;
    const { nowMs } = this;
    return [
      { say: "shares", told, nowMs },
      { say: "tick", nowMs },
    ];
  }

  #told(): Extract<ToJudge, { readonly say: "shares" }>["told"] {
    const isSlow = this.slow.size > 0;
    const inside = RANKS.map((rank) => {
      const share = this.slow.has(rank) ? 0.1 : isSlow ? 0.5 : 0.2;
      return share + 0.01 * (this.#random() - 0.5);
    });
    const column = (of: (rank: number) => number): Uint16Array =>
      Uint16Array.from(RANKS, (rank) => Math.round(of(rank)));
    const operators = isSlow ? 30 : 50;
    return {
      ranks: RANKS,
      firstSlot: this.#slot,
      wires: [],
      inside: column((rank) => WHOLE_SHARE * inside[rank]!),
      late: column(() => 0.1 * WHOLE_SHARE),
      gpu: column((rank) => WHOLE_SHARE * (0.9 - inside[rank]!)),
      onWire: column(() => 0),
      issued: column(() => operators),
      ended: column(() => operators),
      wireMs: new Float32Array(0),
      wireCount: new Uint16Array(0),
    };
  }
}
