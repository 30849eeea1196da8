/** What each end of the wait graph means: a rank, an operator or a circle. */
import { ranges, rankWords } from "../../base/text.ts";
import type { NewFinding } from "../../model/finding.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import { accusing, mismatchFinding, placesOf, stuckLink, stuckTogether } from "./accuse.ts";
import type { Terminal } from "./components.ts";
import { wireInto } from "./connections.ts";
import {
  callsAt,
  findOutOfStep,
  findUnlikeItself,
  mismatchInOp,
  type Mismatch,
} from "./mismatch.ts";
import { findOrderBreaker } from "./order.ts";
import { haltedRanks } from "./process-state.ts";
import type { StuckOp, WaitGraph } from "./wait-graph.ts";
import { codeLine, describeOp, lastOperator } from "./words.ts";

export function findingFor(job: Job, graph: WaitGraph, end: Terminal): NewFinding {
  switch (end.kind) {
    case "rank":
      return rankFinding(job, graph, end.rank);
    case "op":
      return opFinding(job, graph, graph.ops[end.op]!);
    case "cycle":
      return cycleFinding(job, graph, end);
  }
}

/** A rank that waits for nobody: its GPU stopped, its program left the path, or its CPU did. */
function rankFinding(job: Job, graph: WaitGraph, rank: Rank): NewFinding {
  const waiters = graph.ops
    .filter((op) => op.absent.some((absent) => absent.rank === rank))
    .sort((a, b) => b.arrived.length - a.arrived.length)[0];
  const waiting = waiters
    ? `${rankWords(waiters.arrived.toSorted((a, b) => a - b))} ${waiters.arrived.length === 1 ? "waits" : "wait"} for it in ${describeOp(job, waiters)}`
    : "others wait for it";
  const gpu = graph.ownGpu.get(rank);
  // Of a dump that was cut off only counters are left, and those of a running job lag; if nobody waits, they prove nothing.
  // Sends and receives have none: whether it has posted its part, and waits elsewhere, is lost.
  if (job.dumps.get(rank)?.dump.isCut && (!waiters || (waiters.isP2p && !gpu)))
    return {
      says: `rank ${rank}'s dump was cut off: ${waiters ? `whether it ever got to ${describeOp(job, waiters)} is unknown` : "it is unknown whether its last operators completed, and no rank waits for it"}`,
      weight: 0.1,
      at: [{ file: job.dumps.get(rank)!.dump.file }],
      data: { fact: "remark" },
      accuses: [],
      clears: [],
    };
  if (gpu) {
    const head = describeOp(job, gpu.head);
    const reason =
      gpu.completedBy === null
        ? `${head} was issued but never started on its GPU, and no other operator runs there`
        : `${head} is still pending here although rank ${gpu.completedBy} has completed it`;
    const group = job.groups[gpu.head.group];
    const sender = gpu.completedBy === null || !group ? null : wireInto(job, group.name, rank);
    if (sender !== null) return wireFinding(job, sender, rank, reason);
    const silent = gpu.completedBy === null ? [] : silentMembers(job, graph, gpu.head.group);
    if (silent.length > 0) return leftInTheMiddle(job, rank, silent, reason);
    const halted = gpu.completedBy === null ? [] : haltedMembers(job, gpu.head.group, rank);
    if (halted.length > 0) return heldByHalted(job, rank, halted, reason);
    const partners = gpu.completedBy === null ? unrecordedPartners(job, graph, rank) : [];
    const stopped = partners.filter((one) => graph.states.get(one)?.heads.length === 0);
    if (stopped.length > 0) return heldByPartner(job, rank, stopped, reason);
    const isSilent = partners.some((one) => !graph.states.has(one));
    const cause = gpu.completedBy === null ? "gpu-hang" : "gpu-error";
    return accusing(
      job,
      rank,
      cause,
      gpu.completedBy === null
        ? isSilent
          ? BESIDE_SILENT
          : 0.9
        : job.dumps.get(rank)!.dump.timing
          ? 0.93
          : 0.88,
      reason,
      {
        fact: "stopped-rank",
        side: "gpu",
        at: codeLine(job, rank, gpu.head.op),
        ...lastOperator(job, rank),
      },
    );
  }
  if (graph.states.get(rank)?.waitsUnseen)
    return {
      says: `rank ${rank} waits in an operator with a rank that left no record`,
      weight: 0.4,
      at: placesOf(job, [rank]),
      data: { fact: "stopped-rank", side: "unknown" },
      accuses: [],
      clears: [rank],
    };
  const outOfStep = findOutOfStep(job, [rank], false);
  if (outOfStep) return mismatchFinding(job, outOfStep);
  const last = lastOperator(job, rank);
  const after = last.last ? ` after ${last.last}` : "";
  const reason = `its CPU issued nothing more${after}: everything it issued has completed, and ${waiting}`;
  return accusing(job, rank, "cpu-stall", 0.92, reason, {
    fact: "stopped-rank",
    side: "cpu",
    ...last,
  });
}

