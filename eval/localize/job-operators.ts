/** A kept job as Algorithm 1 asks for it: a rank's operators, the same operator elsewhere, how long and when. */
import { RECV, SEND } from "../../src/simulate/cluster/program.ts";
import type { KeptJob } from "./kept-job.ts";

export interface JobOperators {
  /** Operators of a rank that its log shows, in order. */
  readonly of: (rank: number) => readonly number[];
  readonly isTransfer: (rank: number, op: number) => boolean;
  /** Members of a collective's group, in its order. */
  readonly groupOf: (rank: number, op: number) => readonly number[];
  /** The same collective on another member. */
  readonly sameOn: (rank: number, op: number, member: number) => number;
  /** The other side of a transfer. */
  readonly peerOf: (rank: number, op: number) => readonly [rank: number, op: number];
  /**
   * Within the iteration, where starts are kept: a rank that is done early enters the next iteration's first operator
   * and waits there for whoever is still in the last one. That wait has no operator before it to be traced to.
   */
  readonly tookMs: (rank: number, op: number, iteration: number) => number;
  /** From the iteration's beginning; needs a job kept with starts. */
  readonly startMs: (rank: number, op: number, iteration: number) => number;
}

const byJob = new WeakMap<KeptJob, JobOperators>();

export function jobOperators(job: KeptJob): JobOperators {
  let operators = byJob.get(job);
  if (!operators) byJob.set(job, (operators = makeOperators(job)));
  return operators;
}

function makeOperators(job: KeptJob): JobOperators {
  const { simulation, durationMs, startMs, groups, shown, cluster } = job;
  const { lanes } = simulation.lanes;
  const stageOf = (rank: number): number => Math.floor(rank / lanes);
  const programOf = (rank: number) => simulation.programs[stageOf(rank)]!;
  const receives = receivesOfSends(job);
  return {
    of: (rank) => shown[stageOf(rank)]!,
    isTransfer(rank, op) {
      const kind = programOf(rank).kind[op]!;
      return kind === SEND || kind === RECV;
    },
    groupOf: (rank, op) => groups[cluster.groupOf(rank, programOf(rank).role[op]!)]!.ranks,
    sameOn(rank, op, member) {
      if (stageOf(rank) === stageOf(member)) return op;
      // Across stages programs differ; what meets there (the embedding's, the world's) comes once in each.
      return programOf(member).role.indexOf(programOf(rank).role[op]!);
    },
    peerOf(rank, op) {
      const { kind, peerStage, peerOp } = programOf(rank);
      const [stage, peer] =
        kind[op] === RECV ? [peerStage[op]!, peerOp[op]!] : receives.get(`${stageOf(rank)} ${op}`)!;
      return [stage * lanes + (rank % lanes), peer];
    },
    tookMs(rank, op, iteration) {
      const at = op * lanes + (rank % lanes);
      const took = durationMs[iteration - 1]![stageOf(rank)]![at]!;
      if (startMs === null) return took;
      const before = Math.min(0, startMs[iteration - 1]![stageOf(rank)]![at]!);
      return Math.max(0, took + before);
    },
    startMs: (rank, op, iteration) =>
      startMs![iteration - 1]![stageOf(rank)]![op * lanes + (rank % lanes)]!,
  };
}

/** Stage and operator of the receive that a send goes to, by "stage operator". */
function receivesOfSends({ simulation }: KeptJob): Map<string, readonly [number, number]> {
  const found = new Map<string, readonly [number, number]>();
  for (const { stage, count, kind, peerStage, peerOp } of simulation.programs)
    for (let op = 0; op < count; op++)
      if (kind[op] === RECV) found.set(`${peerStage[op]!} ${peerOp[op]!}`, [stage, op]);
  return found;
}
