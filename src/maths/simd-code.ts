/**
 * WebAssembly with 128-bit vectors, written from TypeScript: JavaScript itself has no vectors, and comparing a thousand
 * machines every second is nothing but the same arithmetic on many numbers. Only the few instructions that the kernels
 * here use; every name is the specification's.
 */

/** Instructions as bytes, nested as they were put together. */
export type Code = number | readonly Code[];

/** Types of what the language's own library file does not know without a browser. */
interface SimdMemory {
  readonly buffer: ArrayBuffer;
}
export type SimdFunction = (...numbers: number[]) => void;

declare const WebAssembly: {
  readonly Memory: new (limits: { initial: number }) => SimdMemory;
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (
    module: object,
    imports: Record<string, Record<string, SimdMemory>>,
  ) => { readonly exports: Record<string, unknown> };
};

const PAGE = 65_536;

export function simdMemory(bytes: number): SimdMemory {
  return new WebAssembly.Memory({ initial: Math.max(1, Math.ceil(bytes / PAGE)) });
}

const I32 = 0x7f;
const V128 = 0x7b;

/** Locals in this order: parameters (integers), further integers, vectors. */
interface SimdSource {
  readonly parameters: number;
  readonly integers: number;
  readonly vectors: number;
  readonly body: Code;
}

/** A module that exports one function "run" over a memory that it is given; compiled once, instantiated often. */
export class SimdModule {
  readonly #module: object;

  constructor({ parameters, integers, vectors, body }: SimdSource) {
    const type = [0x60, unsigned(parameters), Array<number>(parameters).fill(I32), 0];
    const locals = [2, unsigned(integers), I32, unsigned(vectors), V128];
    const memory = [name("simd"), name("memory"), 0x02, 0x00, 1];
    const bytes = flat([
      [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
      section(1, [1, type]),
      section(2, [1, memory]),
      section(3, [1, 0]),
      section(7, [1, name("run"), 0x00, 0]),
      section(10, [1, sized([locals, body, END])]),
    ]);
    this.#module = new WebAssembly.Module(Uint8Array.from(bytes));
  }

  over(memory: SimdMemory): SimdFunction {
    const instance = new WebAssembly.Instance(this.#module, { simd: { memory } });
    return instance.exports["run"] as SimdFunction;
  }
}

function section(id: number, content: Code): Code {
  return [id, sized(content)];
}

function sized(content: Code): Code {
  const bytes = flat(content);
  return [unsigned(bytes.length), bytes];
}

function name(text: string): Code {
  return sized([...Buffer.from(text, "ascii")]);
}

function flat(code: Code): number[] {
  const bytes: number[] = [];
  const walk = (part: Code): void => {
    if (typeof part === "number") bytes.push(part);
    else part.forEach(walk);
  };
  walk(code);
  return bytes;
}

/** LEB128. */
function unsigned(value: number): Code {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  bytes.push(rest);
  return bytes;
}

function signed(value: number): Code {
  const bytes: number[] = [];
  let rest = value | 0;
  for (;;) {
    const low = rest & 127;
    rest >>= 7;
    if ((rest === 0 && (low & 64) === 0) || (rest === -1 && (low & 64) !== 0)) {
      bytes.push(low);
      return bytes;
    }
    bytes.push(low | 128);
  }
}

const END = 0x0b;
export const get = (local: number): Code => [0x20, unsigned(local)];
export const set = (local: number, value: Code): Code => [value, 0x21, unsigned(local)];

export const integer = (value: number): Code => [0x41, signed(value)];
export const addInteger = (a: Code, b: Code): Code => [a, b, 0x6a];
export const isLess = (a: Code, b: Code): Code => [a, b, 0x49];

/** The body once, and again as long as the condition holds at its end. */
export const repeatWhile = (condition: Code, body: Code): Code => [
  [0x03, 0x40, body, condition],
  [0x0d, 0, END],
];
export const when = (condition: Code, body: Code): Code => [condition, 0x04, 0x40, body, END];

const vector = (opcode: number): Code => [0xfd, unsigned(opcode)];
export const load = (address: Code, offset = 0): Code => [address, vector(0), 2, unsigned(offset)];
/** One number in all four lanes. */
export const loadSplat = (address: Code, offset = 0): Code => [
  address,
  vector(9),
  2,
  unsigned(offset),
];
export const store = (address: Code, value: Code, offset = 0): Code => [
  [address, value],
  [vector(11), 2, unsigned(offset)],
];

export function constant(value: number): Code {
  const bytes = [...new Uint8Array(Float32Array.of(value, value, value, value).buffer)];
  return [vector(12), bytes];
}

const two =
  (opcode: number) =>
  (a: Code, b: Code): Code => [a, b, vector(opcode)];
export const add = two(0xe4);
export const subtract = two(0xe5);
export const multiply = two(0xe6);
export const divide = two(0xe7);
export const least = two(0xe8);
export const greatest = two(0xe9);
export const root = (a: Code): Code => [a, vector(0xe3)];
