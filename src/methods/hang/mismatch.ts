/**
 * Who is out of step? Two looks at the ranks of a deadlock: at the operator itself (members that call
 * another type, size or dtype than the rest) and at the program around it (see program.ts).
 */
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import { hasEqualSizes, Programs } from "./program.ts";

export interface Mismatch {
  readonly ranks: readonly Rank[];
  readonly why: string;
  /** 0..1 */
  readonly weight: number;
  /** Operator of each accused rank at which it left the common path; -1 where unknown. */
  readonly ops: readonly number[];
}

/** What each member of a collective calls at one sequence number, where its dump still has it. */
export function callsAt(
  job: Job,
  group: number,
  seq: number,
): Map<Rank, { op: number; call: string }> {
  const calls = new Map<Rank, { op: number; call: string }>();
  for (const rank of job.groups[group]?.ranks ?? []) {
    const dump = job.dumps.get(rank);
    if (!dump) continue;
    const { ops } = dump.dump;
    for (let i = ops.count - 1; i >= 0; i--) {
      if (ops.isP2p[i] || ops.seq[i] !== seq || dump.groupIds[ops.group[i]!] !== group) continue;
      const name = ops.names[ops.name[i]!]!;
      const size = hasEqualSizes(name) ? ` of ${ops.inputNumel[i]}` : "";
      calls.set(rank, { op: i, call: `${name}${size} ${ops.dtypes[ops.dtype[i]!] ?? ""}`.trim() });
      break;
    }
  }
  return calls;
}

/** Members that call something else than the majority; with a tie, the one whose own past is broken. */
export function mismatchInOp(job: Job, group: number, seq: number): Mismatch | null {
  const calls = callsAt(job, group, seq);
  const byCall = new Map<string, Rank[]>();
  for (const [rank, { call }] of calls) byCall.set(call, [...(byCall.get(call) ?? []), rank]);
  if (byCall.size < 2) return null;
  const sorted = [...byCall].sort((a, b) => b[1].length - a[1].length);
  const [common, minority] = [sorted[0]!, sorted.slice(1)];
  const odd = minority.flatMap(([, ranks]) => ranks).sort((a, b) => a - b);
  const words = sorted.map(
    ([call, ranks]) =>
      `${ranks.length === 1 ? `rank ${ranks[0]}` : `${ranks.length} ranks`}: ${call}`,
  );
  const opsOf = (ranks: readonly Rank[]): number[] => ranks.map((rank) => calls.get(rank)!.op);
  if (common[1].length > minority[0]![1].length) {
    const why = `calls ${minority.map(([call]) => call).join(" / ")} where the others call ${common[0]}`;
    return { ranks: odd, why, weight: 0.94, ops: opsOf(odd) };
  }
  const usual = usualCall(job, group, seq, byCall);
  if (usual !== null) {
    const others = sorted
      .filter(([call]) => call !== usual)
      .flatMap(([, ranks]) => ranks)
      .sort((a, b) => a - b);
    const called = calls.get(others[0]!)!.call;
    const why = `calls ${called} where the other groups of its kind call ${usual}`;
    return { ranks: others, why, weight: 0.9, ops: opsOf(others) };
  }
  const tied = sorted
    .filter(([, ranks]) => ranks.length === common[1].length)
    .flatMap(([, ranks]) => ranks);
  const outOfStep = findOutOfStep(job, tied, true) ?? findOutOfStep(job, tied, false);
  if (outOfStep) return { ...outOfStep, why: `${outOfStep.why} (${words.join("; ")})` };
  const all = [...tied].sort((a, b) => a - b);
  return {
    ranks: all,
    why: `the members disagree: ${words.join("; ")}`,
    weight: 0.5,
    ops: opsOf(all),
  };
}

/** Ranks that share a collective group of another role with one of these: the same stage's. */
function stagePeers(job: Job, ranks: readonly Rank[], role: string): Set<Rank> {
  const peers = new Set<Rank>();
  for (const group of job.groups) {
    if (group.carriesP2p || group.role === role || group.ranks.length === job.worldSize) continue;
    if (/EMBED/i.test(group.role) || !group.ranks.some((rank) => ranks.includes(rank))) continue;
    for (const rank of group.ranks) peers.add(rank);
  }
  return peers;
}

/** Of the calls in dispute, the one that most groups of the same role make at the same number. */
function usualCall(
  job: Job,
  group: number,
  seq: number,
  disputed: ReadonlyMap<string, unknown>,
): string | null {
  const { role, ranks } = job.groups[group]!;
  const votes = new Map<string, number>();
  const sameKind = job.groups.filter(
    (other) => other.id !== group && other.role === role && other.ranks.length === ranks.length,
  );
  // Groups of the same pipeline stage, where there are some: other stages have another order.
  const peers = stagePeers(job, ranks, role);
  const sameStage = sameKind.filter((other) => other.ranks.some((rank) => peers.has(rank)));
  for (const other of sameStage.length > 0 ? sameStage : sameKind) {
    for (const { call } of callsAt(job, other.id, seq).values()) {
      if (disputed.has(call)) votes.set(call, (votes.get(call) ?? 0) + 1);
    }
  }
  const [first, second] = [...votes].sort((a, b) => b[1] - a[1]);
  return first && first[1] >= 2 && first[1] > 2 * (second?.[1] ?? 0) ? first[0] : null;
}

