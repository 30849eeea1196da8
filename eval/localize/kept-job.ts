/** Iterations of a simulated job kept as durations. */
import { simulate } from "../../src/simulate/cluster/engine.ts";
import { clusterGroups, type ClusterGroups } from "../../src/simulate/cluster/groups.ts";
import { NO_GROUP, RECV, SEND } from "../../src/simulate/cluster/program.ts";
import type { ClusterSpec } from "../../src/simulate/cluster/spec.ts";
import type { Simulation } from "../../src/simulate/cluster/times.ts";
import type { Group } from "../../src/model/job.ts";

export interface KeptJob {
  readonly simulation: Simulation;
  readonly groups: readonly Group[];
  readonly cluster: ClusterGroups;
  /** Milliseconds, by iteration from 1: the first is at 0. */
  readonly iterationMs: readonly number[];
  /** [iteration - 1][stage], op-major: operator o on lane l at o · lanes + l; milliseconds. */
  readonly durationMs: readonly (readonly Float32Array[])[];
  /** When they began, from the iteration's beginning on one clock; null where not asked for. */
  readonly startMs: readonly (readonly Float32Array[])[] | null;
  /** What a stage's ranks run that logs show: operators of the program, by place. */
  readonly shown: readonly (readonly number[])[];
}

export interface KeepOptions {
  /** As much memory again: 8,192 GPUs take 6 MB an iteration without. */
  readonly starts?: boolean;
}

/** As many iterations as the spec has. */
export function keepJob(spec: ClusterSpec, { starts = false }: KeepOptions = {}): KeptJob {
  const simulation = simulate(spec);
  const cluster = clusterGroups(simulation);
  const iterationMs: number[] = [];
  const durationMs: Float32Array[][] = [];
  const startMs: Float32Array[][] = [];
  for (const { startNs, endNs, stages } of simulation.iterations()) {
    iterationMs.push((endNs - startNs) / 1e6);
    durationMs.push(
      stages.map(({ startNs: from, endNs: to }) => {
        const took = new Float32Array(from.length);
        for (let i = 0; i < took.length; i++) took[i] = (to[i]! - from[i]!) / 1e6;
        return took;
      }),
    );
    if (starts)
      startMs.push(
        stages.map(({ startNs: from }) => {
          const since = new Float32Array(from.length);
          for (let i = 0; i < since.length; i++) since[i] = (from[i]! - startNs) / 1e6;
          return since;
        }),
      );
  }
  const shown = simulation.programs.map(({ count, role }) =>
    Array.from({ length: count }, (_, op) => op).filter((op) => role[op] !== NO_GROUP),
  );
  return {
    simulation,
    cluster,
    iterationMs,
    durationMs,
    startMs: starts ? startMs : null,
    shown,
    groups: cluster.groups.map(({ index, name, desc, role, ranks }) => ({
      id: index,
      name,
      desc,
      ranks,
      role,
      carriesP2p: role === "pp",
    })),
  };
}

export function stageOf({ simulation }: KeptJob, rank: number): number {
  return Math.floor(rank / simulation.lanes.lanes);
}

/** A rank's collectives in a group, in order: operators of its stage's program. */
export function operatorsOf(job: KeptJob, rank: number, group: number): readonly number[] {
  const stage = stageOf(job, rank);
  const { role, kind } = job.simulation.programs[stage]!;
  const code = role.find((each) => job.cluster.groupOf(rank, each) === group);
  return job.shown[stage]!.filter((op) => role[op] === code && !isTransfer(kind[op]!));
}

/** What a rank sends and receives. */
export function transfersOf(job: KeptJob, rank: number): readonly number[] {
  const stage = stageOf(job, rank);
  const { kind } = job.simulation.programs[stage]!;
  return job.shown[stage]!.filter((op) => isTransfer(kind[op]!));
}

function isTransfer(kind: number): boolean {
  return kind === SEND || kind === RECV;
}