function silentMembers(job: Job, graph: WaitGraph, group: number): Rank[] {
  return (job.groups[group]?.ranks ?? []).filter((rank) => !graph.states.has(rank));
}

/** Of a GPU that starts nothing any more: no more than of the partner that left no dump. */
const BESIDE_SILENT = 0.45;

/**
 * Members of a group in which nobody recorded anything: they may wait for each other inside kernels, through symmetric memory
 * (asynchronous tensor parallel).
 */
function unrecordedPartners(job: Job, graph: WaitGraph, rank: Rank): Rank[] {
  return job.groups
    .filter(({ id, ranks }) => {
      if (!ranks.includes(rank) || ranks.length === job.worldSize) return false;
      const issued = ranks.map((one) => graph.states.get(one)?.enqueued.get(id) ?? 0);
      return issued.every((number) => number <= 0);
    })
    .flatMap(({ ranks }) => ranks.filter((one) => one !== rank));
}

/** A partner whose CPU issued nothing more explains a kernel that does not end: the partner is accused for itself. */
function heldByPartner(job: Job, rank: Rank, stopped: readonly Rank[], reason: string): NewFinding {
  return {
    says: `rank ${rank} may wait inside a kernel (${reason}) for ${rankWords(stopped)}, with which it shares a group that leaves no records`,
    weight: 0.3,
    at: placesOf(job, [rank]),
    data: { fact: "stopped-rank", side: "unknown" },
    accuses: [],
    clears: [rank],
  };
}

function haltedMembers(job: Job, group: number, rank: Rank): Rank[] {
  const halted = haltedRanks(job);
  return (job.groups[group]?.ranks ?? []).filter((one) => one !== rank && halted.has(one));
}

/** The same where the rings tell that a member's process is stopped or gone: hang/process accuses it. */
function heldByHalted(job: Job, rank: Rank, halted: readonly Rank[], reason: string): NewFinding {
  return {
    says: `rank ${rank} was left in the middle of an operator (${reason}): the process of ${rankWords(halted)} in the same group is stopped or gone`,
    weight: 0.3,
    at: placesOf(job, [rank]),
    data: { fact: "stopped-rank", side: "process" },
    accuses: [],
    clears: [rank],
  };
}

/**
 * A process that stops in the middle of an operator has passed on its data to some and not to others: who is left behind has
 * nothing wrong with its GPU.
 */
function leftInTheMiddle(
  job: Job,
  rank: Rank,
  silent: readonly Rank[],
  reason: string,
): NewFinding {
  const why = `${rankWords(silent)} left no dump: rank ${rank} is stuck in the middle of an operator (${reason}), as if a peer's process had stopped in it`;
  const weight = 0.6 / silent.length;
  return {
    says: why,
    weight,
    at: placesOf(job, [rank]),
    data: { fact: "stopped-rank", side: "process" },
    accuses: silent.map((one) => ({
      kind: "hang",
      type: "rank",
      ranks: [one],
      link: null,
      cause: "process-stopped",
      weight,
      why,
    })),
    clears: [rank],
  };
}

/** A peer that only sends is done before the data arrives; what lacks is the data, not the GPU. */
function wireFinding(job: Job, from: Rank, to: Rank, reason: string): NewFinding {
  const ranks = [from, to].sort((a, b) => a - b);
  const link = [`rank:${ranks[0]}`, `rank:${ranks[1]}`] as const;
  const why = `rank ${to}: ${reason}, and its proxy waits for data that rank ${from} has sent`;
  return {
    says: why,
    weight: 0.85,
    at: placesOf(job, ranks),
    data: { fact: "stopped-rank", side: "communication" },
    accuses: [
      { kind: "hang", type: "link", ranks, link, cause: "network-hang", weight: 0.85, why },
    ],
    clears: [],
  };
}

