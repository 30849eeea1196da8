import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { seeded } from "../../../base/random.ts";
import { type AllocationChange, fits, followAllocation, type JobShape } from "./allocation.ts";
import { few } from "../../../../test/support/cases.ts";

const FOUR: JobShape = { groups: 4, total: 64, multipleOf: 1, bubble: 0 };

/** A job that follows the plan. `factor`: how much slower replica i is in iteration k; `noise`: relative deviation. */
function simulated(shape: JobShape, noise = 0, seed = 1) {
  const follower = followAllocation(shape);
  const random = seeded(seed);
  const normal = (): number =>
    Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const changes: AllocationChange[] = [];
  let iteration = 0;
  const run = (iterations: number, factor: (replica: number, iteration: number) => number) => {
    for (let k = 0; k < iterations; k++, iteration++) {
      const { counts } = follower.state();
      const seconds = counts.map(
        (m, i) => (m + shape.bubble) * 0.1 * factor(i, iteration) * Math.exp(noise * normal()),
      );
      const change = follower.report({ iteration, counts, seconds });
      if (change) changes.push(change);
    }
  };
  return { run, changes, follower, counts: () => follower.state().counts };
}

const healthy = (): number => 1;
const slow =
  (replica: number, factor: number) =>
  (i: number): number =>
    i === replica ? factor : 1;

