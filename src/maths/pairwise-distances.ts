/**
 * For every point, the sum of its distances to all others (Minder §4.4, step 1; the measures are §6.5's). Euclid and
 * Chebyshev try all pairs, in vectors of four; Manhattan falls apart into its coordinates, where sorting answers in
 * n log n, exactly. Points lie coordinate by coordinate.
 */
import {
  absolute,
  add,
  addInteger,
  constant,
  get,
  greatest,
  integer,
  isLess,
  load,
  loadSplat,
  multiply,
  repeatWhile,
  root,
  set,
  SimdModule,
  simdMemory,
  store,
  subtract,
  when,
  type Code,
  type SimdFunction,
} from "./simd-code.ts";

const bits = new Uint32Array(1);
const number = new Float32Array(bits.buffer);

/** Indices take the low 20 bits beside 32 of a value: 52 of the 53 that a double keeps exactly. */
const INDICES = 2 ** 20;
let keys = new Float64Array(0);

export type DistanceMeasure = "euclid" | "manhattan" | "chebyshev";

export class PairwiseDistances {
  /** How far coordinates lie apart: the points, filled up to a multiple of four. */
  readonly stride: number;
  /** To be filled: coordinate d of point i is at d · stride + i. */
  readonly points: Float32Array;
  readonly #count: number;
  readonly #measure: DistanceMeasure;
  readonly #lanes: Float32Array;
  readonly #run: SimdFunction | null;

  constructor(count: number, dimensions: number, measure: DistanceMeasure) {
    this.#count = count;
    this.#measure = measure;
    this.stride = Math.ceil(count / 4) * 4;
    const size = dimensions * this.stride;
    // Behind the points: which are real (1 or 0), the sums of columns, and four lanes of each row's sum.
    const memory = simdMemory(4 * (size + 6 * this.stride));
    this.points = new Float32Array(memory.buffer, 0, size);
    new Float32Array(memory.buffer, 4 * size, count).fill(1);
    this.#lanes = new Float32Array(memory.buffer, 4 * (size + this.stride), 5 * this.stride);
    this.#run = measure === "manhattan" ? null : allPairs(dimensions, measure).over(memory);
  }

  /** Fills `sums`, a number for every point. */
  sums(sums: Float64Array): void {
    const count = this.#count;
    const { points, stride } = this;
    if (this.#measure === "manhattan") {
      sums.fill(0);
      for (let from = 0; from < points.length; from += stride)
        addManhattan(points.subarray(from, from + count), sums);
      return;
    }
    const lanes = this.#lanes.fill(0);
    this.#run!(4 * stride);
    for (let i = 0; i < count; i++) {
      const at = stride + 4 * i;
      sums[i] = lanes[i]! + lanes[at]! + lanes[at + 1]! + (lanes[at + 2]! + lanes[at + 3]!);
    }
  }
}

// Parameter: bytes of a row of points. Integers: bytes of the row's point, of the column's, where that row's lanes are.
const [ROW, I, J, LANES, SCRATCH] = [0, 1, 2, 3, 4];

const modules = new Map<string, SimdModule>();

function allPairs(dimensions: number, measure: DistanceMeasure): SimdModule {
  const key = `${measure} ${dimensions}`;
  const known = modules.get(key) ?? new SimdModule(kernel(dimensions, measure));
  modules.set(key, known);
  return known;
}

/**
 * A row's point against all columns from its own vector on; what lies behind that vector is added to the columns' sums
 * too, so that a pair is tried once. Columns that only fill up are taken out by a factor 0.
 */
function kernel(
  dimensions: number,
  measure: DistanceMeasure,
): ConstructorParameters<typeof SimdModule>[0] {
  const point = Array.from({ length: dimensions }, (_, d) => 5 + d);
  const [sum, distance] = [5 + dimensions, 6 + dimensions];
  const difference = (d: number, place: number): Code => subtract(load(get(place)), get(point[d]!));
  // Walks through the coordinates with SCRATCH, for rows lie as far apart as there are points.
  const start = (from: number): Code => set(SCRATCH, get(from));
  const next: Code = set(SCRATCH, addInteger(get(SCRATCH), get(ROW)));
  const between: Code = [
    start(J),
    set(distance, constant(0)),
    point.map((_, d) => [
      measure === "euclid"
        ? [
            set(sum + 2, difference(d, SCRATCH)),
            set(distance, add(get(distance), multiply(get(sum + 2), get(sum + 2)))),
          ]
        : set(distance, greatest(get(distance), absolute(difference(d, SCRATCH)))),
      next,
    ]),
    measure === "euclid" ? set(distance, root(get(distance))) : [],
    // SCRATCH is behind the last coordinate now: there is whether the columns are real.
    set(distance, multiply(get(distance), load(get(SCRATCH)))),
    set(sum, add(get(sum), get(distance))),
    next,
  ];
  const body: Code = [
    // Lanes of rows begin behind the coordinates, the marks and the columns' sums.
    set(
      LANES,
      point.concat(0, 0).reduce<Code>((place) => addInteger(place, get(ROW)), integer(0)),
    ),
    repeatWhile(isLess(get(I), get(ROW)), [
      start(I),
      point.map((local) => [set(local, loadSplat(get(SCRATCH))), next]),
      set(sum, constant(0)),
      set(J, [get(I), integer(-16), 0x71]),
      between,
      set(J, addInteger(get(J), integer(16))),
      when(
        isLess(get(J), get(ROW)),
        repeatWhile(isLess(get(J), get(ROW)), [
          between,
          store(get(SCRATCH), add(load(get(SCRATCH)), get(distance))),
          set(J, addInteger(get(J), integer(16))),
        ]),
      ),
      store(get(LANES), get(sum)),
      set(LANES, addInteger(get(LANES), integer(16))),
      set(I, addInteger(get(I), integer(4))),
    ]),
  ];
  return { parameters: 1, integers: 4, vectors: dimensions + 3, body };
}

/**
 * Sums of the distances |a - b| of one coordinate, by sorting: of the values below a, each adds a - b; of those above,
 * b - a; both are a prefix sum away.
 * Adds to `sums`, for every value, its distance to all others. At most 2^20 values, none NaN.
 */
function addManhattan(values: Float32Array, sums: Float64Array): void {
  const count = values.length;
  if (keys.length !== count) keys = new Float64Array(count);
  let total = 0;
  for (let i = 0; i < count; i++) {
    const value = values[i]!;
    total += value;
    number[0] = value;
    const raw = bits[0]!;
    // Bits of a float order like its value, once negative ones are turned round and put below.
    const ordered = raw >= 0x8000_0000 ? 0xffff_ffff - raw : raw + 0x8000_0000;
    keys[i] = ordered * INDICES + i;
  }
  // Without a comparison function this sorts numbers natively.
  keys.sort();
  let below = 0;
  for (let rank = 0; rank < count; rank++) {
    const key = keys[rank]!;
    const i = key - Math.floor(key / INDICES) * INDICES;
    const value = values[i]!;
    sums[i]! += value * rank - below + (total - below - value * (count - rank));
    below += value;
  }
}
