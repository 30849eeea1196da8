/** Small placed jobs for tests, and slow exact answers for them. */
import fc from "fast-check";
import type { PlacedJob, SlowLink, Slot } from "../../../src/model/mitigation.ts";
import {
  identity,
  iterationMs,
  type Rebalance,
} from "../../../src/mitigate/topology/cost-model.ts";

export interface Faults {
  /** By slot. */
  readonly compute?: Readonly<Record<number, number>>;
  readonly network?: Readonly<Record<number, number>>;
  readonly links?: readonly SlowLink[];
  readonly slotsPerMachine?: number;
}

export function placedJob(
  replicas: number,
  stages: number,
  faults: Faults = {},
  change: Partial<PlacedJob> = {},
): PlacedJob {
  const { compute = {}, network = {}, links = [], slotsPerMachine = 1 } = faults;
  return {
    replicas,
    stages,
    microBatches: Array.from({ length: replicas }, () => 8),
    stageMs: Array.from({ length: stages }, () => 100),
    gradientMs: Array.from({ length: stages }, () => 400),
    activationMs: 5,
    restMs: 50,
    slots: Array.from({ length: replicas * stages }, (_, i) => ({
      name: `node${i}`,
      machine: `machine${Math.floor(i / slotsPerMachine)}`,
      compute: compute[i] ?? 1,
      network: network[i] ?? 1,
    })),
    links,
    ...change,
  };
}

/** Any job of at most so many slots, with any faults. */
export function anyJob(mostSlots: number): fc.Arbitrary<PlacedJob> {
  const shapes: [number, number][] = [];
  for (let r = 1; r <= mostSlots; r++)
    for (let s = 1; r * s <= mostSlots; s++) if (r * s > 1) shapes.push([r, s]);
  const factor = fc.oneof(
    { weight: 3, arbitrary: fc.constant(1) },
    { weight: 2, arbitrary: fc.integer({ min: 11, max: 50 }).map((n) => n / 10) },
  );
  return fc.constantFrom(...shapes).chain(([replicas, stages]) => {
    const size = replicas * stages;
    const slotsPerMachine = fc.constantFrom(1, 1, 2);
    const slots = slotsPerMachine.chain((perMachine) =>
      fc.tuple(...Array.from({ length: size }, (_, i) => anySlot(i, perMachine, factor))),
    );
    const times = (least: number, most: number): fc.Arbitrary<number[]> =>
      fc.array(fc.integer({ min: least, max: most }), { minLength: stages, maxLength: stages });
    return fc.record({
      replicas: fc.constant(replicas),
      stages: fc.constant(stages),
      microBatches: fc
        .integer({ min: 1, max: 12 })
        .map((m) => Array.from({ length: replicas }, () => m)),
      stageMs: times(50, 90),
      gradientMs: times(0, 400),
      activationMs: fc.integer({ min: 0, max: 20 }),
      restMs: fc.constant(20),
      slots,
      links: fc.array(anyLink(size), { maxLength: 4 }),
    });
  });
}

function anySlot(i: number, perMachine: number, factor: fc.Arbitrary<number>): fc.Arbitrary<Slot> {
  return fc.record({
    name: fc.constant(`node${i}`),
    machine: fc.constant(`machine${Math.floor(i / perMachine)}`),
    compute: factor,
    network: factor,
  });
}

function anyLink(size: number): fc.Arbitrary<SlowLink> {
  return fc
    .tuple(
      fc.integer({ min: 0, max: size - 1 }),
      fc.integer({ min: 1, max: size - 1 }),
      fc.integer({ min: 2, max: 6 }),
    )
    .map(([a, step, factor]) => ({ a, b: (a + step) % size, factor }));
}

/** Heap's algorithm; the same array every time. */
export function* permutations(size: number): Generator<Int32Array> {
  const order = identity(size);
  const turns = new Int32Array(size);
  yield order;
  for (let i = 0; i < size;) {
    if (turns[i]! >= i) {
      turns[i++] = 0;
      continue;
    }
    const j = i % 2 === 0 ? 0 : turns[i]!;
    [order[i], order[j]] = [order[j]!, order[i]!];
    yield order;
    turns[i]!++;
    i = 0;
  }
}

export function leastMs(job: PlacedJob, rebalance?: Rebalance): number {
  let least = Infinity;
  for (const placeOf of permutations(job.slots.length))
    least = Math.min(least, iterationMs(job, placeOf, rebalance));
  return least;
}

/** Micro-batches one by one to whom they make end first, at least one each: no allocation ends earlier. */
export function sharedOut(total: number): Rebalance {
  return (times, fixed) => {
    const ends = Float64Array.from(times, (time, i) => fixed[i]! + time);
    for (let left = total - times.length; left > 0; left--) {
      let first = 0;
      for (let i = 1; i < times.length; i++)
        if (ends[i]! + times[i]! < ends[first]! + times[first]!) first = i;
      ends[first]! += times[first]!;
    }
    return Math.max(...ends);
  };
}