describe("following the allocation of a job", () => {
  it("relieves a slow replica after two iterations and goes back to even shares when it has recovered", () => {
    const job = simulated(FOUR);
    job.run(20, healthy);
    expect(job.changes).toEqual([]);
    job.run(2, slow(2, 2));
    expect(job.counts()).toEqual([19, 18, 9, 18]);
    job.run(2, healthy);
    expect(job.counts()).toEqual([16, 16, 16, 16]);
    expect(job.changes.map(({ why }) => why)).toEqual([
      "replica 2 takes 2.00 times as long for a micro-batch as the middle one of the others",
      "the replicas are alike again",
    ]);
    const [first] = job.changes;
    expect(first!.beforeS).toBeCloseTo(3.2, 6);
    expect(first!.afterS).toBeCloseTo(1.9, 6);
  });

  it("compares one of two replicas with the other, not with the mean of both", () => {
    const job = simulated({ groups: 2, total: 64, multipleOf: 1, bubble: 0 });
    job.run(20, slow(1, 2.5));
    expect(job.changes[0]!.why).toBe(
      "replica 1 takes 2.50 times as long for a micro-batch as the other one",
    );
  });

  it("leaves a healthy job alone, however noisy", () => {
    const shapes: JobShape[] = [
      { groups: 4, total: 16, multipleOf: 1, bubble: 0 },
      { groups: 4, total: 256, multipleOf: 1, bubble: 0 },
      { groups: 16, total: 1024, multipleOf: 4, bubble: 3 },
    ];
    for (const shape of shapes)
      for (const noise of few([0.2, 0.1, 0.03, 0.01], 1)) {
        const job = simulated(shape, noise, 7);
        job.run(1000, healthy);
        expect({ shape, noise, changes: job.changes.length }).toEqual({ shape, noise, changes: 0 });
      }
  });

  it("finds a fault and its end through noise, without flapping", () => {
    for (let seed = 1; seed <= 10; seed++) {
      const job = simulated({ ...FOUR, groups: 8, total: 128 }, 0.05, seed);
      job.run(30, healthy);
      job.run(60, slow(5, 2));
      expect(job.counts()[5]).toBeLessThan(12);
      job.run(60, healthy);
      expect(job.counts()).toEqual(Array.from({ length: 8 }, () => 16));
      // One there, one back, and here and there a correction.
      expect(job.changes.length).toBeLessThanOrEqual(4);
    }
  });

  it("does not answer single wild iterations", () => {
    const job = simulated(FOUR, 0.01);
    job.run(400, (i, k) => (i === k % 4 && k % 7 === 0 ? 20 : 1));
    expect(job.changes).toEqual([]);
  });

  it("answers faults of other replicas at any pace", () => {
    const job = simulated({ ...FOUR, groups: 8, total: 128 });
    job.run(30, healthy);
    for (let event = 0; event < 8; event++) {
      job.run(10, slow(event, 2));
      expect(job.counts()[event]).toBeLessThan(12);
      job.run(10, healthy);
      expect(job.counts()).toEqual(Array.from({ length: 8 }, () => 16));
    }
  });

  it("keeps the shares that suit a fault that comes and goes, where giving them back costs more", () => {
    const job = simulated(FOUR);
    const comesAndGoes = (i: number, k: number): number =>
      i === 1 && Math.floor(k / 8) % 2 === 1 ? 3 : 1;
    job.run(600, comesAndGoes);
    // It comes and goes 75 times.
    expect(job.changes.length).toBeLessThanOrEqual(8);
    expect(job.counts()[1]).toBeLessThan(10);
    // And when it is over for good, the shares are equal once that has saved as much as giving them back had cost.
    job.run(200, healthy);
    expect(job.counts()).toEqual([16, 16, 16, 16]);
  });

  it("loses little more than the best in hindsight, whatever the rhythm of a fault", () => {
    for (const [on, off] of [
      [4, 4],
      [5, 8],
      [10, 30],
      [44, 31],
    ] as const) {
      const job = simulated(FOUR, 0.01);
      let [lost, never, always] = [0, 0, 0];
      const makespan = (counts: readonly number[], factor: number): number =>
        Math.max(...counts.map((count, i) => count * (i === 1 ? factor : 1))) / 16 - 1;
      for (let k = 0; k < 600; k++) {
        const factor = k % (on + off) >= off ? 2.6 : 1;
        lost += makespan(job.counts(), factor);
        never += makespan([16, 16, 16, 16], factor);
        always += makespan([19, 19, 7, 19], factor);
        job.run(1, slow(1, factor));
      }
      expect({ on, off, isBetter: lost < 2 * Math.min(never, always) }).toEqual({
        on,
        off,
        isBetter: true,
      });
    }
  });

  it("keeps multiples and takes the bubble into account", () => {
    const shape = { groups: 4, total: 64, multipleOf: 4, bubble: 3 };
    const job = simulated(shape);
    job.run(20, slow(0, 2));
    // (8 + 3) · 2 = 22 is done before the others' 20 + 3, (12 + 3) · 2 would not be.
    expect(fits(job.counts(), shape)).toBe(true);
    expect(job.counts()[0]).toBe(8);
  });

  it("keeps what is in force while a replica's time is missing or nonsense, and says so", () => {
    for (const bad of [null, 0, -1, NaN, Infinity, 5e-324, 1e300]) {
      const { follower } = simulated(FOUR);
      for (let iteration = 0; iteration < 30; iteration++) {
        const seconds = [1.6, 1.6, 4.8, bad];
        const counts = [16, 16, 16, 16];
        expect(follower.report({ iteration, counts, seconds })).toBeNull();
      }
      expect(follower.state().counts).toEqual([16, 16, 16, 16]);
      expect(follower.state().remark).toMatch(/^replica 3 gave no usable time in iteration 29/);
    }
  });

  it("counts a report once, and takes over what is in force when it joins a running job", () => {
    const follower = followAllocation(FOUR);
    const counts = [20, 20, 4, 20];
    for (let again = 0; again < 50; again++)
      follower.report({ iteration: 900, counts, seconds: [2, 2, 2, 2] });
    expect(follower.state().counts).toEqual(counts);
    expect(follower.state().lastIteration).toBe(900);
    for (let iteration = 901; iteration < 930; iteration++)
      follower.report({ iteration, counts, seconds: [2, 2, 2, 2] });
    expect(follower.state().counts).toEqual(counts);
  });

  it("shares out the global batch whatever is reported", () => {
    const shape = fc.record({
      groups: fc.integer({ min: 1, max: 9 }),
      each: fc.integer({ min: 1, max: 12 }),
      multipleOf: fc.integer({ min: 1, max: 4 }),
      bubble: fc.double({ min: 0, max: 8, noNaN: true }),
    });
    const second = fc.oneof(
      fc.double({ min: 1e-6, max: 1e6, noNaN: true }),
      fc.constantFrom(1, 2, 1e-300, 1e300, Number.MIN_VALUE, null),
    );
    fc.assert(
      fc.property(
        shape,
        fc.array(fc.array(second, { minLength: 9, maxLength: 9 }), { maxLength: 60 }),
        ({ groups, each, multipleOf, bubble }, rows) => {
          const shape = { groups, total: groups * each * multipleOf, multipleOf, bubble };
          const follower = followAllocation(shape);
          rows.forEach((row, iteration) => {
            const { counts } = follower.state();
            follower.report({ iteration, counts, seconds: row.slice(0, groups) });
            expect(fits(follower.state().counts, shape)).toBe(true);
          });
        },
      ),
    );
  });
});
