/**
 * The account of a kept job's time: what a rank is inside operators in each iteration is their sum, and what communication takes once
 * everybody is there is the least over its members. A kept job holds durations alone: nothing tells its CPUs from its GPUs.
 */
import { getOrInsert, groupBy } from "../../src/base/group-by.ts";
import { median } from "../../src/maths/robust.ts";
import type { Account } from "../../src/methods/slow/account.ts";
import type { Wire } from "../../src/methods/slow/wire-times.ts";
import { RECV } from "../../src/simulate/cluster/program.ts";
import type { Group } from "../../src/model/job.ts";
import { operatorsOf, stageOf, type KeptJob } from "./kept-job.ts";

/** `numbers`: iterations to compare, in order. */
export function accountOf(job: KeptJob, numbers: readonly number[]): Account {
  const { gpus } = job.simulation.spec;
  const blocks = numbers.length;
  const lengthMs = Float64Array.from(numbers, (n) => job.iterationMs[n - 1]!);
  const unitMs = median(lengthMs);
  const unknown = new Float64Array(gpus * blocks).fill(NaN);
  const ranks = Array.from({ length: gpus }, (_, rank) => rank);
  return {
    ranks,
    blocks,
    numbers: Float64Array.from(numbers),
    areIterations: true,
    unitMs,
    lengthMs,
    inside: insideOf(job, numbers, unitMs),
    issuing: new Float64Array(gpus * blocks),
    groups: [
      { id: -1, places: Int32Array.from(ranks) },
      ...sharedGroups(job).map(({ id, ranks: members }) => ({
        id,
        places: Int32Array.from(members),
      })),
    ],
    roles: Int32Array.from(ranks, (rank) => stageOf(job, rank)),
    besideUnseen: new Uint8Array(ranks.length),
    calls: {
      behind: unknown,
      behindRole: unknown,
      waited: unknown,
      waitedGpu: unknown,
      firstBehind: unknown,
    },
    wires: [...communicators(job, numbers), ...pairs(job, numbers)]
      .filter(({ least }) => least.every((ms) => ms > 0))
      .map((wire) => ({ ...wire, least: wire.least.map((ms) => ms / unitMs) })),
  };
}

/** Each set of members once, and not everybody. */
function sharedGroups({ groups, simulation }: KeptJob): Group[] {
  const { gpus } = simulation.spec;
  return [...groupBy(groups, ({ ranks }) => ranks.join()).values()]
    .map(([first]) => first!)
    .filter(({ ranks }) => ranks.length > 1 && ranks.length < gpus);
}

function insideOf(
  { simulation, durationMs, shown }: KeptJob,
  numbers: readonly number[],
  unitMs: number,
): Float64Array {
  const { lanes } = simulation.lanes;
  const blocks = numbers.length;
  const inside = new Float64Array(simulation.spec.gpus * blocks);
  for (const [stage, ops] of shown.entries())
    for (const [k, n] of numbers.entries()) {
      const took = durationMs[n - 1]![stage]!;
      for (const op of ops)
        for (let lane = 0; lane < lanes; lane++)
          inside[(stage * lanes + lane) * blocks + k]! += took[op * lanes + lane]! / unitMs;
    }
  return inside;
}

/** The nth collective of one member is the nth of each. */
function* communicators(job: KeptJob, numbers: readonly number[]): Iterable<Wire> {
  const { simulation, groups, durationMs } = job;
  const { lanes } = simulation.lanes;
  for (const { id, ranks, role } of groups) {
    const own = ranks.map((rank) => operatorsOf(job, rank, id));
    if (ranks.length < 2 || own[0]!.length === 0) continue;
    const least = new Float64Array(numbers.length);
    for (const [k, n] of numbers.entries()) {
      const iteration = durationMs[n - 1]!;
      for (let nth = 0; nth < own[0]!.length; nth++) {
        let ms = Infinity;
        for (const [m, rank] of ranks.entries()) {
          const took = iteration[stageOf(job, rank)]!;
          ms = Math.min(ms, took[own[m]![nth]! * lanes + (rank % lanes)]!);
        }
        least[k]! += ms;
      }
    }
    const stages = new Set(ranks.map((rank) => stageOf(job, rank)));
    const program = stages.size === 1 ? simulation.programs[[...stages][0]!]! : null;
    const bytes = program ? own[0]!.reduce((sum, op) => sum + program.bytes[op]!, 0) : "";
    const kind = `${role} ${ranks.length}: ${own[0]!.length} ${bytes}`;
    yield { places: ranks, isPair: false, group: id, kind, least };
  }
}

/**
 * Both directions between two ranks, each transfer as whoever came last saw it: as often the fastest one. What a slow wire carries is
 * all slow; that both sides wait for somebody else while a transfer is under way, or send at the same time, comes to single ones.
 */
function* pairs(job: KeptJob, numbers: readonly number[]): Iterable<Wire> {
  const { simulation, durationMs } = job;
  const { lanes } = simulation.lanes;
  for (const [kind, { ends, transfers }] of transfersByStages(job))
    for (let lane = 0; lane < lanes; lane++) {
      const tookMs = new Float64Array(transfers.length);
      const least = Float64Array.from(numbers, (n) => {
        const iteration = durationMs[n - 1]!;
        for (const [i, { stage, op, peerStage, peerOp }] of transfers.entries()) {
          const received = iteration[stage]![op * lanes + lane]!;
          const sent = iteration[peerStage]![peerOp * lanes + lane]!;
          tookMs[i] = Math.min(sent, received);
        }
        return transfers.length * Math.min(...tookMs);
      });
      yield { places: ends.map((end) => end * lanes + lane), isPair: true, group: -1, kind, least };
    }
}

interface Transfer {
  readonly stage: number;
  readonly op: number;
  readonly peerStage: number;
  readonly peerOp: number;
}

/** What each two stages receive from each other. */
function transfersByStages({ simulation, shown }: KeptJob) {
  const found = new Map<string, { readonly ends: number[]; readonly transfers: Transfer[] }>();
  for (const { stage, kind, peerStage, peerOp } of simulation.programs)
    for (const op of shown[stage]!) {
      if (kind[op] !== RECV) continue;
      const ends = [stage, peerStage[op]!].sort((a, b) => a - b);
      const { transfers } = getOrInsert(found, ends.join("–"), () => ({ ends, transfers: [] }));
      transfers.push({ stage, op, peerStage: peerStage[op]!, peerOp: peerOp[op]! });
    }
  return found;
}
