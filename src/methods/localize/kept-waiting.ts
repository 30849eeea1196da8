/**
 * Whether a rank only waits, judged by its peers where there is no earlier time to compare with. Own times are never quite
 * without waiting: what runs beside kernels is counted as if it did not, so that a rank that is blocked before the others
 * looks as if it computed longer. But in the operators that it shares with the one that holds it up it stays longer
 * than its peers do in theirs, and longer than the other does (Holmes §4.3).
 */
import { median } from "../../maths/robust.ts";
import type { Rank } from "../../model/ids.ts";
import type { Group } from "../../model/job.ts";
import type { TimeBreakdown } from "./time-breakdown.ts";

/** `leastMs` of an iteration: less is no waiting. */
export type KeptWaiting = (rank: Rank, leastMs: number) => boolean;

export function keptWaiting(
  accounts: ReadonlyMap<Rank, TimeBreakdown>,
  groups: readonly Group[],
): KeptWaiting {
  const largest = groups.reduce((most, { ranks }) => Math.max(most, ranks.length), 0);
  // In a group of all ranks every rank waits for the slow one.
  const shared = groups.filter(({ ranks }) => ranks.length > 1 && ranks.length < largest);
  return (rank, leastMs) => {
    const account = accounts.get(rank)!;
    const peers = [...accounts.values()].filter(
      (peer) => peer !== account && peer.program === account.program,
    );
    const isLonger = (name: string): boolean => {
      const usualMs = median(peers.map(({ insideMs }) => insideMs.get(name) ?? 0));
      return (account.insideMs.get(name) ?? 0) - usualMs >= leastMs;
    };
    return shared.some(({ role, ranks }) => {
      if (!ranks.includes(rank)) return false;
      // A rank that computes slowly finds the data that it receives already there.
      if (isLonger(`${role} recv`)) return true;
      if (!isLonger(role)) return false;
      // A member that left nothing may be the one.
      const isShorter = (member: Rank): boolean =>
        account.insideMs.get(role)! - (accounts.get(member)?.insideMs.get(role) ?? 0) >= leastMs;
      return ranks.some(isShorter);
    });
  };
}
