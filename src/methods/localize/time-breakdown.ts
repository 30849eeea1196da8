/**
 * Where the time of a rank's iterations goes. A collective ends for all its members at once, so a late rank
 * makes the others stay longer in it: time inside communication is mostly waiting for others, and time outside
 * is the rank's own. Of a job in which one rank computes slowly, only that rank's own time grows (Holmes §4.3:
 * the member whose operator is normal is the one that the others wait for). Durations of operators are the
 * GPU's, so this needs no common clock.
 *
 * Sends that run beside kernels take no time from anybody. Whether they do is a matter of the framework, and the
 * job tells: counted wrongly, they carry the waiting of others into own times, which otherwise are quiet.
 */
import { median, spread } from "../../maths/robust.ts";
import type { Rank } from "../../model/ids.ts";
import type { Group } from "../../model/job.ts";
import type { OperatorTable } from "../../model/operators.ts";
import type { RankOperators } from "../../model/rank-operators.ts";

export interface TimeBreakdown {
  /** Number of each iteration. */
  readonly iteration: Float64Array;
  readonly totalMs: Float64Array;
  /** Outside communication: kernels of its own, and waiting for its own CPU. */
  readonly ownMs: Float64Array;
  /** From the CPU's first call of an operator in the iteration to its last. */
  readonly issueMs: Float64Array;
  /** Class of operators ("TENSOR_PARALLEL", "PIPELINE_PARALLEL recv") → usual time an iteration inside them. */
  readonly insideMs: ReadonlyMap<string, number>;
  /** Equal for ranks that run the same program: what they call in an iteration, in order. */
  readonly program: number;
}

/** Time inside operators, by iteration, for each class of them: "TENSOR_PARALLEL", "PIPELINE_PARALLEL send". */
export interface Inside {
  readonly durationMs: Float64Array;
  readonly byClass: ReadonlyMap<string, Float64Array>;
  /** Equal for ranks that run the same program; absent where that is not known. */
  readonly program?: number;
}

/** Iterations that warm up. */
export const WARM_UP = 2;
/** Sends are taken to run beside kernels if own times are so much quieter without them. */
const QUIETER = 0.9;

/** Ranks whose operators carry no duration (no TORCH_NCCL_ENABLE_TIMING) have no account. */
export function timeBreakdowns(
  ranks: readonly RankOperators[],
  groups: readonly Group[],
): Map<Rank, TimeBreakdown> {
  const all = ranks.flatMap((rank) => insideOf(rank, groups) ?? []);
  const beside = classesBeside(all);
  return new Map(all.map((inside) => [inside.rank.rank, accountOf(inside, beside)]));
}

interface InsideOfRank extends Inside {
  readonly rank: RankOperators;
  readonly program: number;
}

function insideOf(rank: RankOperators, groups: readonly Group[]): InsideOfRank | null {
  const { ops, groupIds, from, to } = rank;
  const byClass = new Map<string, Float64Array>();
  let timed = 0;
  let all = 0;
  for (let i = 0; i < from.length; i++) {
    for (let op = from[i]!; op < to[i]!; op++) {
      const took = ops.durationMs[op]!;
      const group = groupIds[ops.group[op]!] ?? -1;
      // What an all-to-all has for the rank itself is copied: nobody times that, and nobody waits for it.
      if (ops.isP2p[op] === 1 && groups[group]?.ranks[ops.peer[op]!] === rank.rank) continue;
      all++;
      if (!(took >= 0)) continue;
      timed++;
      const role = groups[group]?.role ?? `group ${ops.group[op]}`;
      const side = ops.isP2p[op] === 0 ? "" : ops.isSend[op] === 1 ? " send" : " recv";
      const key = role + side;
      let sums = byClass.get(key);
      if (!sums) byClass.set(key, (sums = new Float64Array(from.length)));
      sums[i]! += took;
    }
  }
  // A few operators without a duration are those still running when the dump was written.
  if (timed < 0.9 * all) return null;
  return { rank, durationMs: rank.durationMs, byClass, program: programOf(rank, groups) };
}

/**
 * Sends run beside kernels in some frameworks and hold them up in others; so do receives that are posted early
 * (interleaved schedules).
 */
export function classesBeside(all: readonly Inside[]): Set<string> {
  const names = [...new Set(all.flatMap(({ byClass }) => [...byClass.keys()]))];
  const ending = (end: RegExp): Set<string> => new Set(names.filter((name) => end.test(name)));
  let quietest = new Set<string>();
  let noise = noiseOf(all, quietest);
  for (const beside of [ending(/ send$/), ending(/ (send|recv)$/)]) {
    const without = noiseOf(all, beside);
    if (without >= QUIETER * noise) continue;
    [quietest, noise] = [beside, without];
  }
  return quietest;
}

