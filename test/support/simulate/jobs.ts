/** Random small jobs for the tests, and their runs kept whole. */
import fc from "fast-check";
import { simulate, type SimulateOptions } from "../../../src/simulate/cluster/engine.ts";
import type { Steer } from "../../../src/simulate/cluster/steering.ts";
import type { Simulation } from "../../../src/simulate/cluster/times.ts";
import { parseFault, type FaultSpec } from "../../../src/simulate/cluster/fault-spec.ts";
import * as P from "../../../src/simulate/cluster/program.ts";
import {
  completeSpec,
  type ClusterSpec,
  type ScheduleName,
} from "../../../src/simulate/cluster/spec.ts";

/** Layouts of 2 to 128 GPUs over tp, pp, dp, cp and ep, in all schedules. */
export const jobs: fc.Arbitrary<ClusterSpec> = fc
  .record({
    tp: fc.constantFrom(1, 2, 4, 8),
    cp: fc.constantFrom(1, 1, 2),
    dp: fc.constantFrom(1, 2, 3, 4),
    pp: fc.constantFrom(1, 2, 3, 4),
    experts: fc.boolean(),
    schedule: fc.constantFrom<ScheduleName>("1f1b", "gpipe", "interleaved"),
    microBatches: fc.integer({ min: 1, max: 6 }),
    layersPerStage: fc.integer({ min: 1, max: 3 }),
    sequenceParallel: fc.boolean(),
    overlapGradients: fc.boolean(),
    gpusPerMachine: fc.constantFrom(2, 4, 8),
    machinesPerLeaf: fc.constantFrom(1, 2, 32),
    seed: fc.integer({ min: 0, max: 1_000_000 }),
    noise: fc.constantFrom(0, 1, 4),
  })
  .filter(({ tp, cp, dp, pp }) => tp * cp * dp * pp >= 2 && tp * cp * dp * pp <= 128)
  .map(({ experts, ...job }) => {
    const schedule = job.pp === 1 && job.schedule === "interleaved" ? "1f1b" : job.schedule;
    return completeSpec({
      ...job,
      schedule,
      microBatches: schedule === "interleaved" ? 2 * job.pp : job.microBatches,
      ep: experts && job.dp > 1 ? job.dp : 1,
      iterations: 3,
      hidden: 1024,
      sequence: 1024,
    });
  });

/** A slow-down from the second iteration on, somewhere in the job. */
export function slowFault(spec: ClusterSpec, choice: number, place: number): FaultSpec {
  const rank = place % spec.gpus;
  const crowded = spec.gpus <= spec.gpusPerMachine;
  const words = [
    `gpu-slow:rank=${rank}:severity=3`,
    `cpu-stall:rank=${rank}:severity=60`,
    `dataloader:rank=${rank % (spec.gpus / spec.pp)}:severity=4`,
    `garbage-collection:rank=${rank}:severity=5`,
    "synchronization",
    `minority-kernels:severity=1.5`,
    crowded ? `gemm-layout` : `network-slow:rank=${rank}:severity=6`,
    crowded ? `slow-kernel:rank=${rank}` : `network-slow:switch=leaf0:severity=6`,
    `gpu-slow:rank=${rank}:severity=2:signature=nvlink:shape=ramp`,
  ];
  return parseFault(`${words[choice % words.length]!}:from=2`);
}

/** One iteration, copied out of the engine's arrays; times by rank, then operator. */
export interface Kept {
  readonly iteration: number;
  readonly startNs: number;
  readonly endNs: number;
  readonly issue: number[][];
  readonly start: number[][];
  readonly end: number[][];
}

export interface Run extends Simulation {
  readonly kept: readonly Kept[];
}

export function run(spec: ClusterSpec, options: SimulateOptions = {}, steer?: Steer): Run {
  const simulation = simulate(spec, options);
  const { lanes } = simulation.lanes;
  const byRank = (pick: (stage: number) => Float64Array): number[][] =>
    Array.from({ length: spec.gpus }, (_, rank) => {
      const stage = Math.floor(rank / lanes);
      const column = pick(stage);
      const { count } = simulation.programs[stage]!;
      return Array.from({ length: count }, (_, op) => column[op * lanes + (rank % lanes)]!);
    });
  const kept = Array.from(
    simulation.iterations(steer),
    ({ iteration, startNs, endNs, stages }) => ({
      iteration,
      startNs,
      endNs,
      issue: byRank((stage) => stages[stage]!.issueNs),
      start: byRank((stage) => stages[stage]!.startNs),
      end: byRank((stage) => stages[stage]!.endNs),
    }),
  );
  return { ...simulation, kept };
}

/** What a rank's operator is a part of: every (rank, operator) that takes part, itself included. */
export interface Part {
  readonly rank: number;
  readonly op: number;
}

export const programOf = ({ spec, programs }: Simulation, rank: number): P.StageProgram =>
  programs[Math.floor((rank * spec.pp) / spec.gpus)]!;

/** Worked out from the digits of the rank alone, so that lanes.ts is not tested against itself. */
export function partsOf(simulation: Simulation, { rank, op }: Part): Part[] {
  const { tp, cp, dp, pp, ep, gpus } = simulation.spec;
  const program = programOf(simulation, rank);
  const role = program.role[op]!;
  const digits = (r: number) => ({
    t: r % tp,
    c: Math.floor(r / tp) % cp,
    d: Math.floor(r / tp / cp) % dp,
    p: Math.floor(r / tp / cp / dp),
  });
  const me = digits(rank);
  const replica = (x: { c: number; d: number }): number => x.d * cp + x.c;
  const all = Array.from({ length: gpus }, (_, r) => r);
  const ranks = all.filter((r) => {
    const x = digits(r);
    if (role === P.WORLD) return true;
    const isLane = x.t === me.t && x.c === me.c && x.d === me.d;
    if (role === P.EMBEDDING) return isLane && (x.p === 0 || x.p === pp - 1);
    if (x.p !== me.p) return false;
    if (role === P.TP) return x.c === me.c && x.d === me.d;
    if (x.t !== me.t) return false;
    if (role === P.CP) return x.d === me.d;
    if (role === P.DP) return true;
    if (role === P.EP) return Math.floor(replica(x) / ep) === Math.floor(replica(me) / ep);
    return r === rank;
  });
  if (program.kind[op] === P.RECV) {
    const lanes = gpus / pp;
    const sender = program.peerStage[op]! * lanes + (rank % lanes);
    return [
      { rank: sender, op: program.peerOp[op]! },
      { rank, op },
    ];
  }
  if (role !== P.WORLD && role !== P.EMBEDDING) return ranks.map((r) => ({ rank: r, op }));
  return ranks.map((r) => ({ rank: r, op: programOf(simulation, r).role.indexOf(role) }));
}

/** Every operator of the job once, as its parts; a send appears with its receive. */
export function* operators(simulation: Simulation): Generator<Part[]> {
  for (let rank = 0; rank < simulation.spec.gpus; rank++) {
    const { count, kind } = programOf(simulation, rank);
    for (let op = 0; op < count; op++) {
      if (kind[op] === P.SEND) continue;
      const parts = partsOf(simulation, { rank, op });
      const isFirst = kind[op] === P.RECV || parts[0]!.rank === rank;
      if (isFirst) yield parts;
    }
  }
}
