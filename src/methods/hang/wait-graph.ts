/**
 * Who waits for whom. Nodes are ranks and the operators in which they are stuck; a rank points at its
 * operator, the operator points at the members that have not arrived. Following the arrows ends in
 * what holds everybody up: a rank that waits for nobody, an operator that all have entered and none
 * leaves, or a circle. A `max()` over counters would blame ranks that only wait (FLARE §5.1 goes no
 * further than the call stack; NVRx and torchfrtrace stop at "missing from this collective").
 *
 * Operators are nodes of their own so that a collective of n ranks costs n arrows, not n².
 */
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { Head, RankState } from "./frontier.ts";

export interface StuckOp {
  readonly key: string;
  readonly group: number;
  readonly seq: number;
  readonly isP2p: boolean;
  /** Ranks that are in it. */
  readonly arrived: Rank[];
  /** Members that are not, and how far they got. */
  readonly absent: { readonly rank: Rank; readonly why: Absence }[];
}

/** silent: no dump; not-enqueued: its CPU never issued the operator; behind: issued, stuck earlier. */
type Absence = "silent" | "not-enqueued" | "behind";

export interface WaitGraph {
  readonly states: ReadonlyMap<Rank, RankState>;
  readonly ops: readonly StuckOp[];
  /** Rank → indices of the operators that it is stuck in. */
  readonly stuckIn: ReadonlyMap<Rank, readonly number[]>;
  /** Ranks whose own GPU stopped: operator pending here that a peer has completed, or that never started. */
  readonly ownGpu: ReadonlyMap<Rank, OwnGpu>;
}

interface OwnGpu {
  readonly head: Head;
  /** A member that completed the operator; null where the reason is that nothing starts any more. */
  readonly completedBy: Rank | null;
}

export function buildWaitGraph(job: Job, states: ReadonlyMap<Rank, RankState>): WaitGraph {
  const ownGpu = new Map<Rank, OwnGpu>();
  const blocking = new Map<Rank, readonly Head[]>();
  const uncertain: RankState[] = [];
  const farthest = farthestCompleted(states);
  for (const state of states.values()) {
    const own = ownTrouble(job, states, state, farthest);
    if (own) ownGpu.set(state.rank, own);
    else if (isUncertain(state)) uncertain.push(state);
    else blocking.set(state.rank, blockingHeads(state));
  }
  placeUncertain(job, states, blocking, uncertain);
  for (const [rank, heads] of blocking) {
    const state = states.get(rank)!;
    if (heads.length > 0 || state.heads.length === 0 || state.waitsUnseen) continue;
    blocking.delete(rank);
    ownGpu.set(rank, { head: state.heads[0]!, completedBy: null });
  }
  const ops: StuckOp[] = [];
  const index = new Map<string, number>();
  const stuckIn = new Map<Rank, number[]>();
  for (const [rank, heads] of blocking) {
    for (const head of heads) {
      const key = opKey(rank, head);
      let at = index.get(key);
      if (at === undefined) {
        at = ops.length;
        index.set(key, at);
        const { group, seq, isP2p } = head;
        ops.push({ key, group, seq, isP2p, arrived: [], absent: [] });
      }
      ops[at]!.arrived.push(rank);
      const own = stuckIn.get(rank);
      if (own) own.push(at);
      else stuckIn.set(rank, [at]);
    }
  }
  for (const op of ops) findAbsent(job, states, op);
  holdUp(ops, stuckIn, states, blocking);
  return { states, ops, stuckIn, ownGpu };
}

/**
 * Operators that all have entered: one of the ranks may be held up elsewhere all the same. Without
 * timing only its first head is certain, a guess is none, and a batch of P2P operators ends as a whole,
 * so that what holds up one part of it holds up the others, from rank to rank.
 */
