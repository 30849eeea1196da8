/** Which ranks and steps are worth a trace when nobody says: nobody profiles a whole cluster. */
import { UserError } from "../../../base/errors.ts";
import type { Simulation } from "../../cluster/times.ts";
import type { FaultSpec } from "../../cluster/fault-spec.ts";
import { faultRanks, isEnding, severityAt } from "../../cluster/faults.ts";
import { linkEnds } from "../../cluster/links.ts";

const MOST_SUSPECTS = 4;

/** Rank 0, the ranks that faults name, and a healthy rank that does the same work as the first of them. */
export function chooseRanks(simulation: Simulation): number[] {
  const { spec } = simulation;
  const suspects = spec.faults.flatMap((fault) => suspectsOf(simulation, fault));
  const all = Array.from({ length: spec.gpus }, (_, rank) => rank);
  const [first = 0] = suspects;
  const stage = (rank: number): number => Math.floor((rank * spec.pp) / spec.gpus);
  const isFree = (rank: number): boolean => rank !== 0 && !suspects.includes(rank);
  const peer =
    all.find((r) => isFree(r) && r % spec.tp === first % spec.tp && stage(r) === stage(first)) ??
    all.find(isFree);
  const chosen = new Set([0, ...suspects, ...(peer === undefined ? [] : [peer])]);
  return [...chosen].sort((a, b) => a - b);
}

function suspectsOf({ spec, topology }: Simulation, fault: FaultSpec): number[] {
  const all = Array.from({ length: spec.gpus }, (_, rank) => rank);
  const names = (rank: number): string[] => [
    String(rank),
    topology.machineName(topology.machineOf(rank)),
    topology.leafName(topology.leafOf(rank)),
  ];
  const { link } = fault;
  const ends = link && linkEnds(topology, spec.gpus, link);
  let ranks: number[] = [];
  // Of two machines, half the ranks each.
  if (ends) ranks = ends.flatMap((end) => end.slice(0, MOST_SUSPECTS / 2));
  else if (link) ranks = all.filter((rank) => link.every((end) => names(rank).includes(end)));
  else if (fault.switch !== null)
    ranks = all.filter((rank) => names(rank).includes(fault.switch!)).slice(0, 1);
  else if (fault.ranks.length > 0 || fault.machine !== null)
    ranks = faultRanks(spec, topology, fault);
  return ranks.slice(0, MOST_SUSPECTS);
}

/** One step before the first fault and the worst within it; a step that never ends is never written. */
export function chooseSteps({ spec }: Simulation): number[] {
  const [fault] = [...spec.faults].sort((a, b) => a.from - b.from);
  const last = spec.iterations;
  if (!fault) return existing([2, 3], last);
  if (isEnding(fault, fault.from)) return existing([fault.from - 2, fault.from - 1], last);
  let worst = fault.from;
  for (let step = fault.from; step <= Math.min(fault.to, last); step++) {
    const isWorse = severityAt(fault, step, spec.seed) > severityAt(fault, worst, spec.seed) + 1e-9;
    if (isWorse) worst = step;
  }
  const other = fault.from > 1 ? fault.from - 1 : Math.min(fault.to, last) + 1;
  return existing([other, worst], last);
}

function existing(steps: readonly number[], last: number): number[] {
  const kept = steps.filter((step) => step >= 1 && step <= last);
  return kept.length > 0 ? kept.sort((a, b) => a - b) : [1];
}

export function checkRanks(ranks: readonly number[], gpus: number): void {
  for (const rank of ranks) {
    if (Number.isSafeInteger(rank) && rank >= 0 && rank < gpus) continue;
    throw new UserError(`a trace of rank ${rank} was asked for`, `allowed: 0 to ${gpus - 1}`, 2);
  }
}
