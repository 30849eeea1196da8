/**
 * Who broke the order? In a circle of waits a rank is in one operator while others wait for it in
 * another. Ranks that run the same program, in the same group or in groups of the same role, testify
 * which of the two comes first. This works on the few pending entries of a dump taken with
 * onlyActive, where program.ts has no history to compare.
 */
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import { COMPLETED } from "../../model/operators.ts";
import type { Mismatch } from "./mismatch.ts";
import type { StuckOp, WaitGraph } from "./wait-graph.ts";
import { describeOp } from "./words.ts";

export function findOrderBreaker(
  job: Job,
  graph: WaitGraph,
  cycle: { readonly ranks: readonly Rank[]; readonly ops: readonly number[] },
): Mismatch | null {
  const inCycle = new Set(cycle.ranks);
  interface Breaker {
    op: number;
    why: string;
    votes: number;
    awaited: StuckOp;
  }
  const breakers = new Map<Rank, Breaker>();
  for (const index of cycle.ops) {
    const awaited = graph.ops[index]!;
    if (awaited.isP2p) continue;
    for (const { rank } of awaited.absent) {
      if (!inCycle.has(rank)) continue;
      for (const own of graph.stuckIn.get(rank) ?? []) {
        const at = graph.ops[own]!;
        // The place of a rank without entries is a guess; no accusation is built on it.
        if (indexOf(job, rank, at) < 0) continue;
        const votes = testimony(job, graph, rank, awaited, at);
        if (votes.awaitedFirst <= votes.ownFirst || votes.awaitedFirst === 0) continue;
        const why = `moved on to ${describeOp(job, at)} without joining ${describeOp(job, awaited)}, which comes first on ${votes.awaitedFirst} ranks of the same kind`;
        const known = breakers.get(rank);
        if (!known || known.votes < votes.awaitedFirst) {
          breakers.set(rank, {
            op: indexOf(job, rank, at),
            why,
            votes: votes.awaitedFirst,
            awaited,
          });
        }
      }
    }
  }
  const sorted = [...breakers].sort((a, b) => b[1].votes - a[1].votes || a[0] - b[0]);
  const best = sorted[0];
  if (!best || sorted.length === cycle.ranks.length) return null;
  const equal = sorted.filter(([, { votes }]) => votes >= best[1].votes);
  const { awaited, votes } = best[1];
  // Only those who call it testify for it, and more do not: they made a call too many.
  if (votes <= awaited.arrived.length && equal.length > awaited.arrived.length) {
    const ranks = awaited.arrived.toSorted((a, b) => a - b);
    const why = `called ${describeOp(job, awaited)}, which ${equal.length} ranks of the same kind do not`;
    return { ranks, why, weight: 0.85, ops: ranks.map((rank) => indexOf(job, rank, awaited)) };
  }
  if (equal.length > MAX_BREAKERS) return null;
  return {
    ranks: equal.map(([rank]) => rank).sort((a, b) => a - b),
    why: best[1].why,
    weight: best[1].votes >= 2 ? 0.88 : 0.6,
    ops: equal.map(([, { op }]) => op),
  };
}

const MAX_BREAKERS = 4;
const MAX_WITNESSES = 64;

/** How many ranks issue the awaited operator before (after) the one that the accused rank is in. */
function testimony(
  job: Job,
  graph: WaitGraph,
  accused: Rank,
  awaited: StuckOp,
  own: StuckOp,
): { awaitedFirst: number; ownFirst: number } {
  let awaitedFirst = 0;
  let ownFirst = 0;
  let heard = 0;
  const ownName = own.isP2p ? p2pIdentity(job, accused, own) : null;
  if (own.isP2p && ownName === null) return { awaitedFirst, ownFirst };
  for (const witness of witnesses(job, awaited)) {
    if (witness === accused || heard >= MAX_WITNESSES) continue;
    const first = indexByRole(job, witness, awaited, null);
    const second = indexByRole(job, witness, own, ownName);
    if (first < 0 || second < 0) {
      // Completed entries may be gone; the counters still say which of the two is behind it.
      const state = graph.states.get(witness);
      const done = counter(job, state?.completed, awaited);
      const open = counter(job, state?.completed, own);
      if (own.isP2p || done === null || open === null) continue;
      if (done >= awaited.seq && open < own.seq) awaitedFirst++;
      else if (done < awaited.seq && open >= own.seq) ownFirst++;
      else continue;
    } else if (first < second) awaitedFirst++;
    else ownFirst++;
    heard++;
  }
  return { awaitedFirst, ownFirst };
}

/** A rank's counter in its own group of the same role as the operator's. */
function counter(
  job: Job,
  counters: ReadonlyMap<number, number> | undefined,
  op: StuckOp,
): number | null {
  const { role, ranks } = job.groups[op.group]!;
  for (const [group, value] of counters ?? []) {
    const other = job.groups[group]!;
    if (other.role === role && other.ranks.length === ranks.length) return value;
  }
  return null;
}

/** Members of the group, then of the other groups of its role. */
function* witnesses(job: Job, op: StuckOp): Iterable<Rank> {
  const group = job.groups[op.group]!;
  yield* group.ranks;
  for (const other of job.groups) {
    if (
      other.id !== op.group &&
      other.role === group.role &&
      other.ranks.length === group.ranks.length
    ) {
      yield* other.ranks;
    }
  }
}

/** The witness's own operator of the same role and number. */
function indexByRole(
  job: Job,
  rank: Rank,
  op: StuckOp,
  p2p: { readonly name: string; readonly seq: number } | null,
): number {
  const dump = job.dumps.get(rank);
  if (!dump) return -1;
  const role = job.groups[op.group]!.role;
  const { ops } = dump.dump;
  for (let i = ops.count - 1; i >= 0; i--) {
    if ((ops.isP2p[i] === 1) !== op.isP2p) continue;
    if (
      p2p
        ? ops.p2pSeq[i] !== p2p.seq || ops.names[ops.name[i]!] !== p2p.name
        : ops.seq[i] !== op.seq
    )
      continue;
    if (job.groups[dump.groupIds[ops.group[i]!]!]?.role === role) return i;
  }
  return -1;
}

/** Ranks of one stage number their P2P operators alike: name and number identify one among them. */
function p2pIdentity(job: Job, rank: Rank, op: StuckOp): { name: string; seq: number } | null {
  const index = indexOf(job, rank, op);
  const ops = job.dumps.get(rank)?.dump.ops;
  if (!ops || index < 0) return null;
  return { name: ops.names[ops.name[index]!]!, seq: ops.p2pSeq[index]! };
}

/** Index of a stuck operator in the rank's own table. */
function indexOf(job: Job, rank: Rank, op: StuckOp): number {
  const dump = job.dumps.get(rank);
  if (!dump) return -1;
  const { ops } = dump.dump;
  const [from, to] = op.isP2p
    ? op.key
        .slice(op.key.indexOf(":") + 1)
        .split(">")
        .map(Number)
    : [];
  for (let i = 0; i < ops.count; i++) {
    if (dump.groupIds[ops.group[i]!] !== op.group || ops.state[i] === COMPLETED) continue;
    if (!op.isP2p) {
      if (!ops.isP2p[i] && ops.seq[i] === op.seq) return i;
      continue;
    }
    const peer = job.groups[op.group]!.ranks[ops.peer[i]!];
    const sends = ops.isSend[i] === 1;
    if (ops.isP2p[i] && (sends ? from === rank && to === peer : to === rank && from === peer))
      return i;
  }
  return -1;
}
