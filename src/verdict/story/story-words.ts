/** How a story names ranks and machines. */
import { cutText, harmless } from "../../base/text.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";

/** Bars of an operator; more cannot be told apart. */
export const MOST_BARS = 64;

/** Names come from strangers' files and may be of any length. */
const MOST_NAME = 120;

export function named(text: string): string {
  return harmless(cutText(text, MOST_NAME));
}

export function machineName(job: Job, rank: Rank): string | null {
  const machine = job.ranks.get(rank)?.machine ?? null;
  return machine === null ? null : named(machine);
}

/** "rank 12 (node001)" */
export function who(job: Job, rank: Rank): string {
  const machine = machineName(job, rank);
  return machine === null ? `rank ${rank}` : `rank ${rank} (${machine})`;
}
