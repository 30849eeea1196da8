/** One simulated job in memory, shared by the nodes of all its machines: for rehearsals of thousands of GPUs. */
import type { ClusterSpec } from "../../../src/simulate/cluster/spec.ts";
import type { IterationTimes } from "../../../src/simulate/cluster/times.ts";
import { fateOf, type Fate } from "../../../src/live/fleet/fault-board.ts";
import { IterationBuffer } from "./iteration-buffer.ts";
import { PlayedJob } from "../../../src/live/fleet/played-job.ts";
import { rankGroups, type RankGroup } from "../../../src/live/fleet/rank-groups.ts";
import { stageOperators, type StageOperators } from "../../../src/live/fleet/stage-operators.ts";

export interface SimulatedFleetOptions {
  readonly spec: ClusterSpec;
  readonly job: string;
  readonly run: string;
  /** What a healthy iteration takes. */
  readonly everyMs: number;
  readonly startMs: number;
  /** Iterations that agents hold. */
  readonly keep?: number;
  readonly mostMicroBatches?: number | undefined;
}

export class SimulatedFleet {
  readonly job: string;
  readonly run: string;
  readonly played: PlayedJob;
  readonly held: IterationBuffer;
  readonly stages: readonly StageOperators[];

  constructor(options: SimulatedFleetOptions) {
    const { spec, job, run, everyMs, startMs, keep = 64, mostMicroBatches } = options;
    this.job = job;
    this.run = run;
    this.played = new PlayedJob({ spec, everyMs, startMs, mostMicroBatches });
    const { simulation } = this.played;
    this.stages = simulation.programs.map((_, stage) => stageOperators(simulation, stage));
    this.held = new IterationBuffer(simulation, this.stages, keep, startMs);
  }

  /** Computes what has begun by now; cheap where nothing has. */
  advance(nowMs: number): void {
    for (;;) {
      const times = this.played.next(nowMs);
      if (times === null) return;
      if (times.endNs !== Infinity)
        this.held.add(times, (ns) => this.played.wallMs(ns), this.played.scale);
    }
  }

  /** The iteration that never ends; null while the job runs. */
  get hung(): IterationTimes | null {
    return this.played.isHung ? this.played.last : null;
  }

  /** Ranks whose processes have ended or stand still by now, and how; empty while the job runs. */
  struckBy(nowMs: number, among: readonly number[]): Map<number, Fate> {
    const { hung, played } = this;
    const fates = new Map<number, Fate>();
    if (hung === null) return fates;
    const struck = played.board.struckIn(hung.iteration);
    for (const rank of among) {
      const fault = struck.get(rank);
      if (fault && this.#lastIssueMs(rank, hung) <= nowMs) fates.set(rank, fateOf(fault));
    }
    return fates;
  }

  #lastIssueMs(rank: number, { startNs, stages }: IterationTimes): number {
    const { issueNs } = stages[this.stageOf(rank).stage]!;
    const { lanes } = this.played.simulation.lanes;
    let last = startNs;
    for (let at = rank % lanes; at < issueNs.length && issueNs[at]! < Infinity; at += lanes)
      last = Math.max(last, issueNs[at]!);
    return this.played.wallMs(last);
  }

  get machines(): number {
    return this.played.simulation.topology.machines;
  }

  machineName(machine: number): string {
    return this.played.simulation.topology.machineName(machine);
  }

  ranksOf(machine: number): number[] {
    const { gpus, gpusPerMachine } = this.played.simulation.spec;
    const first = machine * gpusPerMachine;
    return Array.from({ length: Math.min(gpusPerMachine, gpus - first) }, (_, i) => first + i);
  }

  stageOf(rank: number): StageOperators {
    return this.stages[Math.floor(rank / this.played.simulation.lanes.lanes)]!;
  }

  laneOf(rank: number): number {
    return rank % this.played.simulation.lanes.lanes;
  }

  groupsOf(rank: number): RankGroup[] {
    return rankGroups(this.played.simulation, this.played.groups, this.stageOf(rank), rank);
  }
}

/** What a process of a simulated rank would have for a number. */
export function simulatedPid(rank: number): number {
  return 100_000 + rank;
}
