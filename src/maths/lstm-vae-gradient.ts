/**
 * One window through the LSTM-VAE and back, by hand: the loss's gradient for every parameter (backpropagation through
 * time). Written for clarity, in doubles: it trains a few hundred parameters, and the kernel is tested against it.
 */
import { layoutOf, type LstmVae, type VaeLayout, type VaeShape } from "./lstm-vae.ts";

/** What a pass of an LSTM over a window leaves behind, step by step. */
interface Tape {
  /** After the sigmoids and tanh: input, forget, cell, output, `hidden` of each per step. */
  readonly gates: Float64Array;
  /** States before step s at s · hidden; the last after all. */
  readonly h: Float64Array;
  readonly c: Float64Array;
}

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));

export class VaePass {
  readonly mean: Float64Array;
  readonly logVariance: Float64Array;
  readonly reconstruction: Float64Array;
  readonly #shape: VaeShape;
  readonly #layout: VaeLayout;
  readonly #parameters: Float64Array;
  /** A copy of the window: loops that see one kind of array only run twice as fast. */
  readonly #x: Float64Array;
  readonly #latent: Float64Array;
  readonly #encoder: Tape;
  readonly #decoder: Tape;
  /** The latent variable at every step, as the decoder's input. */
  readonly #repeated: Float64Array;
  readonly #atOutput: Float64Array;
  readonly #atState: Float64Array;
  readonly #atLatent: Float64Array;
  readonly #back: Record<"h" | "c" | "gates" | "input", Float64Array>;