function holdUp(
  ops: readonly StuckOp[],
  stuckIn: ReadonlyMap<Rank, readonly number[]>,
  states: ReadonlyMap<Rank, RankState>,
  blocking: ReadonlyMap<Rank, readonly Head[]>,
): void {
  for (const op of ops) {
    if (op.absent.length > 0) continue;
    for (const rank of op.arrived) {
      const heads = blocking.get(rank)!;
      const isFirst = opKey(rank, heads[0]!) === op.key;
      const isGuess = heads.some((head) => head.isP2p && head.op < 0);
      if (isGuess || !(isFirst || states.get(rank)!.timing))
        op.absent.push({ rank, why: "behind" });
    }
  }
  // The parts of a batch share their number; operators issued one by one do not.
  const batchOf = (rank: Rank, op: StuckOp): number =>
    blocking.get(rank)!.find((head) => opKey(rank, head) === op.key)?.seq ?? -1;
  for (let moved = true; moved;) {
    moved = false;
    for (const op of ops) {
      if (!op.isP2p || op.absent.length > 0) continue;
      const held = op.arrived.filter((rank) => {
        const batch = batchOf(rank, op);
        return stuckIn.get(rank)!.some((index) => {
          const other = ops[index]!;
          return other.isP2p && other.absent.length > 0 && batchOf(rank, other) === batch;
        });
      });
      for (const rank of held) op.absent.push({ rank, why: "behind" });
      moved ||= held.length > 0;
    }
  }
}

/**
 * The heads in which the rank really is. With timing those that have started; none of them means that
 * its GPU does not get that far. Without timing, the first in issue order, and the sends before it
 * (asynchronous: they may be pending without blocking, but show a receiver that is behind).
 */
function blockingHeads(state: RankState): readonly Head[] {
  if (state.timing) return state.heads.filter((head) => head.started);
  const heads: Head[] = [];
  for (const head of state.heads) {
    heads.push(head);
    if (!(head.isP2p && head.isSend)) break;
  }
  return heads;
}

/** By group, the last operator that any of its ranks has completed. */
function farthestCompleted(states: ReadonlyMap<Rank, RankState>): Map<number, number> {
  const farthest = new Map<number, number>();
  for (const { completed } of states.values())
    for (const [group, seq] of completed)
      farthest.set(group, Math.max(seq, farthest.get(group) ?? -Infinity));
  return farthest;
}

/**
 * Pending operators that need nobody else: a collective that a peer has completed (all have done their
 * part in it, only this rank's GPU has not noticed), or the first one being of a group of one.
 */
function ownTrouble(
  job: Job,
  states: ReadonlyMap<Rank, RankState>,
  state: RankState,
  farthest: ReadonlyMap<number, number>,
): OwnGpu | null {
  // Of a dump that was cut off only counters are left, and they lag behind what the others' entries show.
  const isCut = job.dumps.get(state.rank)?.dump.isCut === true;
  for (const head of isCut ? [] : state.heads) {
    if (head.isP2p || isRooted(job, state, head)) continue;
    if (!((farthest.get(head.group) ?? -Infinity) >= head.seq)) continue;
    for (const member of job.groups[head.group]?.ranks ?? []) {
      if (member === state.rank) continue;
      const done = states.get(member)?.completed.get(head.group);
      if (done !== undefined && done >= head.seq) return { head, completedBy: member };
    }
  }
  if (isUncertain(state)) return null;
  const blocking = blockingHeads(state);
  // Without timing only the first is certain: a send before it may be what blocks.
  const alone = (state.timing ? blocking : blocking.slice(0, 1)).find(
    (head) =>
      !head.isP2p &&
      job.groups[head.group]?.ranks.length === 1 &&
      (job.groups[head.group]?.unknownMembers ?? 0) === 0,
  );
  return alone ? { head: alone, completedBy: null } : null;
}

/** In these the ranks do not finish together even when all is well. */
function isRooted(job: Job, state: RankState, head: Head): boolean {
  const ops = job.dumps.get(state.rank)?.dump.ops;
  const name = ops && head.op >= 0 ? ops.names[ops.name[head.op]!]! : "";
  return (
    /broadcast|^reduce$|gather_into|^gather|scatter$/.test(name) &&
    !/all_gather|reduce_scatter/.test(name)
  );
}

