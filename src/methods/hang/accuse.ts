/** How the wait graph's findings are put into words. */
import { rankWords } from "../../base/text.ts";
import type { StoppedRank } from "../../model/facts.ts";
import type { Accusation, NewFinding } from "../../model/finding.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { Mismatch } from "./mismatch.ts";
import { codeLine } from "./words.ts";

export function mismatchFinding(job: Job, mismatch: Mismatch): NewFinding {
  const { ranks, weight } = mismatch;
  const at = ranks.map((rank, i) => codeLine(job, rank, mismatch.ops[i] ?? -1));
  const where = at.find((line) => line !== null);
  const why = `${rankWords(ranks)} ${mismatch.why}${where ? ` (${where})` : ""}`;
  return {
    says: why,
    weight,
    at: placesOf(job, ranks),
    data: { fact: "stopped-rank", side: "program", code: where ?? null },
    accuses: ranks.map((rank) => ({
      kind: "hang",
      type: "rank",
      ranks: [rank],
      link: null,
      cause: "collective-mismatch",
      weight,
      why,
    })),
    clears: [],
  };
}

export function accusing(
  job: Job,
  rank: Rank,
  cause: Accusation["cause"],
  weight: number,
  reason: string,
  data: StoppedRank,
): NewFinding {
  const why = `the other ranks wait for rank ${rank}: ${reason}`;
  return {
    says: why,
    weight,
    at: placesOf(job, [rank]),
    data,
    accuses: [
      {
        kind: "hang",
        type: cause === "cpu-stall" ? "rank" : "gpu",
        ranks: [rank],
        link: null,
        cause,
        weight,
        why,
      },
    ],
    clears: [],
  };
}

/**
 * All are in the operator and none leaves, and nothing tells whether a GPU or what lies between them is stuck. Within a
 * machine there is no network between them.
 */
export function stuckTogether(
  job: Job,
  ranks: readonly Rank[],
  weight: number,
  why: string,
): Accusation {
  const machines = new Set(ranks.map((rank) => job.ranks.get(rank)?.machine ?? null));
  if (machines.size === 1 && !machines.has(null))
    return { kind: "hang", type: "gpu", ranks, link: null, cause: "gpu-hang", weight, why };
  return stuckLink(ranks, weight, why);
}

export function stuckLink(ranks: readonly Rank[], weight: number, why: string): Accusation {
  return {
    kind: "hang",
    type: "link",
    ranks,
    link: ranks.length === 2 ? [`rank:${ranks[0]}`, `rank:${ranks[1]}`] : null,
    cause: "network-hang",
    weight,
    why,
  };
}

export function placesOf(job: Job, ranks: readonly Rank[]): { file: string }[] {
  return ranks.slice(0, 8).flatMap((rank) => job.places.get(rank) ?? []);
}
