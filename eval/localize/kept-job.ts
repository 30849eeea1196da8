/** Iterations of a simulated job kept as durations, and handed out as a search asks for them. */
import { simulate } from "../../src/simulate/cluster/engine.ts";
import { clusterGroups, type ClusterGroups } from "../../src/simulate/cluster/groups.ts";
import { NO_GROUP, RECV, SEND } from "../../src/simulate/cluster/program.ts";
import type { ClusterSpec } from "../../src/simulate/cluster/spec.ts";
import type { Simulation } from "../../src/simulate/cluster/times.ts";
import type { Group } from "../../src/model/job.ts";
import {
  COLLECTIVE,
  RECEIVING,
  RECORD_BYTES,
  SENDING,
  type Durations,
  type OperatorSource,
  type RankIteration,
} from "../../src/methods/localize/progressive/source.ts";

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

export function sourceOf(job: KeptJob): OperatorSource {
  const { simulation, durationMs, shown, cluster } = job;
  const { lanes } = simulation.lanes;
  const stageOf = (rank: number): number => Math.floor(rank / lanes);
  let records = 0;
  const perIteration = shown.reduce((sum, ops) => sum + ops.length * lanes, 0);
  const take = (rank: number, ops: readonly number[], iterations: readonly number[]): Durations => {
    const taken = new Float64Array(ops.length * iterations.length);
    let at = 0;
    for (const iteration of iterations) {
      const column = durationMs[iteration - 1]![stageOf(rank)]!;
      for (const op of ops) taken[at++] = op < 0 ? NaN : column[op * lanes + (rank % lanes)]!;
    }
    records += ops.filter((op) => op >= 0).length * iterations.length;
    return taken;
  };
  /** Operators of a stage in a role (kind, peer), in order. */
  const lists = new Map<string, number[]>();
  const listOf = (stage: number, key: string, is: (op: number) => boolean): number[] => {
    const whole = `${stage} ${key}`;
    let list = lists.get(whole);
    if (!list) lists.set(whole, (list = shown[stage]!.filter(is)));
    return list;
  };
  const roleOfGroup = (rank: number, group: number): number =>
    simulation.programs[stageOf(rank)]!.role.find(
      (role) => cluster.groupOf(rank, role) === group,
    ) ?? -1;
  return {
    worldSize: simulation.spec.gpus,
    ranks: Array.from({ length: simulation.spec.gpus }, (_, rank) => rank),
    has: () => true,
    get bytes() {
      return records * RECORD_BYTES;
    },
    totalBytes: perIteration * durationMs.length * RECORD_BYTES,
    iterationOf(rank): RankIteration {
      const stage = stageOf(rank);
      const { kind, role, peerStage } = simulation.programs[stage]!;
      const ops = shown[stage]!;
      records += ops.length;
      const isTransfer = (op: number): boolean => kind[op] === SEND || kind[op] === RECV;
      return {
        kind: Uint8Array.from(ops, (op) =>
          kind[op] === SEND ? SENDING : kind[op] === RECV ? RECEIVING : COLLECTIVE,
        ),
        group: Int32Array.from(ops, (op) =>
          isTransfer(op) ? -1 : cluster.groupOf(rank, role[op]!),
        ),
        peer: Int32Array.from(ops, (op) =>
          kind[op] === RECV ? peerStage[op]! * lanes + (rank % lanes) : -1,
        ),
      };
    },
    placesOf: (rank, places, iterations) =>
      take(
        rank,
        places.map((place) => shown[stageOf(rank)]![place]!),
        iterations,
      ),
    collectivesOf: (ranks, group, nth, iterations) =>
      ranks.map((rank) => {
        const stage = stageOf(rank);
        const { role, kind } = simulation.programs[stage]!;
        const code = roleOfGroup(rank, group);
        const list = listOf(
          stage,
          `role ${code}`,
          (op) => role[op] === code && kind[op] !== SEND && kind[op] !== RECV,
        );
        return take(
          rank,
          nth.map((n) => list[n] ?? -1),
          iterations,
        );
      }),
    transfersOf(side, from, to, nth, iterations) {
      const [sender, receiver] = [stageOf(from), stageOf(to)];
      const { kind, peerStage, peerOp } = simulation.programs[receiver]!;
      const list = listOf(
        receiver,
        `from ${sender}`,
        (op) => kind[op] === RECV && peerStage[op] === sender,
      );
      const ops = nth.map((n) => list[n] ?? -1);
      return take(
        side,
        side === to ? ops : ops.map((op) => (op < 0 ? -1 : peerOp[op]!)),
        iterations,
      );
    },
  };
}
