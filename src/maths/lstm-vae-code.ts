/**
 * The LSTM-VAE's kernel as code, and its weights in the order in which the code reads them. Written out gate by gate for
 * a shape: states stay in registers, weights are read as they are needed. Two foldings, exact but for rounding:
 * sigmoid(x) = 1/2 + tanh(x/2)/2 takes the half into the weights, and since the mean is linear in the encoder's state
 * and the decoder's gates are linear in the mean, the decoder reads the state directly.
 */
import { getOrInsert } from "../base/group-by.ts";
import { layoutOf, type LstmVae, type VaeShape } from "./lstm-vae.ts";
import { tanhCode } from "./rational-tanh.ts";
import {
  add,
  addInteger,
  constant,
  get,
  integer,
  isLess,
  load,
  loadSplat,
  multiply,
  repeatWhile,
  set,
  SimdModule,
  store,
  when,
  type Code,
} from "./simd-code.ts";

/** How many float32 the weights take, from the memory's start. */
export function weightCount({ inputs, hidden, latent }: VaeShape): number {
  const gates = 4 * hidden;
  return (
    gates * (inputs + hidden + 1) +
    latent * (hidden + 1) +
    gates * (2 * hidden + 1) +
    inputs * (hidden + 1)
  );
}

/** Per output: its weights, then its bias; the decoder's gates: those on the encoder's state, bias, those on its own. */
export function writeWeights({ shape, parameters }: LstmVae, to: Float32Array): void {
  const { inputs, hidden, latent } = shape;
  const layout = layoutOf(shape);
  const at = (from: number, row: number, columns: number, column: number): number =>
    parameters[from + row * columns + column]!;
  let next = 0;
  for (let gate = 0; gate < 4 * hidden; gate++) {
    const scale = scaleOfGate(gate, hidden);
    for (let i = 0; i < inputs; i++) to[next++] = scale * at(layout.encoderInput, gate, inputs, i);
    for (let j = 0; j < hidden; j++) to[next++] = scale * at(layout.encoderState, gate, hidden, j);
    to[next++] = scale * parameters[layout.encoderBias + gate]!;
  }
  for (let l = 0; l < latent; l++) {
    for (let j = 0; j < hidden; j++) to[next++] = at(layout.mean, l, hidden, j);
    to[next++] = parameters[layout.meanBias + l]!;
  }
  for (let gate = 0; gate < 4 * hidden; gate++) {
    const scale = scaleOfGate(gate, hidden);
    for (let j = 0; j <= hidden; j++) {
      let sum = j === hidden ? parameters[layout.decoderBias + gate]! : 0;
      for (let l = 0; l < latent; l++) {
        const mean =
          j === hidden ? parameters[layout.meanBias + l]! : at(layout.mean, l, hidden, j);
        sum += at(layout.decoderInput, gate, latent, l) * mean;
      }
      to[next++] = scale * sum;
    }
    for (let j = 0; j < hidden; j++) to[next++] = scale * at(layout.decoderState, gate, hidden, j);
  }
  for (let i = 0; i < inputs; i++) {
    for (let j = 0; j < hidden; j++) to[next++] = at(layout.output, i, hidden, j);
    to[next++] = parameters[layout.outputBias + i]!;
  }
}

/** All but the cell gate are sigmoids. */
function scaleOfGate(gate: number, hidden: number): number {
  return Math.floor(gate / hidden) === 2 ? 1 : 0.5;
}

// Parameters: where the window begins, bytes of a row of machines, whether to decode, where mean and window go.
const [X, ROW, DECODE, MEAN, OUT] = [0, 1, 2, 3, 4];
// Further integers: bytes of the machines done, place to read or write, step.
const [MACHINE, PLACE, STEP] = [5, 6, 7];

const modules = new Map<string, SimdModule>();

export function vaeModule(shape: VaeShape): SimdModule {
  return getOrInsert(modules, JSON.stringify(shape), () => new SimdModule(kernel(shape)));
}

function kernel({ window, inputs, hidden, latent }: VaeShape): SimdModuleSource {
  const gates = 4 * hidden;
  let vectors = 8;
  const locals = (count: number): number[] => Array.from({ length: count }, () => vectors++);
  const h = locals(hidden);
  const c = locals(hidden);
  const g = locals(gates);
  const given = locals(gates);
  const x = locals(inputs);
  const [square] = locals(1) as [number];
  let next = 0;
  const weight = (): Code => loadSplat(integer(0), 4 * next++);
  const times = (vectors: readonly number[], first: Code | null): Code =>
    vectors.reduce<Code | null>((sum, local) => {
      const product = multiply(get(local), weight());
      return sum === null ? product : add(sum, product);
    }, first)!;
  const withBias = (vectors: readonly number[]): Code => add(times(vectors, null), weight());
  const forward = (by: number): Code => set(PLACE, addInteger(get(PLACE), get(by)));
  const restart = (): Code => [...h, ...c].map((local) => set(local, constant(0)));
  const loop = (body: Code): Code => [
    set(STEP, integer(0)),
    repeatWhile(isLess(get(STEP), integer(window)), [
      body,
      set(STEP, addInteger(get(STEP), integer(1))),
    ]),
  ];
  // Encoder: the weights are met in the order of writeWeights, here and below.
  const encode = [
    x.map((local) => [set(local, load(get(PLACE))), forward(ROW)]),
    g.map((local) => set(local, withBias([...x, ...h]))),
    step(h, c, g, square),
  ];
  const mean = Array.from({ length: latent }, () => [store(get(PLACE), withBias(h)), forward(ROW)]);
  const fromState: Code[] = [];
  const decode: Code[] = [];
  g.forEach((local, gate) => {
    fromState.push(set(given[gate]!, withBias(h)));
    decode.push(set(local, times(h, get(given[gate]!))));
  });
  const output = x.map(() => [store(get(PLACE), withBias(h)), forward(ROW)]);
  const body = repeatWhile(isLess(get(MACHINE), get(ROW)), [
    restart(),
    set(PLACE, addInteger(get(X), get(MACHINE))),
    loop(encode),
    set(PLACE, addInteger(get(MEAN), get(MACHINE))),
    mean,
    when(get(DECODE), [
      fromState,
      restart(),
      set(PLACE, addInteger(get(OUT), get(MACHINE))),
      loop([decode, step(h, c, g, square), output]),
    ]),
    set(MACHINE, addInteger(get(MACHINE), integer(16))),
  ]);
  return { parameters: 5, integers: 3, vectors: vectors - 8, body };
}

type SimdModuleSource = ConstructorParameters<typeof SimdModule>[0];

/** c = f·c + i·g, h = o·tanh(c). */
function step(
  h: readonly number[],
  c: readonly number[],
  g: readonly number[],
  square: number,
): Code {
  const hidden = h.length;
  const sigmoid = (local: number): Code =>
    set(local, add(multiply(tanhCode(local, square), constant(0.5)), constant(0.5)));
  return h.map((state, j) => {
    const [input, forget, cell, output] = [0, 1, 2, 3].map((k) => g[k * hidden + j]!) as [
      number,
      number,
      number,
      number,
    ];
    return [
      sigmoid(input),
      sigmoid(forget),
      set(cell, tanhCode(cell, square)),
      sigmoid(output),
      set(c[j]!, add(multiply(get(forget), get(c[j]!)), multiply(get(input), get(cell)))),
      set(state, get(c[j]!)),
      set(state, multiply(get(output), [tanhCode(state, square)])),
    ];
  });
}
