/**
 * A variational autoencoder whose encoder and decoder are LSTMs (Minder §4.2, Figure 6): a window of samples goes in, a
 * few numbers that say what it is like come out (mean of the latent variable), and from them the window again, without
 * its noise. The encoder's last state gives mean and log-variance; the decoder sees the latent variable at every step.
 *
 * All parameters lie in one array, in the order of `layoutOf`. Gates in the order input, forget, cell, output.
 */
import { assert } from "../base/errors.ts";
import { seeded } from "../base/random.ts";

export interface VaeShape {
  /** Samples in a window. */
  readonly window: number;
  /** Metrics that go in together; 1 in Minder, all of them in its variant INT (§6.3). */
  readonly inputs: number;
  readonly hidden: number;
  readonly latent: number;
}

/** The paper's (§4.2). */
export const MINDER_SHAPE: VaeShape = { window: 8, inputs: 1, hidden: 4, latent: 8 };

export interface LstmVae {
  readonly shape: VaeShape;
  readonly parameters: Float64Array;
}

/** Where each matrix (row-major, a row an output) begins. */
export interface VaeLayout {
  readonly encoderInput: number;
  readonly encoderState: number;
  readonly encoderBias: number;
  readonly mean: number;
  readonly meanBias: number;
  readonly logVariance: number;
  readonly logVarianceBias: number;
  readonly decoderInput: number;
  readonly decoderState: number;
  readonly decoderBias: number;
  readonly output: number;
  readonly outputBias: number;
  readonly size: number;
}

export function layoutOf({ inputs, hidden, latent }: VaeShape): VaeLayout {
  let size = 0;
  const next = (count: number): number => {
    size += count;
    return size - count;
  };
  const gates = 4 * hidden;
  return {
    encoderInput: next(gates * inputs),
    encoderState: next(gates * hidden),
    encoderBias: next(gates),
    mean: next(latent * hidden),
    meanBias: next(latent),
    logVariance: next(latent * hidden),
    logVarianceBias: next(latent),
    decoderInput: next(gates * latent),
    decoderState: next(gates * hidden),
    decoderBias: next(gates),
    output: next(inputs * hidden),
    outputBias: next(inputs),
    size,
  };
}

/** Uniform by fan-in; forget gates open, so that gradients reach the window's first samples from the start. */
export function freshVae(shape: VaeShape, seed: number): LstmVae {
  const layout = layoutOf(shape);
  const parameters = new Float64Array(layout.size);
  const random = seeded(seed);
  const { inputs, hidden, latent } = shape;
  const fill = (from: number, outputs: number, fanIn: number): void => {
    const most = 1 / Math.sqrt(fanIn);
    for (let i = from; i < from + outputs * fanIn; i++) parameters[i] = most * (2 * random() - 1);
  };
  fill(layout.encoderInput, 4 * hidden, inputs);
  fill(layout.encoderState, 4 * hidden, hidden);
  fill(layout.mean, latent, hidden);
  fill(layout.logVariance, latent, hidden);
  fill(layout.decoderInput, 4 * hidden, latent);
  fill(layout.decoderState, 4 * hidden, hidden);
  fill(layout.output, inputs, hidden);
  for (const bias of [layout.encoderBias, layout.decoderBias])
    parameters.fill(1, bias + hidden, bias + 2 * hidden);
  // The posterior begins narrow: otherwise the first thing learnt is to pay no heed to the latent variable.
  parameters.fill(-6, layout.logVarianceBias, layout.logVarianceBias + latent);
  parameters.fill(0.5, layout.outputBias, layout.outputBias + inputs);
  return { shape, parameters };
}

export interface VaeJson {
  readonly shape: VaeShape;
  readonly parameters: readonly number[];
}

/** Five digits: the kernel works in float32, and reconstruction errors of 1e-2 do not see the sixth. */
export function vaeToJson({ shape, parameters }: LstmVae): VaeJson {
  return { shape, parameters: Array.from(parameters, (value) => Number(value.toPrecision(5))) };
}

export function vaeFromJson({ shape, parameters }: VaeJson): LstmVae {
  assert(parameters.length === layoutOf(shape).size, "a parameter for every place of the shape");
  return { shape, parameters: Float64Array.from(parameters) };
}