function findAbsent(job: Job, states: ReadonlyMap<Rank, RankState>, op: StuckOp): void {
  const here = new Set(op.arrived);
  const members = op.isP2p ? p2pRanks(op.key) : (job.groups[op.group]?.ranks ?? []);
  for (const rank of members) {
    if (here.has(rank)) continue;
    const state = states.get(rank);
    if (!state) {
      op.absent.push({ rank, why: "silent" });
      continue;
    }
    if (op.isP2p) {
      const posted = state.heads.some((head) => head.isP2p && opKey(rank, head) === op.key);
      op.absent.push({ rank, why: posted ? "behind" : "not-enqueued" });
      continue;
    }
    const completed = state.completed.get(op.group);
    if (completed !== undefined && completed >= op.seq) continue;
    const enqueued = state.enqueued.get(op.group);
    if (enqueued !== undefined && enqueued >= op.seq) op.absent.push({ rank, why: "behind" });
    else op.absent.push({ rank, why: "not-enqueued" });
  }
}

/**
 * Ranks whose dump has counters but no entries (a GIL that is held, a ring that was reset): what is
 * pending is known, in which of it the rank stands is not.
 * Counters without entries: what is pending is known, but not in which of it the rank is.
 */
function isUncertain(state: RankState): boolean {
  const started = state.heads.some((head) => head.started);
  if (state.hiddenP2p.length > 0) return !(state.timing && started);
  return !state.timing && state.heads.length > 1 && state.heads.every((head) => head.op < 0);
}

/**
 * A rank of unknown place cannot be in an operator that waits for it alone. It is where somebody else
 * is absent too; failing that, in a P2P operator that only its group's counter shows; failing that,
 * nowhere: its own GPU is stuck.
 */
function placeUncertain(
  job: Job,
  states: ReadonlyMap<Rank, RankState>,
  blocking: Map<Rank, readonly Head[]>,
  uncertain: readonly RankState[],
): void {
  const present = new Map<string, Set<Rank>>();
  const enter = (rank: Rank, heads: readonly Head[]): void => {
    blocking.set(rank, heads);
    for (const head of heads) {
      const key = opKey(rank, head);
      present.set(key, (present.get(key) ?? new Set()).add(rank));
    }
  };
  for (const [rank, heads] of blocking) enter(rank, heads);
  const unsure = new Map(uncertain.map((state) => [state.rank, state]));
  const openHeads = (state: RankState, among: "placed" | "all"): Head[] =>
    state.heads.filter((head) => {
      const here = present.get(opKey(state.rank, head));
      return (job.groups[head.group]?.ranks ?? []).some(
        (rank) => rank !== state.rank && !here?.has(rank) && (among === "all" || !unsure.has(rank)),
      );
    });
  // Placing one may place others: go on until nothing moves.
  for (let before = -1; before !== unsure.size;) {
    before = unsure.size;
    for (const state of unsure.values()) {
      const open = state.timing ? [] : openHeads(state, "placed");
      if (open.length === 0) continue;
      unsure.delete(state.rank);
      enter(state.rank, open);
    }
  }
  for (const state of unsure.values()) {
    const hidden = state.hiddenP2p.flatMap((group) => hiddenHeads(job, blocking, state, group));
    const open = state.timing ? [] : openHeads(state, "all");
    blocking.set(state.rank, hidden.length > 0 ? hidden : open);
  }
}

/** Possible partners of a P2P operator that only a counter tells of: neighbours that do not wait for us. */
function hiddenHeads(
  job: Job,
  blocking: ReadonlyMap<Rank, readonly Head[]>,
  state: RankState,
  group: number,
): Head[] {
  const ranks = job.groups[group]?.ranks ?? [];
  const at = ranks.indexOf(state.rank);
  const neighbours = [ranks[at - 1], ranks[at + 1]].filter((rank) => rank !== undefined);
  const free = neighbours.filter(
    (rank) => !blocking.get(rank)?.some((head) => head.isP2p && head.peer === state.rank),
  );
  return (free.length > 0 ? free : neighbours).map((peer) => ({
    group,
    seq: 0,
    isP2p: true,
    peer,
    isSend: false,
    op: -1,
    started: true,
  }));
}

/** One name for one operator, whichever of its ranks speaks of it. */
function opKey(rank: Rank, head: Head): string {
  if (!head.isP2p) return `${head.group}#${head.seq}`;
  const [from, to] = head.isSend ? [rank, head.peer] : [head.peer, rank];
  return `${head.group}:${from}>${to}`;
}

/** Sender and receiver of a P2P operator. */
function p2pRanks(key: string): Rank[] {
  return key
    .slice(key.indexOf(":") + 1)
    .split(">")
    .map(Number);
}
