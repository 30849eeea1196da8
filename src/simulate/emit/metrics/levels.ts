/** The state of one GPU or machine over one sample, out of the timeline, the work and the effects. */
import type { Effects, GpuEffect, MachineEffect } from "./effects.ts";
import type { Part } from "./timeline.ts";
import type { Work } from "./work.ts";

export interface GpuLevel {
  /** Shares of the time: in kernels of the model, in collectives (waiting or moving), with nothing to do. */
  compute: number;
  communicate: number;
  idle: number;
  /** Work done in kernels, in time of a healthy GPU. */
  useful: number;
  nvlinkPerS: number;
  /** What the NIC carries, what it is asked to, and what crosses PCIe. */
  nicPerS: number;
  offeredPerS: number;
  pciePerS: number;
  /** Of the process, while it lives. */
  memoryMib: number;
  /** Of the regime that takes most of the sample. */
  effect: Readonly<GpuEffect>;
}

/** Weights, gradients and activations of a job that fills its GPUs fairly well. */
const MEMORY_MIB = 62_000;
/** Even a GPU that is kept busy has gaps between its kernels. */
const GAPS = 0.01;

export class Levels {
  readonly samples: readonly (readonly Part[])[];
  readonly #effects: readonly Effects[];
  readonly #work: Work;
  readonly #main: Uint16Array;

  /** `effects` by regime. */
  constructor(samples: readonly (readonly Part[])[], effects: readonly Effects[], work: Work) {
    this.samples = samples;
    this.#effects = effects;
    this.#work = work;
    this.#main = Uint16Array.from(
      samples,
      (parts) => parts.reduce((most, part) => (part.share > most.share ? part : most)).regime,
    );
  }

  gpuEffect(rank: number, sample: number): Readonly<GpuEffect> {
    return this.#effects[this.#main[sample]!]!.gpu(rank);
  }

  machine(machine: number, sample: number): Readonly<MachineEffect> {
    return this.#effects[this.#main[sample]!]!.machine(machine);
  }

  /** Fills `level`, which is reused: there are as many as there are samples. */
  gpu(rank: number, sample: number, level: GpuLevel): void {
    level.compute = level.idle = level.useful = level.nvlinkPerS = level.nicPerS = 0;
    for (const { regime, share, rate } of this.samples[sample]!) {
      const effect = this.#effects[regime]!.gpu(rank);
      const work = this.#work;
      const useful = rate * work.computeS[rank]!;
      const compute = effect.idle ? 0 : Math.min(0.97 * share, useful * effect.slow);
      level.useful += effect.idle ? 0 : Math.min(useful, compute);
      level.compute += compute;
      if (effect.idle) level.idle += share;
      else if (effect.late) level.idle += 0.7 * (share - compute);
      else level.idle += GAPS * share;
      level.nvlinkPerS += rate * work.nvlinkBytes[rank]!;
      level.nicPerS += rate * work.nicBytes[rank]! * effect.traffic;
    }
    level.offeredPerS = level.pciePerS = level.nicPerS;
    level.memoryMib = MEMORY_MIB;
    level.communicate = Math.max(0, 1 - level.compute - level.idle);
    level.effect = this.gpuEffect(rank, sample);
    if (level.effect.stuck > 0) {
      level.compute += level.effect.stuck * level.communicate;
      level.communicate = 0;
    }
  }
}