/**
 * How far own times are from what they should be, in two ways that know nothing of each other, so that their product
 * counts: from one iteration to the next, and between ranks that run the same program. A record of a few iterations
 * says little in the first way. In the second, waiting that is counted wrongly sets all the neighbours of a slow rank
 * apart, and counted rightly the slow rank alone: hence a mean over ranks, where the first takes a median.
 */
function noiseOf(all: readonly Inside[], beside: ReadonlySet<string>): number {
  const within: number[] = [];
  const levels = new Map<number, number[]>();
  for (const [k, inside] of all.entries()) {
    const own = ownTimes(inside, beside).subarray(WARM_UP);
    const totalMs = median(inside.durationMs);
    const level = median(own);
    within.push(spread(own, level) / totalMs);
    const program = inside.program ?? -1 - k;
    levels.set(program, [...(levels.get(program) ?? []), level / totalMs]);
  }
  return Math.max(FLOOR, median(within)) * betweenPeers([...levels.values()]);
}

/** Mean distance of ranks' levels from those of their peers; 1 where nobody has peers. */
function betweenPeers(programs: readonly (readonly number[])[]): number {
  const distances = programs.flatMap((levels) => {
    const centre = median(levels);
    return levels.length <= MIN_PEERS ? [] : levels.map((level) => Math.abs(level - centre));
  });
  if (distances.length === 0) return 1;
  return Math.max(FLOOR, distances.reduce((sum, each) => sum + each, 0) / distances.length);
}

/** Fewer than this agree by chance, or share the fault. */
const MIN_PEERS = 3;
/** No account is better than this share of an iteration. */
const FLOOR = 0.0005;

/** What is left of each iteration without the time inside operators; some classes run beside kernels. */
export function ownTimes(
  { durationMs, byClass }: Inside,
  beside: ReadonlySet<string>,
): Float64Array {
  const own = durationMs.slice();
  for (const [name, sums] of byClass) {
    if (beside.has(name)) continue;
    for (let i = 0; i < own.length; i++) own[i]! -= sums[i]!;
  }
  return own;
}

function accountOf(inside: InsideOfRank, beside: ReadonlySet<string>): TimeBreakdown {
  const { iteration, durationMs, from, to, ops } = inside.rank;
  const issueMs = Float64Array.from(
    from,
    (first, i) => (ops.createdNs[to[i]! - 1]! - ops.createdNs[first]!) / 1e6,
  );
  const ownMs = ownTimes(inside, beside);
  return {
    iteration,
    totalMs: durationMs,
    ownMs,
    issueMs,
    insideMs: new Map([...inside.byClass].map(([name, ms]) => [name, median(ms)])),
    program: inside.program,
  };
}

/**
 * Hash of the kinds of calls of the last iteration. Stages in the middle of a pipeline make the same calls; the peers'
 * places in the pipeline tell them apart. In a group of all ranks a place is that of one rank alone. A period may be
 * cut anywhere, and is cut elsewhere where a CPU is late: a sum over neighbouring calls, all around, is the same.
 */
function programOf({ ops, from, to, groupIds }: RankOperators, groups: readonly Group[]): number {
  const [first, end] = [from.at(-1)!, to.at(-1)!];
  const largest = groups.reduce((most, { ranks }) => Math.max(most, ranks.length), 0);
  const callOf = (op: number): number => {
    const isP2p = ops.isP2p[op] === 1;
    const size = groups[groupIds[ops.group[op]!] ?? -1]?.ranks.length ?? largest;
    const peer = isP2p && size < largest ? ops.peer[op]! + 1 : 0;
    const kind = isP2p ? ops.isSend[op]! : 2;
    return mixed(kind ^ (peer << 8) ^ (sizeOfCall(ops, op) | 0));
  };
  let sum = 0;
  let before = callOf(end - 1);
  for (let op = first; op < end; op++) {
    const call = callOf(op);
    sum = (sum + mixed(Math.imul(before, 31) ^ call)) | 0;
    before = call;
  }
  return sum;
}

/** Elements that a call of the program carries; none where that is up to the data: tokens to experts. */
export function sizeOfCall({ inputNumel, names, name }: OperatorTable, op: number): number {
  return ALL_TO_ALL.test(names[name[op]!]!) ? 0 : inputNumel[op]!;
}

/** NCCL's operator and those of PyTorch that are made of it: all_to_all, all_to_allv, alltoall_base. */
const ALL_TO_ALL = /^all_?to_?all/i;

function mixed(value: number): number {
  const hash = Math.imul(value, 0x9e3779b1);
  return Math.imul(hash ^ (hash >>> 15), 0x85ebca6b) ^ (hash >>> 13);
}
