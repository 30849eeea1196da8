/**
 * Trains an LSTM-VAE on windows of healthy machines: Adam on batches drawn with a seed. The divergence's weight is small
 * and comes in slowly, for the window's reconstruction is what denoises (Minder §6.3: mean square error below 1e-4);
 * at full weight from the start, the decoder learns to say the same whatever the latent variable says.
 */
import { randomInt, seeded, type Random } from "../base/random.ts";
import { VaePass } from "./lstm-vae-gradient.ts";
import { freshVae, type LstmVae, type VaeShape } from "./lstm-vae.ts";

interface VaeTraining {
  readonly shape: VaeShape;
  readonly seed: number;
  /** Batches that are learnt from. */
  readonly batches: number;
  readonly batchSize: number;
  readonly rate: number;
  /** Weight of the divergence at the end; a Gaussian decoder of variance v and w samples means 2v/w. */
  readonly divergence: number;
  /** Called now and then with the share that is done and the mean square error of late. */
  readonly onProgress?: (share: number, square: number) => void;
}

export const DEFAULT_TRAINING = { seed: 1, batches: 16_000, batchSize: 8, rate: 0.02 } as const;
/** Of a decoder whose samples are off by 0.002. */
export const DEFAULT_DIVERGENCE = 1e-6;

/** Windows one behind the other, each window · inputs numbers. */
export function trainVae(windows: Float32Array, training: VaeTraining): LstmVae {
  const { shape, batches, batchSize, rate, divergence } = training;
  const model = freshVae(shape, training.seed);
  const random = seeded(training.seed + 1);
  const size = shape.window * shape.inputs;
  const count = windows.length / size;
  const pass = new VaePass(model);
  const noise = new Float64Array(shape.latent);
  const gradient = new Float64Array(model.parameters.length);
  const adam = new Adam(model.parameters);
  let recent = NaN;
  for (let batch = 0; batch < batches; batch++) {
    const share = batch / batches;
    const weight = divergence * Math.min(1, 2 * share);
    gradient.fill(0);
    let square = 0;
    for (let i = 0; i < batchSize; i++) {
      const from = size * randomInt(random, count);
      const x = windows.subarray(from, from + size);
      for (let l = 0; l < noise.length; l++) noise[l] = normal(random);
      pass.forward(x, noise);
      pass.backward(noise, weight, gradient);
      square += pass.losses().square / batchSize;
    }
    for (let i = 0; i < gradient.length; i++) gradient[i]! /= batchSize;
    // Down to a hundredth along a cosine: the last batches polish.
    adam.step(gradient, rate * (0.01 + 0.495 * (1 + Math.cos(Math.PI * share))));
    recent = Number.isNaN(recent) ? square : 0.99 * recent + 0.01 * square;
    if (batch % 200 === 199) training.onProgress?.((batch + 1) / batches, recent);
  }
  return model;
}

/** Mean over windows of the mean square error of the reconstruction, nothing drawn. */
export function reconstructionError(model: LstmVae, windows: Float32Array): number {
  const size = model.shape.window * model.shape.inputs;
  const pass = new VaePass(model);
  let sum = 0;
  for (let from = 0; from < windows.length; from += size) {
    const x = windows.subarray(from, from + size);
    pass.forward(x, null);
    sum += pass.losses().square;
  }
  return (sum * size) / windows.length;
}

function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** Kingma and Ba 2015, with their constants; gradients longer than 1 are shortened, as is usual with LSTMs. */
class Adam {
  readonly #parameters: Float64Array;
  readonly #first: Float64Array;
  readonly #second: Float64Array;
  #steps = 0;

  constructor(parameters: Float64Array) {
    this.#parameters = parameters;
    this.#first = new Float64Array(parameters.length);
    this.#second = new Float64Array(parameters.length);
  }

  step(gradient: Float64Array, rate: number): void {
    this.#steps++;
    const first = this.#first;
    const second = this.#second;
    const length = Math.sqrt(gradient.reduce((sum, value) => sum + value * value, 0));
    const scale = length > 1 ? 1 / length : 1;
    const size = (rate * Math.sqrt(1 - 0.999 ** this.#steps)) / (1 - 0.9 ** this.#steps);
    for (let i = 0; i < gradient.length; i++) {
      const g = scale * gradient[i]!;
      first[i] = 0.9 * first[i]! + 0.1 * g;
      second[i] = 0.999 * second[i]! + 0.001 * g * g;
      this.#parameters[i]! -= (size * first[i]!) / (Math.sqrt(second[i]!) + 1e-8);
    }
  }
}