/**
 * Of the given ranks, those that left the path which ranks of the same program share. A rank is out of
 * step when it differs from those it can be compared with while they agree among themselves; in a
 * pair, when its own past did not lead there and the partner's did.
 */
export function findOutOfStep(
  job: Job,
  suspects: readonly Rank[],
  withSizes: boolean,
): Mismatch | null {
  const programs = new Programs(job, withSizes);
  const groupsOf = new Map<Rank, number[]>();
  for (const group of job.groups) {
    if (group.ranks.length < 2) continue;
    for (const rank of suspects) {
      if (group.ranks.includes(rank)) groupsOf.set(rank, [...(groupsOf.get(rank) ?? []), group.id]);
    }
  }
  interface Tally {
    rank: Rank;
    differs: { peer: Rank; own: number; theirs: number }[];
    agrees: number;
  }
  const tallies: Tally[] = suspects.map((rank) => {
    const tally: Tally = { rank, differs: [], agrees: 0 };
    const compared = new Set<Rank>();
    for (const group of groupsOf.get(rank) ?? []) {
      for (const peer of nearby(job.groups[group]!.ranks, rank)) {
        if (compared.has(peer)) continue;
        const comparison = programs.compare(rank, peer, group);
        if (!comparison) continue;
        compared.add(peer);
        const { differ } = comparison;
        if (differ) tally.differs.push({ peer, own: differ.a, theirs: differ.b });
        else tally.agrees++;
      }
    }
    return tally;
  });
  const odd = tallies.filter(({ rank, differs, agrees }) => {
    if (differs.length === 0 || differs.length <= agrees) return false;
    if (differs.length >= 2) return true;
    const { peer, own, theirs } = differs[0]!;
    return (
      programs.expectedByOwnPast(rank, own) === false ||
      programs.expectedByOwnPast(peer, theirs) === true
    );
  });
  // In a pair both may look odd; keep the one whose own past is broken.
  const settled = odd.filter(({ rank, differs }) => {
    if (odd.length === 1) return true;
    const partners = new Set(odd.map((other) => other.rank));
    if (!differs.every(({ peer }) => partners.has(peer))) return true;
    return differs.some(({ own }) => programs.expectedByOwnPast(rank, own) === false);
  });
  if (settled.length === 0 || (settled.length === suspects.length && suspects.length > 1))
    return null;
  const first = settled[0]!;
  const { own, peer, theirs } = earliest(first.differs);
  const against =
    first.differs.length === 1
      ? `rank ${peer}`
      : `${first.differs.length} ranks that run the same program`;
  return {
    ranks: settled.map(({ rank }) => rank).sort((a, b) => a - b),
    why: `left the common order of operators: it issued ${programs.word(first.rank, own)} where ${against} issued ${programs.word(peer, theirs)}`,
    weight: first.differs.length >= 2 ? 0.93 : 0.85,
    ops: settled.map((tally) => earliest(tally.differs).own),
  };
}

/**
 * Where no rank runs the same program (a pipeline without replicas), only a rank's own past is left:
 * the one that lately did what it never did before in that place.
 */
export function findUnlikeItself(job: Job, suspects: readonly Rank[]): Mismatch | null {
  const programs = new Programs(job, true);
  const odd: { rank: Rank; op: number }[] = [];
  for (const rank of suspects.slice(0, MAX_SELF_COMPARED)) {
    const { length } = programs.tokens(rank);
    for (let op = Math.max(0, length - RECENT); op < length; op++) {
      if (programs.expectedByOwnPast(rank, op) !== false) continue;
      odd.push({ rank, op });
      break;
    }
  }
  if (odd.length !== 1) return null;
  const { rank, op } = odd[0]!;
  const why = `issued ${programs.word(rank, op)} where it never did in earlier iterations`;
  return { ranks: [rank], why, weight: 0.75, ops: [op] };
}

const MAX_SELF_COMPARED = 64;
const RECENT = 400;

function earliest<T extends { own: number }>(differs: readonly T[]): T {
  return differs.reduce((first, next) => (next.own < first.own ? next : first));
}

/** A few members to compare with: enough for a majority, not all of a group of thousands. */
function nearby(ranks: readonly Rank[], rank: Rank): Rank[] {
  const at = ranks.indexOf(rank);
  const peers: Rank[] = [];
  for (let step = 1; step < ranks.length && peers.length < MAX_PEERS; step++) {
    peers.push(ranks[(at + step) % ranks.length]!);
  }
  return peers;
}

const MAX_PEERS = 4;
