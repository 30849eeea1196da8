/**
 * "kineto/kineto.rankN.json": Chrome traces as torch.profiler writes them, of chosen ranks and steps
 * only; a trace of one step of one rank is some megabytes. A step in which the job stops leaves none,
 * as a profiler that is never stopped writes nothing.
 */
import { clusterGroups } from "../cluster/groups.ts";
import type { IterationTimes, Simulation } from "../cluster/times.ts";
import type { Emitter, Output } from "./emitter.ts";
import { RankTrace } from "./kineto/rank-trace.ts";
import { UserError } from "../../base/errors.ts";
import type { FaultSpec } from "../cluster/fault-spec.ts";
import { faultRanks, isEnding, severityAt } from "../cluster/faults.ts";
import { linkEnds } from "../cluster/links.ts";

const MOST_SUSPECTS = 4;

export interface KinetoOptions {
  /** Rank 0, the suspects and one healthy peer where not given. */
  readonly ranks?: readonly number[];
  /** Iterations as the log prints them; one before the first fault and one inside it where not given. */
  readonly steps?: readonly number[];
}

export function emitKineto(
  simulation: Simulation,
  output: Output,
  options: KinetoOptions = {},
): Emitter {
  const ranks = options.ranks ?? chooseRanks(simulation);
  checkRanks(ranks, simulation.spec.gpus);
  const steps = new Set(options.steps ?? chooseSteps(simulation));
  let traces: RankTrace[] | null = null;
  const open = (): RankTrace[] => {
    const groups = clusterGroups(simulation);
    return ranks.map((rank) => {
      const path = `kineto/kineto.rank${rank}.json`;
      return new RankTrace(simulation, groups, rank, path, output.open(path));
    });
  };
  return {
    iteration(times: IterationTimes): void {
      if (!steps.has(times.iteration) || times.endNs === Infinity) return;
      traces ??= open();
      for (const trace of traces) trace.step(times);
    },
    end(): void {
      for (const trace of traces ?? []) trace.end();
    },
  };
}

/**
 * Which ranks and steps are worth a trace when nobody says: nobody profiles a whole cluster.
 * Rank 0, the ranks that faults name, and a healthy rank that does the same work as the first of them.
 */
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

function checkRanks(ranks: readonly number[], gpus: number): void {
  for (const rank of ranks) {
    if (Number.isSafeInteger(rank) && rank >= 0 && rank < gpus) continue;
    throw new UserError(`a trace of rank ${rank} was asked for`, `allowed: 0 to ${gpus - 1}`, 2);
  }
}
