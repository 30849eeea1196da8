/**
 * For every point, the sum of its Euclidean distances to all others (Minder §4.4, step 1): all pairs, in vectors of four.
 * Points lie coordinate by coordinate.
 */
import { getOrInsert } from "../base/group-by.ts";
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

export class PairwiseDistances {
  /** How far coordinates lie apart: the points, filled up to a multiple of four. */
  readonly stride: number;
  /** To be filled: coordinate d of point i is at d · stride + i. */
  readonly points: Float32Array;
  readonly #count: number;
  readonly #lanes: Float32Array;
  readonly #run: SimdFunction;

  constructor(count: number, dimensions: number) {
    this.#count = count;
    this.stride = Math.ceil(count / 4) * 4;
    const size = dimensions * this.stride;
    // Behind the points: which are real (1 or 0), the sums of columns, and four lanes of each row's sum.
    const memory = simdMemory(4 * (size + 6 * this.stride));
    this.points = new Float32Array(memory.buffer, 0, size);
    new Float32Array(memory.buffer, 4 * size, count).fill(1);
    this.#lanes = new Float32Array(memory.buffer, 4 * (size + this.stride), 5 * this.stride);
    this.#run = allPairs(dimensions).over(memory);
  }

  /** Fills `sums`, a number for every point. */
  sums(sums: Float64Array): void {
    const count = this.#count;
    const { stride } = this;
    const lanes = this.#lanes.fill(0);
    this.#run(4 * stride);
    for (let i = 0; i < count; i++) {
      const at = stride + 4 * i;
      sums[i] = lanes[i]! + lanes[at]! + lanes[at + 1]! + (lanes[at + 2]! + lanes[at + 3]!);
    }
  }
}

// Parameter: bytes of a row of points. Integers: bytes of the row's point, of the column's, where that row's lanes are.
const [ROW, I, J, LANES, SCRATCH] = [0, 1, 2, 3, 4];

const modules = new Map<number, SimdModule>();

function allPairs(dimensions: number): SimdModule {
  return getOrInsert(modules, dimensions, () => new SimdModule(kernel(dimensions)));
}

/**
 * A row's point against all columns from its own vector on; what lies behind that vector is added to the columns' sums
 * too, so that a pair is tried once. Columns that only fill up are taken out by a factor 0.
 */
function kernel(dimensions: number): ConstructorParameters<typeof SimdModule>[0] {
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
      set(sum + 2, difference(d, SCRATCH)),
      set(distance, add(get(distance), multiply(get(sum + 2), get(sum + 2)))),
      next,
    ]),
    set(distance, root(get(distance))),
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
