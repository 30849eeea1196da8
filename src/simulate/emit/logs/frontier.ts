/** How far a rank is in each of its groups when the job stops: only the last iteration has to be looked at. */
import type { IterationTimes, Simulation } from "../../cluster/times.ts";
import { NO_GROUP, RECV, SEND, type StageProgram } from "../../cluster/program.ts";
import { ranBefore } from "../operator-counts.ts";

/** The first operator of a group that the rank issued and that never ended, and the group's counters. */
export interface Pending {
  readonly role: number;
  /** Index in the stage's program. */
  readonly op: number;
  readonly seq: number;
  readonly issuedNs: number;
  /** The other side of a P2P operator; -1 for a collective. */
  readonly peer: number;
  readonly enqueued: number;
  readonly completed: number;
}

/** Counters of a group in which nothing is pending. */
interface Counters {
  enqueued: number;
  completed: number;
}

export interface Frontier {
  readonly pending: readonly Pending[];
  readonly counters: ReadonlyMap<number, Counters>;
  /** When the rank's CPU issued its last operator. */
  readonly lastIssueNs: number;
}

export type FrontierOf = (rank: number) => Frontier;

export function frontiers(simulation: Simulation, times: IterationTimes): FrontierOf {
  const { lanes, programs } = simulation;
  const ran = ranBefore(simulation, times.iteration);
  const receivers = programs.map((program) => receiversOf(programs, program));
  return (rank) => {
    const stage = Math.floor(rank / lanes.lanes);
    const lane = rank % lanes.lanes;
    const program = programs[stage]!;
    const { issueNs, endNs } = times.stages[stage]!;
    const counters = new Map<number, Counters>();
    const first = new Map<number, { op: number; seq: number; issuedNs: number; peer: number }>();
    let lastIssueNs = times.startNs;
    for (const role of new Set(program.role)) {
      if (role === NO_GROUP) continue;
      const before = ran(rank, role);
      counters.set(role, { enqueued: before, completed: before });
    }
    const seqs = new Map([...counters].map(([role, { enqueued }]) => [role, enqueued]));
    for (let op = 0; op < program.count; op++) {
      const issued = issueNs[op * lanes.lanes + lane]!;
      if (issued === Infinity) break;
      if (issued > lastIssueNs) lastIssueNs = issued;
      const role = program.role[op]!;
      if (role === NO_GROUP) continue;
      const seq = seqs.get(role)! + 1;
      seqs.set(role, seq);
      const counter = counters.get(role)!;
      counter.enqueued = seq;
      // The watchdog keeps the number of whatever it saw end last, also past an operator that hangs.
      if (endNs[op * lanes.lanes + lane] !== Infinity) counter.completed = seq;
      else if (!first.has(role)) {
        const other =
          program.kind[op] === RECV ? program.peerStage[op]! : (receivers[stage]!.get(op) ?? -1);
        const peer = other < 0 ? -1 : other * lanes.lanes + lane;
        first.set(role, { op, seq, issuedNs: issued, peer });
      }
    }
    const pending = [...first]
      .map(([role, at]) => ({ role, ...at, ...counters.get(role)! }))
      .sort((a, b) => a.issuedNs - b.issuedNs);
    return { pending, counters, lastIssueNs };
  };
}

/** Stage that takes what a send of this stage sends, by the send's index. */
function receiversOf(
  programs: readonly StageProgram[],
  { stage, kind }: StageProgram,
): Map<number, number> {
  const to = new Map<number, number>();
  for (const other of programs) {
    for (let op = 0; op < other.count; op++) {
      const send = other.peerOp[op]!;
      if (other.peerStage[op] === stage && kind[send] === SEND) to.set(send, other.stage);
    }
  }
  return to;
}