  constructor({ shape, parameters }: LstmVae) {
    const { window, inputs, hidden, latent } = shape;
    this.#shape = shape;
    this.#layout = layoutOf(shape);
    this.#parameters = parameters;
    this.mean = new Float64Array(latent);
    this.logVariance = new Float64Array(latent);
    this.reconstruction = new Float64Array(window * inputs);
    this.#x = new Float64Array(window * inputs);
    this.#latent = new Float64Array(latent);
    const tape = (): Tape => ({
      gates: new Float64Array(window * 4 * hidden),
      h: new Float64Array((window + 1) * hidden),
      c: new Float64Array((window + 1) * hidden),
    });
    this.#encoder = tape();
    this.#decoder = tape();
    this.#repeated = new Float64Array(window * latent);
    this.#atOutput = new Float64Array(window * inputs);
    this.#atState = new Float64Array(window * hidden);
    this.#atLatent = new Float64Array(latent);
    this.#back = {
      h: new Float64Array(hidden),
      c: new Float64Array(hidden),
      gates: new Float64Array(4 * hidden),
      input: new Float64Array(window * Math.max(inputs, latent)),
    };
  }

  /** Input i of step s at s · inputs + i. Noise: one number of a normal distribution per latent number, or null. */
  forward(x: ArrayLike<number>, noise: Float64Array | null): void {
    const { window, inputs, hidden, latent } = this.#shape;
    const layout = this.#layout;
    const p = this.#parameters;
    const { encoderInput, encoderState, encoderBias } = layout;
    this.#x.set(x);
    this.#runLstm(this.#encoder, this.#x, inputs, encoderInput, encoderState, encoderBias);
    const last = window * hidden;
    for (let l = 0; l < latent; l++) {
      let mean = p[layout.meanBias + l]!;
      let logVariance = p[layout.logVarianceBias + l]!;
      for (let j = 0; j < hidden; j++) {
        const h = this.#encoder.h[last + j]!;
        mean += p[layout.mean + l * hidden + j]! * h;
        logVariance += p[layout.logVariance + l * hidden + j]! * h;
      }
      this.mean[l] = mean;
      this.logVariance[l] = logVariance;
      this.#latent[l] = mean + (noise === null ? 0 : noise[l]! * Math.exp(0.5 * logVariance));
    }
    for (let s = 0; s < window; s++) this.#repeated.set(this.#latent, s * latent);
    const { decoderInput, decoderState, decoderBias } = layout;
    this.#runLstm(this.#decoder, this.#repeated, latent, decoderInput, decoderState, decoderBias);
    for (let s = 0; s < window; s++) {
      for (let i = 0; i < inputs; i++) {
        let sum = p[layout.outputBias + i]!;
        for (let j = 0; j < hidden; j++)
          sum += p[layout.output + i * hidden + j]! * this.#decoder.h[(s + 1) * hidden + j]!;
        this.reconstruction[s * inputs + i] = sum;
      }
    }
  }

  /** Mean square error and the divergence from the standard normal distribution, of the last `forward`. */
  losses(): { readonly square: number; readonly divergence: number } {
    let square = 0;
    for (let i = 0; i < this.reconstruction.length; i++)
      square += (this.reconstruction[i]! - this.#x[i]!) ** 2 / this.reconstruction.length;
    let divergence = 0;
    for (let l = 0; l < this.mean.length; l++) {
      const v = this.logVariance[l]!;
      divergence += 0.5 * (this.mean[l]! ** 2 + Math.exp(v) - v - 1);
    }
    return { square, divergence };
  }

  /** Of the last `forward`, too: adds the gradient of square + weight · divergence to `gradient`. */
  backward(noise: Float64Array | null, weight: number, gradient: Float64Array): void {
    const { window, inputs, hidden, latent } = this.#shape;
    const layout = this.#layout;
    const p = this.#parameters;
    const atState = this.#atState.fill(0);
    for (let i = 0; i < window * inputs; i++)
      this.#atOutput[i] = (2 / (window * inputs)) * (this.reconstruction[i]! - this.#x[i]!);
    for (let s = 0; s < window; s++) {
      for (let i = 0; i < inputs; i++) {
        const at = this.#atOutput[s * inputs + i]!;
        gradient[layout.outputBias + i]! += at;
        for (let j = 0; j < hidden; j++) {
          gradient[layout.output + i * hidden + j]! += at * this.#decoder.h[(s + 1) * hidden + j]!;
          atState[s * hidden + j]! += at * p[layout.output + i * hidden + j]!;
        }
      }
    }
    const { decoderInput, decoderState, decoderBias } = layout;
    const atInput = this.#back.input.fill(0);
    this.#backLstm(
      this.#decoder,
      this.#repeated,
      latent,
      [decoderInput, decoderState, decoderBias],
      gradient,
      atInput,
    );
    const atLatent = this.#atLatent.fill(0);
    for (let s = 0; s < window; s++)
      for (let l = 0; l < latent; l++) atLatent[l]! += atInput[s * latent + l]!;
    const last = window * hidden;
    atState.fill(0);
    for (let l = 0; l < latent; l++) {
      const v = this.logVariance[l]!;
      const atMean = atLatent[l]! + weight * this.mean[l]!;
      const drawn = noise === null ? 0 : 0.5 * noise[l]! * Math.exp(0.5 * v);
      const atVariance = atLatent[l]! * drawn + weight * 0.5 * (Math.exp(v) - 1);
      gradient[layout.meanBias + l]! += atMean;
      gradient[layout.logVarianceBias + l]! += atVariance;
      for (let j = 0; j < hidden; j++) {
        const h = this.#encoder.h[last + j]!;
        gradient[layout.mean + l * hidden + j]! += atMean * h;
        gradient[layout.logVariance + l * hidden + j]! += atVariance * h;
        atState[last - hidden + j]! +=
          atMean * p[layout.mean + l * hidden + j]! +
          atVariance * p[layout.logVariance + l * hidden + j]!;
      }
    }
    const { encoderInput, encoderState, encoderBias } = layout;
    this.#backLstm(
      this.#encoder,
      this.#x,
      inputs,
      [encoderInput, encoderState, encoderBias],
      gradient,
      null,
    );
  }

  #runLstm(
    { gates, h, c }: Tape,
    x: Float64Array,
    inputs: number,
    fromInput: number,
    fromState: number,
    bias: number,
  ): void {
    const { window, hidden } = this.#shape;
    const p = this.#parameters;
    const all = 4 * hidden;
    for (let s = 0; s < window; s++) {
      for (let k = 0; k < all; k++) {
        let sum = p[bias + k]!;
        for (let i = 0; i < inputs; i++) sum += p[fromInput + k * inputs + i]! * x[s * inputs + i]!;
        for (let j = 0; j < hidden; j++) sum += p[fromState + k * hidden + j]! * h[s * hidden + j]!;
        gates[s * all + k] = k >= 2 * hidden && k < 3 * hidden ? Math.tanh(sum) : sigmoid(sum);
      }
      for (let j = 0; j < hidden; j++) {
        const at = s * all + j;
        const cell =
          gates[at + hidden]! * c[s * hidden + j]! + gates[at]! * gates[at + 2 * hidden]!;
        c[(s + 1) * hidden + j] = cell;
        h[(s + 1) * hidden + j] = gates[at + 3 * hidden]! * Math.tanh(cell);
      }
    }
  }

  /** From the gradients at the states after each step (#atState) to those of the weights, and of the inputs. */
  #backLstm(
    { gates, h, c }: Tape,
    x: Float64Array,
    inputs: number,
    [fromInput, fromState, bias]: readonly [number, number, number],
    gradient: Float64Array,
    atInput: Float64Array | null,
  ): void {
    const { window, hidden } = this.#shape;
    const p = this.#parameters;
    const all = 4 * hidden;
    const atH = this.#back.h.fill(0);
    const atC = this.#back.c.fill(0);
    const atGate = this.#back.gates;
    for (let s = window - 1; s >= 0; s--) {
      for (let j = 0; j < hidden; j++) {
        const at = s * all + j;
        const [input, forget] = [gates[at]!, gates[at + hidden]!];
        const [cell, output] = [gates[at + 2 * hidden]!, gates[at + 3 * hidden]!];
        const squashed = Math.tanh(c[(s + 1) * hidden + j]!);
        const here = atH[j]! + this.#atState[s * hidden + j]!;
        const atCell = atC[j]! + here * output * (1 - squashed * squashed);
        atGate[j] = atCell * cell * input * (1 - input);
        atGate[hidden + j] = atCell * c[s * hidden + j]! * forget * (1 - forget);
        atGate[2 * hidden + j] = atCell * input * (1 - cell * cell);
        atGate[3 * hidden + j] = here * squashed * output * (1 - output);
        atC[j] = atCell * forget;
        atH[j] = 0;
      }
      for (let k = 0; k < all; k++) {
        const at = atGate[k]!;
        gradient[bias + k]! += at;
        for (let i = 0; i < inputs; i++) {
          gradient[fromInput + k * inputs + i]! += at * x[s * inputs + i]!;
          if (atInput !== null) atInput[s * inputs + i]! += at * p[fromInput + k * inputs + i]!;
        }
        for (let j = 0; j < hidden; j++) {
          gradient[fromState + k * hidden + j]! += at * h[s * hidden + j]!;
          atH[j]! += at * p[fromState + k * hidden + j]!;
        }
      }
    }
  }
}
