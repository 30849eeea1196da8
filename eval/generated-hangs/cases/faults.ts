import type { Random } from "../../../src/base/random.ts";
import { pick, randomInt } from "../../../src/base/random.ts";
import type { Execution, Faults } from "./execute.ts";
import { noFaults } from "./execute.ts";
import type { SimGroup } from "../../../src/simulate/flight/rank-records.ts";
import type { Op } from "../../../src/simulate/flight/op.ts";
import { isP2p } from "../../../src/simulate/flight/op.ts";
import type { RankRun } from "./rank-run.ts";

export const FAULT_KINDS = [
  "cpu-stall",
  "gpu-hang",
  "gpu-error",
  "process-gone",
  "process-stopped",
  "network-hang",
  "collective-mismatch",
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];
/** Faults that leave the program as it is. */
export type RankFault = Exclude<FaultKind, "collective-mismatch">;

/** One rank's fault: the first operator that it spoils. */
export interface Culprit {
  readonly rank: number;
  readonly index: number;
}

export interface Placement {
  readonly faults: Faults;
  readonly culprits: readonly Culprit[];
  /** Per rank the operator from which a broken GPU reports nothing more. */
  readonly blindFrom: ReadonlyMap<number, number>;
}

/**
 * Draws who fails and where, on the healthy run: at one moment every culprit is between two operators,
 * so none of them can be held up by another one's fault before it reaches its own.
 */
export function placeFault(
  kind: RankFault,
  healthy: Execution,
  groups: readonly SimGroup[],
  iteration: number,
  count: number,
  random: Random,
): Placement | null {
  const faults = noFaults(healthy.runs.length);
  if (kind === "network-hang") return loseCollective(healthy, groups, iteration, random);
  const culprits = betweenOperators(healthy, iteration, count, random);
  if (culprits === null) return null;
  const blindFrom = new Map<number, number>();
  for (const { rank, index } of culprits) {
    if (kind === "gpu-hang") faults.hangAt[rank] = index;
    else if (kind === "gpu-error") {
      const stop = lastGasp(healthy.runs[rank] as RankRun, index, groups, random);
      if (stop === null) return null;
      blindFrom.set(rank, index);
      faults.hangAt[rank] = stop;
    } else faults.stallAt[rank] = index;
  }
  return { faults, culprits, blindFrom };
}

function loseCollective(
  healthy: Execution,
  groups: readonly SimGroup[],
  iteration: number,
  random: Random,
): Placement | null {
  const run = pick(random, healthy.runs);
  const places = [...run.ops.keys()].filter((i) => {
    const op = run.ops[i] as Op;
    return op.iteration === iteration && isShared(op, groups);
  });
  if (places.length === 0) return null;
  const index = pick(random, places);
  const { group } = run.ops[index] as Op;
  const seq = run.slot[index] as number;
  const culprits = (groups[group] as SimGroup).ranks.map((rank) => {
    const other = healthy.runs[rank] as RankRun;
    const isIt = (op: Op, i: number): boolean =>
      op.group === group && !isP2p(op) && other.slot[i] === seq;
    return { rank, index: other.ops.findIndex(isIt) };
  });
  const faults = { ...noFaults(healthy.runs.length), lost: { group, seq } };
  return { faults, culprits, blindFrom: new Map() };
}

function isShared(op: Op, groups: readonly SimGroup[]): boolean {
  return !isP2p(op) && (groups[op.group] as SimGroup).ranks.length > 1;
}

function betweenOperators(
  healthy: Execution,
  iteration: number,
  count: number,
  random: Random,
): Culprit[] | null {
  for (let attempt = 0; attempt < 300; attempt++) {
    const rank = randomInt(random, healthy.runs.length);
    const run = healthy.runs[rank] as RankRun;
    const index = pick(
      random,
      [...run.ops.keys()].filter((i) => run.ops[i]?.iteration === iteration && !run.ops[i]?.async),
    );
    const beforeNs = run.endNs[syncBefore(run, index)] as number;
    const moment = beforeNs + random() * ((run.startNs[index] as number) - beforeNs);
    const culprits = [{ rank, index }];
    for (let tries = 0; culprits.length < count && tries < 8 * count; tries++) {
      const other = randomInt(random, healthy.runs.length);
      if (culprits.some((c) => c.rank === other)) continue;
      const at = nextOperator(healthy.runs[other] as RankRun, moment);
      if (at >= 0) culprits.push({ rank: other, index: at });
    }
    if (culprits.length === count) return culprits.toSorted((a, b) => a.rank - b.rank);
  }
  return null;
}

function syncBefore(run: RankRun, index: number): number {
  let i = index - 1;
  while (i >= 0 && run.ops[i]?.async === true) i--;
  return i;
}

/** The operator that a rank is about to start, or -1 when it is inside one at that moment. */
function nextOperator(run: RankRun, momentNs: number): number {
  for (let i = 1; i < run.ops.length; i++) {
    if (run.ops[i]?.async === true || (run.startNs[i] as number) <= momentNs) continue;
    return (run.endNs[syncBefore(run, i)] as number) <= momentNs ? i : -1;
  }
  return -1;
}

/**
 * Where a GPU that reports nothing any more really stops: some operators later, after at least one
 * collective that its peers will complete, and before its CPU has to wait.
 */
function lastGasp(
  run: RankRun,
  index: number,
  groups: readonly SimGroup[],
  random: Random,
): number | null {
  const stops: number[] = [];
  let hasWitness = isShared(run.ops[index] as Op, groups);
  for (let i = index + 1; i < run.ops.length && run.ops[i]?.hostWait === 0; i++) {
    const op = run.ops[i] as Op;
    if (hasWitness && !op.async) stops.push(i);
    hasWitness ||= isShared(op, groups) && !op.async;
  }
  return stops.length > 0 ? pick(random, stops.slice(0, 6)) : null;
}
