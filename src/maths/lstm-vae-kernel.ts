/**
 * The LSTM-VAE over many machines at once, in vectors of four. Values lie tick by tick with the machines side by side,
 * so that a vector is one load whatever the windows' stride; nothing is allocated or copied per window.
 */
import { assert } from "../base/errors.ts";
import { vaeModule, weightCount, writeWeights } from "./lstm-vae-code.ts";
import type { LstmVae, VaeShape } from "./lstm-vae.ts";
import { simdMemory, type SimdFunction } from "./simd-code.ts";

export class VaeKernel {
  readonly shape: VaeShape;
  /** Machines and those that fill up the last vector: how far rows lie apart. */
  readonly stride: number;
  /** To be filled: input i of machine m at tick t is at (t · inputs + i) · stride + m. */
  readonly series: Float32Array;
  /** Filled by `run`: number l of machine m's latent mean is at l · stride + m. */
  readonly mean: Float32Array;
  /** Filled by `run` where asked for: input i of step s at (s · inputs + i) · stride + m. */
  readonly window: Float32Array;
  readonly #weights: Float32Array;
  readonly #run: SimdFunction;

  constructor(shape: VaeShape, machines: number, ticks: number) {
    this.shape = shape;
    this.stride = Math.ceil(machines / 4) * 4;
    const { inputs, latent, window } = shape;
    const sizes = [
      Math.ceil(weightCount(shape) / 4) * 4,
      ticks * inputs * this.stride,
      latent * this.stride,
      window * inputs * this.stride,
    ];
    const memory = simdMemory(4 * sizes.reduce((sum, size) => sum + size));
    let from = 0;
    const [weights, series, mean, out] = sizes.map((size) => {
      from += 4 * size;
      return new Float32Array(memory.buffer, from - 4 * size, size);
    }) as [Float32Array, Float32Array, Float32Array, Float32Array];
    this.#weights = weights;
    this.series = series;
    this.mean = mean;
    this.window = out;
    this.#run = vaeModule(shape).over(memory);
  }

  load(model: LstmVae): void {
    const { shape } = this;
    assert(
      (Object.keys(shape) as (keyof VaeShape)[]).every((key) => shape[key] === model.shape[key]),
      "a model of the kernel's shape",
    );
    writeWeights(model, this.#weights);
  }

  /** The windows of all machines that begin at this tick. */
  run(tick: number, decode: boolean): void {
    const { series, mean, window, stride, shape } = this;
    assert(
      (tick + shape.window) * shape.inputs * stride <= series.length,
      "a window inside the series",
    );
    this.#run(
      series.byteOffset + 4 * tick * shape.inputs * stride,
      4 * stride,
      decode ? 1 : 0,
      mean.byteOffset,
      window.byteOffset,
    );
  }
}
