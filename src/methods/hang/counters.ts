/**
 * Counters alone can tell who skipped or added a call: a rank that issued as much as its peers in every
 * other group, but one more or less in this one. The last resort, for dumps without entries.
 */
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { Mismatch } from "./mismatch.ts";
import type { WaitGraph } from "./wait-graph.ts";

export function findOddCounter(job: Job, graph: WaitGraph, group: number): Mismatch | null {
  const { role, ranks } = job.groups[group]!;
  if (!ranks.some((rank) => job.dumps.get(rank)?.dump.ops.count === 0)) return null;
  const others = job.groups.filter(
    (other) => other.role === role && other.ranks.length === ranks.length,
  );
  const counters = new Map<Rank, { own: number; rest: string }>();
  for (const other of others) {
    for (const rank of other.ranks) {
      const state = graph.states.get(rank);
      const own = state?.enqueued.get(other.id);
      if (state === undefined || own === undefined) continue;
      const rest = [...state.enqueued]
        .filter(([id]) => id !== other.id)
        .map(([id, value]) => `${job.groups[id]!.role}=${value}`)
        .sort()
        .join();
      counters.set(rank, { own, rest });
    }
  }
  const odd: { rank: Rank; own: number; usual: number }[] = [];
  for (const rank of ranks) {
    const mine = counters.get(rank);
    // With entries the program itself can be compared; CPUs that run ahead differ in their counters.
    if (!mine || (job.dumps.get(rank)?.dump.ops.count ?? 0) > 0) continue;
    const votes = new Map<number, number>();
    for (const [peer, { own, rest }] of counters) {
      if (peer !== rank && rest === mine.rest) votes.set(own, (votes.get(own) ?? 0) + 1);
    }
    const [usual, second] = [...votes].sort((a, b) => b[1] - a[1]);
    if (!usual || usual[1] < 2 || usual[1] <= 2 * (second?.[1] ?? 0)) continue;
    if (usual[0] !== mine.own) odd.push({ rank, own: mine.own, usual: usual[0] });
  }
  if (odd.length === 0 || odd.length * 2 > ranks.length) return null;
  const { own, usual } = odd[0]!;
  return {
    ranks: odd.map(({ rank }) => rank).sort((a, b) => a - b),
    why: `issued ${own} operators of ${role} where ranks that are equally far in all other groups issued ${usual}`,
    weight: 0.6,
    ops: odd.map(() => -1),
  };
}
