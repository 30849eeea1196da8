/** Two simple ways, for comparison. */
import { randomInt, type Random } from "../../src/base/random.ts";
import { RECV, SEND } from "../../src/simulate/cluster/program.ts";
import type { Answer } from "./answer.ts";
import { NORMAL, SLOW } from "./cases.ts";
import type { KeptJob } from "./kept-job.ts";

/** The rank with most abnormal operators by 3 sigma, all logs read. */
export function mostAbnormal({ simulation, durationMs, shown }: KeptJob): Answer {
  const { lanes } = simulation.lanes;
  const counts = new Int32Array(simulation.spec.gpus);
  for (const [stage, ops] of shown.entries()) {
    const normal = NORMAL.map((iteration) => durationMs[iteration - 1]![stage]!);
    const slow = SLOW.map((iteration) => durationMs[iteration - 1]![stage]!);
    for (const op of ops)
      for (let at = op * lanes; at < (op + 1) * lanes; at++) {
        let sum = 0;
        let squares = 0;
        for (const column of normal) {
          sum += column[at]!;
          squares += column[at]! ** 2;
        }
        const mean = sum / normal.length;
        const deviation = Math.sqrt(Math.max(0, squares / normal.length - mean ** 2));
        const limit = Math.max(mean + 3 * deviation, 1.1 * mean);
        for (const column of slow)
          if (column[at]! > limit) counts[stage * lanes + (at - op * lanes)]!++;
      }
  }
  let most = 0;
  for (let rank = 1; rank < counts.length; rank++) if (counts[rank]! > counts[most]!) most = rank;
  return { cause: "compute", ranks: [most], share: 1 };
}

const STEPS = 20;

/** From a pivot to some member of the group, or the peer, of some operator that got longer, and so on. */
export function randomWalk(
  { simulation, durationMs, groups, shown, cluster }: KeptJob,
  random: Random,
): Answer {
  const { lanes } = simulation.lanes;
  let rank = randomInt(random, simulation.spec.gpus);
  let records = 0;
  for (let step = 0; step < STEPS; step++) {
    const stage = Math.floor(rank / lanes);
    const { kind, role, peerStage } = simulation.programs[stage]!;
    const mean = (iterations: readonly number[], op: number): number =>
      iterations.reduce(
        (sum, i) => sum + durationMs[i - 1]![stage]![op * lanes + (rank % lanes)]!,
        0,
      );
    const grown = shown[stage]!.filter(
      (op) => mean(SLOW, op) > 1.1 * mean(NORMAL, op) && kind[op] !== SEND,
    );
    records += shown[stage]!.length;
    if (grown.length === 0) break;
    const op = grown[randomInt(random, grown.length)]!;
    if (kind[op] === RECV) rank = peerStage[op]! * lanes + (rank % lanes);
    else {
      const { ranks } = groups[cluster.groupOf(rank, role[op]!)]!;
      rank = ranks[randomInt(random, ranks.length)]!;
    }
  }
  const total = shown.reduce((sum, ops) => sum + ops.length * lanes, 0);
  return { cause: "compute", ranks: [rank], share: records / total };
}
