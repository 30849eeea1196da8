/**
 * The last iterations of a whole simulated job as an agent would hold them, for all machines of a process together:
 * Float32 columns by stage, place-major and lane-minor as the engine has them. 10,000 GPUs with 60 operators take
 * 7 MB an iteration.
 */
import type { IterationTimes, Simulation } from "../../../src/simulate/cluster/times.ts";
import {
  SENDING,
  COLLECTIVE,
  type StageOperators,
} from "../../../src/live/fleet/stage-operators.ts";

export interface StageColumns {
  /** Milliseconds from start to end; NaN where the lane does not run it. */
  readonly durationMs: Float32Array;
  /** Milliseconds after `BufferedIteration.startMs`. */
  readonly startMs: Float32Array;
  readonly issueMs: Float32Array;
}

export interface BufferedIteration {
  iteration: number;
  /** Milliseconds since 1970 when the iteration before was done on all ranks. */
  startMs: number;
  readonly stages: readonly StageColumns[];
  /** By rank: when it ended, and what PointsReport has. */
  readonly endMs: Float64Array;
  readonly durationMs: Float32Array;
  readonly collectiveMs: Float32Array;
  readonly sendMs: Float32Array;
  readonly recvMs: Float32Array;
  readonly spanMs: Float32Array;
}

export class IterationBuffer {
  readonly #simulation: Simulation;
  readonly #stages: readonly StageOperators[];
  readonly #keep: number;
  readonly #slots: BufferedIteration[] = [];
  /** By rank: when the last iteration that was added ended; the start of the job before. */
  readonly #endedMs: Float64Array;
  #last = 0;

  constructor(
    simulation: Simulation,
    stages: readonly StageOperators[],
    keep: number,
    startMs: number,
  ) {
    this.#simulation = simulation;
    this.#stages = stages;
    this.#keep = keep;
    this.#endedMs = new Float64Array(simulation.spec.gpus).fill(startMs);
  }

  /** Number of the newest one; 0 before the first. */
  get last(): number {
    return this.#last;
  }

  get first(): number {
    return Math.max(1, this.#last - this.#keep + 1);
  }

  /** null where it is not held. */
  of(iteration: number): BufferedIteration | null {
    const slot = this.#slots[(iteration - 1) % this.#keep];
    return slot?.iteration === iteration ? slot : null;
  }

  /** One that has ended on all ranks. They come in order. */
  add(times: IterationTimes, wallMs: (ns: number) => number, scale: number): BufferedIteration {
    const index = (times.iteration - 1) % this.#keep;
    const slot = (this.#slots[index] ??= this.#empty());
    const { lanes } = this.#simulation.lanes;
    const msOfNs = scale / 1e6;
    slot.iteration = this.#last = times.iteration;
    slot.startMs = wallMs(times.startNs);
    slot.collectiveMs.fill(0);
    slot.sendMs.fill(0);
    slot.recvMs.fill(0);
    for (const layout of this.#stages) {
      const { issueNs, startNs, endNs } = times.stages[layout.stage]!;
      const columns = slot.stages[layout.stage]!;
      const base = layout.stage * lanes;
      for (let place = 0; place < layout.count; place++) {
        const from = layout.op[place]! * lanes;
        const to = place * lanes;
        const code = layout.code[place]!;
        const sum =
          code === COLLECTIVE ? slot.collectiveMs : code === SENDING ? slot.sendMs : slot.recvMs;
        for (let lane = 0; lane < lanes; lane++) {
          const ms = (endNs[from + lane]! - startNs[from + lane]!) * msOfNs;
          columns.durationMs[to + lane] = ms;
          columns.startMs[to + lane] = (startNs[from + lane]! - times.startNs) * msOfNs;
          columns.issueMs[to + lane] = (issueNs[from + lane]! - times.startNs) * msOfNs;
          // What the replica leaves out of its share has no times.
          if (!Number.isNaN(ms)) sum[base + lane]! += ms;
        }
      }
      const first = layout.op[0]! * lanes;
      const last = layout.op[layout.count - 1]! * lanes;
      for (let lane = 0; lane < lanes; lane++)
        slot.spanMs[base + lane] = (issueNs[last + lane]! - issueNs[first + lane]!) * msOfNs;
    }
    for (let rank = 0; rank < slot.endMs.length; rank++) {
      const endMs = wallMs(times.rankEndNs[rank]!);
      slot.endMs[rank] = endMs;
      slot.durationMs[rank] = endMs - this.#endedMs[rank]!;
      this.#endedMs[rank] = endMs;
    }
    return slot;
  }

  /** When the rank was done with the last iteration that is held. */
  endedMs(rank: number): number {
    return this.#endedMs[rank]!;
  }

  #empty(): BufferedIteration {
    const { spec, lanes } = this.#simulation;
    const byRank = (): Float32Array => new Float32Array(spec.gpus);
    return {
      iteration: 0,
      startMs: 0,
      stages: this.#stages.map(({ count }) => ({
        durationMs: new Float32Array(count * lanes.lanes),
        startMs: new Float32Array(count * lanes.lanes),
        issueMs: new Float32Array(count * lanes.lanes),
      })),
      endMs: new Float64Array(spec.gpus),
      durationMs: byRank(),
      collectiveMs: byRank(),
      sendMs: byRank(),
      recvMs: byRank(),
      spanMs: byRank(),
    };
  }
}
