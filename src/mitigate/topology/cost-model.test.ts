import fc from "fast-check";
import { expect, test } from "vitest";
import type { PlacedJob } from "../../model/mitigation.ts";
import { Arrangement } from "./arrangement.ts";
import { healthyTables, identity, iterationMs, jobTables } from "./cost-model.ts";
import { anyJob, placedJob, sharedOut } from "../../../test/support/mitigate/placed-jobs.ts";

const asIs = (job: PlacedJob): number => iterationMs(job, identity(job.slots.length));

// 2 replicas × 3 stages, 8 micro-batches of 100 ms a stage, transfers of 5 ms, exchanges of 400 ms, 50 ms besides:
// 300 + 2 · 10 + 7 · 100 = 1020 for a replica, stage 0 last.
test("a healthy pipeline takes its passes, its transfers and a bottleneck for every further micro-batch", () => {
  expect(asIs(placedJob(2, 3))).toBeCloseTo(1020 + 400 + 50);
});

test("one slow slot holds up every micro-batch of its replica, and with it the iteration", () => {
  // 1.5 · 100 in place of 100 once in the sum and seven times as the bottleneck.
  expect(asIs(placedJob(2, 3, { compute: { 2: 1.5 } }))).toBeCloseTo(1020 + 8 * 50 + 400 + 50);
});

test("the exchange of a later stage begins earlier, by backward passes and transfers of the stages before it", () => {
  const job = placedJob(2, 3, {}, { gradientMs: [0, 0, 400] });
  expect(asIs(job)).toBeCloseTo(1020 - 2 * ((2 / 3) * 100 + 5) + 400 + 50);
});

test("an exchange is as slow as the worst NIC or link of its group", () => {
  expect(asIs(placedJob(2, 3, { network: { 0: 3 } }))).toBeCloseTo(1020 + 2 * 10 + 1200 + 50);
  expect(asIs(placedJob(2, 3, { links: [{ a: 0, b: 1, factor: 3 }] }))).toBeCloseTo(
    1020 + 1200 + 50,
  );
});

test("a slow link between neighbours of a pipeline lengthens their transfers only", () => {
  expect(asIs(placedJob(2, 3, { links: [{ a: 0, b: 2, factor: 4 }] }))).toBeCloseTo(
    1020 + 2 * 15 + 400 + 50,
  );
});

test("a transfer slower than every stage becomes the bottleneck", () => {
  const job = placedJob(2, 3, { links: [{ a: 0, b: 2, factor: 40 }] });
  expect(asIs(job)).toBeCloseTo(300 + 2 * (200 + 5) + 7 * 200 + 400 + 50);
});

test("a slow link between slots that never speak costs nothing", () => {
  expect(asIs(placedJob(2, 3, { links: [{ a: 0, b: 3, factor: 9 }] }))).toBe(asIs(placedJob(2, 3)));
});

test("within a machine transfers and exchanges go over NVLink and pass no NIC", () => {
  // Machines hold places (0, 1), (2, 3), (4, 5): both replicas of a stage.
  const job = placedJob(2, 3, { slotsPerMachine: 2 });
  expect(asIs(job)).toBeCloseTo(1020 + 50 + 50);
  // A slow NIC of stage 0 is passed by the transfer to stage 1 alone.
  expect(asIs(placedJob(2, 3, { slotsPerMachine: 2, network: { 0: 3 } }))).toBeCloseTo(
    1020 + 2 * 10 + 50 + 50,
  );
});

test("a single replica has nobody to exchange gradients with", () => {
  expect(asIs(placedJob(1, 3))).toBeCloseTo(1020 + 50);
});

test("with redistribution the makespan is the allocation's", () => {
  // Replica 0 takes 150 ms a micro-batch, replica 1 takes 100: of 16 they take 6 and 10.
  const job = placedJob(2, 1, { compute: { 0: 1.5 } });
  expect(iterationMs(job, identity(2), sharedOut(16))).toBeCloseTo(10 * 100 + 400 + 50);
});

test("replicas may be renamed", () => {
  fc.assert(
    fc.property(anyJob(12), fc.nat(), (job, turn) => {
      const renamed = Int32Array.from(job.slots, (_, slot) => {
        const replica = slot % job.replicas;
        return slot - replica + ((replica + turn) % job.replicas);
      });
      expect(iterationMs(job, renamed)).toBeCloseTo(asIs(job), 6);
    }),
  );
});

test("slots that become slow one by one cost what they cost at once, between swaps, too", () => {
  fc.assert(
    fc.property(anyJob(24), fc.nat(), (job, step) => {
      const size = job.slots.length;
      const tables = jobTables(job);
      const masked = healthyTables(tables);
      const arrangement = new Arrangement(masked, identity(size), false, { spent: 0 });
      for (let slot = 0; slot < size; slot++) {
        masked.compute[slot] = tables.compute[slot]!;
        masked.network[slot] = tables.network[slot]!;
        for (let link = 0; link < tables.links.factor.length; link++)
          if (Math.max(tables.links.a[link]!, tables.links.b[link]!) === slot)
            masked.links.factor[link] = tables.links.factor[link]!;
        arrangement.refresh(slot);
        expect(arrangement.cost).toBeCloseTo(iterationMs(masked, arrangement.placeOf), 6);
        const other = (slot + (step % size)) % size;
        if (other !== slot) arrangement.swap(slot, other);
        expect(arrangement.cost).toBeCloseTo(iterationMs(masked, arrangement.placeOf), 6);
      }
    }),
  );
});

test("what a swap is said to cost is what it costs", () => {
  const swaps = fc.array(fc.tuple(fc.nat(), fc.nat()), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(anyJob(16), swaps, fc.boolean(), (job, pairs, isShared) => {
      const size = job.slots.length;
      const total = job.microBatches.reduce((sum, m) => sum + m, 0);
      const rebalance = isShared ? fractionsOf(total) : undefined;
      const arrangement = new Arrangement(jobTables(job), identity(size), isShared, { spent: 0 });
      for (const [x, y] of pairs) {
        const a = x % size;
        const b = y % size;
        if (a === b) continue;
        const said = arrangement.costOfSwap(a, b);
        const load = arrangement.loadOfSwap;
        arrangement.swap(a, b);
        expect(arrangement.cost).toBeCloseTo(said, 6);
        expect(arrangement.load).toBeCloseTo(load, 6);
        expect(iterationMs(job, arrangement.placeOf, rebalance)).toBeCloseTo(said, 6);
        const limited = arrangement.costOfSwap(a, b, said);
        expect(limited === Infinity || limited <= said).toBe(true);
      }
    }),
  );
});

/** Makespan of fractions of micro-batches, by halving; everybody takes one at least. */
function fractionsOf(total: number) {
  return (times: Float64Array, fixed: Float64Array): number => {
    let low = Math.max(...times.map((time, i) => time + fixed[i]!));
    const taken = (end: number): number =>
      times.reduce((sum, time, i) => sum + (end - fixed[i]!) / time, 0);
    let high = low;
    while (taken(high) < total) high *= 2;
    for (let i = 0; i < 100; i++) {
      const middle = (low + high) / 2;
      if (taken(middle) >= total) high = middle;
      else low = middle;
    }
    return high;
  };
}
