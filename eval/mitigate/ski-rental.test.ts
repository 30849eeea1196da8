import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Remedy, Strategy } from "../../src/model/mitigation.ts";
import { dueAfter } from "../../src/mitigate/ski-rental.ts";
import { skiRental } from "./ski-rental.ts";

const HEALTHY_MS = 100;

function remedy(strategy: Strategy, overheadMs: number, iterationMs: number): Remedy {
  return { strategy, overheadMs, iterationMs, why: "" };
}

/** Time lost over so many iterations: waiting and overheads. */
function lossOf(
  remedies: readonly Remedy[],
  slowMs: number,
  iterations: number,
  /** Whether what is due with the last iteration is still paid for. */
  paysAtEnd = false,
): number {
  const rental = skiRental(remedies, slowMs);
  let [lost, nowMs] = [0, slowMs];
  for (let i = 0; i < iterations; i++) {
    lost += nowMs - HEALTHY_MS;
    const taken = rental.observe(nowMs);
    // A fault that ends here ends before the remedy is taken.
    if (taken && (paysAtEnd || i + 1 < iterations)) {
      lost += taken.overheadMs;
      nowMs = taken.iterationMs;
    }
  }
  return lost;
}

/** The best single choice of somebody who knows how long it lasts. */
function hindsight(remedies: readonly Remedy[], slowMs: number, iterations: number): number {
  const costs = remedies.map((one) => one.overheadMs + iterations * (one.iterationMs - HEALTHY_MS));
  return Math.min(iterations * (slowMs - HEALTHY_MS), ...costs);
}

const fault = fc.record({
  slowMs: fc.double({ min: 102, max: 400, noNaN: true }),
  remedies: fc.array(
    fc.record({
      overheadMs: fc.oneof(
        fc.constantFrom(0, 60_000, 1_800_000),
        fc.double({ min: 0, max: 1e6, noNaN: true }),
      ),
      share: fc.double({ min: 0, max: 1.2, noNaN: true }),
    }),
    { maxLength: 5 },
  ),
  iterations: fc.oneof(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 1, max: 40_000 })),
});

describe("renting or buying", () => {
  test("no length of a fault loses more than the bound says, of the best in hindsight and of doing nothing", () => {
    let worst = 0;
    fc.assert(
      fc.property(fault, ({ slowMs, remedies: drawn, iterations }) => {
        const remedies = drawn.map(({ overheadMs, share }) =>
          remedy("S2", overheadMs, HEALTHY_MS + share * (slowMs - HEALTHY_MS)),
        );
        const { remedies: kept, bound } = skiRental(remedies, slowMs);
        const lost = lossOf(remedies, slowMs, iterations);
        const best = hindsight(kept, slowMs, iterations);
        // Time comes in whole iterations: up to one too many is rented before each remedy.
        const grain = (kept.length + 1) * (slowMs - HEALTHY_MS);
        expect(lost).toBeLessThanOrEqual(bound * best + grain);
        const nothing = iterations * (slowMs - HEALTHY_MS);
        expect(lost).toBeLessThanOrEqual(bound * nothing + grain);
        // What was left out for a small gain costs no more than that gain.
        expect(best).toBeLessThanOrEqual(
          hindsight(remedies, slowMs, iterations) +
            0.01 * (remedies.length + 1) * slowMs * iterations,
        );
        worst = Math.max(worst, (lost - grain) / best);
      }),
      { numRuns: 2000, seed: 5 },
    );
    // The bound is no idle promise: some faults come near what ski rental must lose.
    expect(worst).toBeGreaterThan(1.5);
  });

  test("two choices: never more than twice the best", () => {
    const restart = [remedy("S4", 1_800_000, 100)];
    expect(skiRental(restart, 150).bound).toBe(2);
    for (const iterations of [1, 100, 35_999, 36_000, 36_001, 36_002, 40_000, 400_000]) {
      const ratio = lossOf(restart, 150, iterations) / hindsight(restart, 150, iterations);
      expect(ratio).toBeLessThanOrEqual(2.0001);
    }
  });

  test("the bound counts all overheads on the way", () => {
    const three = [remedy("S2", 1_000, 140), remedy("S3", 2_000, 120), remedy("S4", 4_000, 100)];
    expect(skiRental(three, 160).bound).toBeCloseTo(1 + 7 / 4, 9);
    // Overheads that lie close together: somebody who pays the last and sees it end lost nearly that much.
    let worst = 0;
    for (let iterations = 1; iterations < 400; iterations++) {
      const ended = lossOf(three, 160, iterations, true);
      worst = Math.max(worst, ended / hindsight(three, 160, iterations));
    }
    expect(worst).toBeGreaterThan(2.3);
    expect(worst).toBeLessThanOrEqual(1 + 7 / 4 + 0.1);
  });

  test("what was saved before a new diagnosis counts", () => {
    const S4 = remedy("S4", 1_000, 100);
    const first = skiRental([S4], 150);
    for (let i = 0; i < 15; i++) first.observe(150);
    const second = skiRental([S4], 160, first.saved);
    let after = 0;
    for (; !second.observe(160); after++);
    // 15 · 50 were saved; 250 are left.
    expect(after + 1).toBe(5);
  });

  test("cheap first, then stronger; each when it would have paid", () => {
    const S2 = remedy("S2", 1_000, 130);
    const S3 = remedy("S3", 60_000, 110);
    const rental = skiRental([S3, S2], 150);
    const taken: [number, string][] = [];
    let nowMs = 150;
    for (let i = 1; i <= 4000; i++) {
      const next = rental.observe(nowMs);
      if (!next) continue;
      taken.push([i, next.strategy]);
      nowMs = next.iterationMs;
    }
    // 1,000 / 20 iterations; then 50 · 40 were saved by S3 already, and 58,000 / 20 are to come.
    expect(taken).toEqual([
      [50, "S2"],
      [2950, "S3"],
    ]);
    expect(dueAfter([S3, S2], 150)).toEqual([2950, 50]);
  });

  test("a remedy that does not help is counted by what is seen: the next comes sooner", () => {
    const rental = skiRental([remedy("S2", 1_000, 110), remedy("S4", 10_000, 100)], 150);
    let taken = "";
    let at = 0;
    for (let i = 1; taken !== "S4"; i++) {
      taken = rental.observe(150)?.strategy ?? "";
      at = i;
    }
    expect(at).toBe(200);
  });

  test("what saves nothing is never taken", () => {
    const rental = skiRental([remedy("S2", 0, 149.5), remedy("S3", 10, 200)], 150);
    expect(rental.remedies).toEqual([]);
    for (let i = 0; i < 100; i++) expect(rental.observe(150)).toBeNull();
    expect(dueAfter([remedy("S3", 10, 200)], 150)).toEqual([Infinity]);
  });
});