/** All have entered, none leaves: they call different things, or the communication itself is stuck. */
function opFinding(job: Job, graph: WaitGraph, op: StuckOp): NewFinding {
  if (!op.isP2p) {
    const mismatch = mismatchInOp(job, op.group, op.seq);
    if (mismatch) return mismatchFinding(job, mismatch);
    const outOfStep = findOutOfStep(job, op.arrived, false);
    if (outOfStep) return mismatchFinding(job, outOfStep);
    const odd = findOddCounter(job, graph, op.group);
    if (odd) return mismatchFinding(job, odd);
  }
  const unknown = op.isP2p ? 0 : (job.groups[op.group]?.unknownMembers ?? 0);
  if (unknown > 0) return unknownMembers(job, op, unknown);
  const unseen = !op.isP2p && callsAt(job, op.group, op.seq).size < op.arrived.length;
  const timing = op.arrived.every((rank) => job.dumps.get(rank)?.dump.timing);
  const ranks = op.arrived.toSorted((a, b) => a - b);
  const what = describeOp(job, op);
  const why = timing
    ? `${what} runs on the GPUs of all its members and does not complete on any`
    : `${what} was issued by all its members and does not complete on any; without operator timing a stuck GPU and a stuck network look the same`;
  const accusation = timing
    ? stuckLink(ranks, unseen ? 0.5 : 0.8, why)
    : stuckTogether(job, ranks, 0.5, why);
  return {
    says: why,
    weight: accusation.weight,
    at: placesOf(job, ranks),
    data: { fact: "stopped-rank", side: timing ? "communication" : "gpu or communication", timing },
    accuses: [accusation],
    clears: [],
  };
}

/** All known members have entered; whether the others have is unknown. */
function unknownMembers(job: Job, op: StuckOp, unknown: number): NewFinding {
  const members = `${unknown} ${unknown === 1 ? "member that" : "members that"} left no record`;
  return {
    says: `${describeOp(job, op)} was issued by all its known members and does not complete on any; it may wait for ${members}`,
    weight: 0.3,
    at: placesOf(job, op.arrived),
    data: { fact: "stopped-rank", side: "unknown", unknownMembers: unknown },
    accuses: [],
    clears: [],
  };
}

function cycleFinding(
  job: Job,
  graph: WaitGraph,
  cycle: Extract<Terminal, { kind: "cycle" }>,
): NewFinding {
  for (const index of cycle.ops) {
    const op = graph.ops[index]!;
    const mismatch = op.isP2p ? null : mismatchInOp(job, op.group, op.seq);
    if (mismatch && mismatch.weight > 0.6) return mismatchFinding(job, mismatch);
  }
  const outOfStep = findOutOfStep(job, cycle.ranks, false) ?? findOutOfStep(job, cycle.ranks, true);
  if (outOfStep) return mismatchFinding(job, outOfStep);
  const breaker = findOrderBreaker(job, graph, cycle);
  if (breaker) return mismatchFinding(job, breaker);
  for (const index of cycle.ops) {
    const op = graph.ops[index]!;
    const odd = op.isP2p ? null : findOddCounter(job, graph, op.group);
    if (odd) return mismatchFinding(job, odd);
  }
  const unlikeItself = findUnlikeItself(job, cycle.ranks);
  if (unlikeItself) return mismatchFinding(job, unlikeItself);
  const why = `ranks ${ranges(cycle.ranks)} wait for each other in a circle: the order of their operators differs, but the records do not show which one is wrong`;
  return {
    says: why,
    weight: 0.5,
    at: placesOf(job, cycle.ranks),
    data: { fact: "waiting-circle", cycle: cycle.ranks },
    accuses: [
      {
        kind: "hang",
        type: "code",
        ranks: cycle.ranks,
        link: null,
        cause: "collective-mismatch",
        weight: 0.4,
        why,
      },
    ],
    clears: [],
  };
}

/**
 * Counters alone can tell who skipped or added a call: a rank that issued as much as its peers in every
 * other group, but one more or less in this one. The last resort, for dumps without entries.
 */
function findOddCounter(job: Job, graph: WaitGraph, group: number): Mismatch | null {
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
    why: `issued ${own} operators of ${role} while ranks at the same point in all other groups issued ${usual}`,
    weight: 0.6,
    ops: odd.map(() => -1),
  };
}
