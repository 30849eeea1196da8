/** What the judge of slowness may say, made up: facts of findings, for tests of what is told of them. */
import type { Compared, SlowDevice, SlowRank } from "../../src/model/facts.ts";
import type { Rank } from "../../src/model/ids.ts";

/** Rank 3 of group {0, 1, 2, 3} computes 62 ms longer, so that the others wait for it. */
export function comparedRanks(
  slow: readonly Rank[] = [3],
  peers: readonly Rank[] = [0, 1, 2],
): Compared {
  return {
    group: "DATA_PARALLEL_1",
    iterations: 40,
    leadMs: [2, 61],
    chanceMs: 4,
    ranks: [
      ...slow.map((rank) => ({ rank, insideMs: [12, 13], ownMs: [128, 190] }) as const),
      ...peers.map((rank) => ({ rank, insideMs: [14, 74], ownMs: [126, 130] }) as const),
    ],
  };
}

const TIMES = { slowDown: true, iteration: 41, until: null, from: null, to: null } as const;

export function judgedRank(probability: number, compared = comparedRanks()): SlowRank {
  return {
    fact: "slow-rank",
    ...TIMES,
    growthMs: 62,
    judged: { probability, healthyMs: 140, slowMs: 203, compared },
  };
}

/** The link between ranks 2 and 10 takes 58 ms longer than its like. */
export function judgedLink(probability: number): SlowDevice {
  const wire = (name: string, ranks: Rank[], before: number, since: number) =>
    ({ name, ranks, leastMs: [before, since] }) as const;
  return {
    fact: "slow-device",
    ...TIMES,
    growthMs: 58,
    device: "the link between ranks 2 and 10",
    explains: 1,
    judged: {
      probability,
      healthyMs: 140,
      slowMs: 200,
      compared: {
        ...comparedRanks([2, 10], []),
        wires: [
          wire("ranks 2–10", [2, 10], 4.1, 62),
          wire("ranks 3–11", [3, 11], 3.9, 4),
          wire("ranks 4–12", [4, 12], 4, 3.9),
        ],
      },
    },
  };
}
