/**
 * Holmes as published, for comparison: algorithm 1 (§4.3.2) from one pivot in each slow iteration, the ends counted
 * over iterations (§4.4). The detector is the 3-sigma rule in place of the paper's trained forest: abnormal is what
 * takes longer than mean + 3 deviations of the normal iterations and 10 % more than the mean.
 */
import type { KeptJob } from "./kept-job.ts";
import { RECV, SEND } from "../../src/simulate/cluster/program.ts";
import { NORMAL, SLOW } from "./cases.ts";
import type { Answer } from "./answer.ts";

export function isAbnormal(took: number, mean: number, deviation: number): boolean {
  return took > mean + 3 * deviation && took > 1.1 * mean;
}

export function meanAndDeviation(values: readonly number[]): [number, number] {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return [mean, Math.sqrt(squares / values.length)];
}

export function asPublished(job: KeptJob, pivot: number): Answer {
  const { simulation, durationMs, groups, shown, cluster } = job;
  const { lanes } = simulation.lanes;
  const read = new Set<number>();
  const most = Math.max(...simulation.programs.map(({ count }) => count));
  const stageOf = (rank: number): number => Math.floor(rank / lanes);
  const took = (rank: number, op: number, iteration: number): number =>
    durationMs[iteration - 1]![stageOf(rank)]![op * lanes + (rank % lanes)]!;
  const abnormal = (rank: number, op: number, iteration: number): boolean => {
    read.add(rank * most + op);
    const [mean, deviation] = meanAndDeviation(NORMAL.map((each) => took(rank, op, each)));
    return isAbnormal(took(rank, op, iteration), mean, deviation);
  };
  /** The same collective on another member: across stages programs differ, there the nth of its role. */
  const sameOp = (rank: number, op: number, member: number): number => {
    if (stageOf(rank) === stageOf(member)) return op;
    const role = simulation.programs[stageOf(rank)]!.role[op]!;
    return simulation.programs[stageOf(member)]!.role.indexOf(role);
  };
  const receiverOf = receivers(job);
  const ends = new Map<string, { votes: number; answer: Omit<Answer, "share"> }>();
  const add = (cause: Answer["cause"], ranks: readonly number[]): void => {
    const key = `${cause} ${ranks.join()}`;
    const known = ends.get(key);
    if (known) known.votes++;
    else ends.set(key, { votes: 1, answer: { cause, ranks } });
  };
  for (const iteration of SLOW) {
    const visited = new Set<number>();
    const locate = (rank: number, op: number): void => {
      if (visited.has(rank * most + op)) return;
      visited.add(rank * most + op);
      const program = simulation.programs[stageOf(rank)]!;
      const kind = program.kind[op]!;
      const lane = rank % lanes;
      if (kind === SEND || kind === RECV) {
        const [stage, peerOp] =
          kind === RECV
            ? [program.peerStage[op]!, program.peerOp[op]!]
            : receiverOf.get(stageOf(rank) * most + op)!;
        const peer = stage * lanes + lane;
        if (abnormal(peer, peerOp, iteration)) return add("network", [rank, peer]);
        for (const before of shown[stage]!)
          if (before < peerOp && abnormal(peer, before, iteration)) locate(peer, before);
        return;
      }
      const { ranks } = groups[cluster.groupOf(rank, program.role[op]!)]!;
      const normal = ranks.find((m) => m !== rank && !abnormal(m, sameOp(rank, op, m), iteration));
      if (normal === undefined) return add("network", ranks);
      const end = sameOp(rank, op, normal);
      const before = shown[stageOf(normal)]!.filter((each) => each < end);
      const earlier = before.findLast((each) => abnormal(normal, each, iteration));
      if (earlier === undefined) add("compute", [normal]);
      else locate(normal, earlier);
    };
    for (const op of shown[stageOf(pivot)]!) if (abnormal(pivot, op, iteration)) locate(pivot, op);
  }
  const best = [...ends.values()].sort((a, b) => b.votes - a.votes)[0];
  const total = shown.reduce((sum, ops) => sum + ops.length * lanes, 0);
  return { ...(best?.answer ?? { cause: "compute", ranks: [] }), share: read.size / total };
}

/** Stage and operator of the receive that a send goes to, by stage · most + operator. */
function receivers({ simulation }: KeptJob): Map<number, readonly [number, number]> {
  const most = Math.max(...simulation.programs.map(({ count }) => count));
  const found = new Map<number, readonly [number, number]>();
  for (const { stage, count, kind, peerStage, peerOp } of simulation.programs)
    for (let op = 0; op < count; op++)
      if (kind[op] === RECV) found.set(peerStage[op]! * most + peerOp[op]!, [stage, op]);
  return found;
}
