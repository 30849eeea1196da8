import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  madeAccount,
  type MadeJob,
  onMachines,
} from "../../../test/support/methods/made-account.ts";
import { runs } from "../../../test/support/cases.ts";
import { type Hypothesis, judge, type Posterior } from "./posterior.ts";

function ask(job: MadeJob, each = job.ranks, unseen = 0): Posterior {
  return judge(madeAccount(job), onMachines(job.ranks, each), unseen);
}

function first({ hypotheses }: Posterior): Hypothesis {
  return hypotheses[0]!;
}

const CALM = { seed: 1, ranks: 16, blocks: 24 };

describe("the posterior", () => {
  it("names nobody in calm jobs of any size", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1e6 }),
        fc.constantFrom(4, 8, 16, 64),
        fc.integer({ min: 3, max: 60 }),
        (seed, ranks, blocks) => {
          const posterior = ask({ seed, ranks, blocks });
          expect(posterior.healthy).toBeGreaterThan(first(posterior)?.probability ?? 0);
        },
      ),
      { numRuns: runs(40, 400) },
    );
  });

  it("names the rank for which the others wait, since whenever they do, and nobody else", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1e6 }),
        fc.constantFrom(8, 16, 64),
        fc.nat(),
        fc.integer({ min: 8, max: 40 }),
        fc.double({ min: 0.15, max: 1, noNaN: true }),
        (seed, ranks, culprit, blocks, cost) => {
          const slow = culprit % ranks;
          const since = blocks >> 1;
          const posterior = ask({
            seed,
            ranks,
            blocks,
            costs: (rank, k) => (rank === slow && k >= since ? cost : 0),
          });
          expect(first(posterior).places).toEqual([slow]);
          expect(first(posterior).probability).toBeGreaterThan(0.8);
        },
      ),
      { numRuns: runs(30, 300) },
    );
  });

  it("names the same rank, wherever it stands", () => {
    const at = (slow: number): number =>
      first(ask({ ...CALM, costs: (rank) => (rank === slow ? 0.3 : 0) })).places[0]!;
    expect([0, 3, 15].map(at)).toEqual([0, 3, 15]);
  });

  it("needs three iterations, where the rank was slow in all of them", () => {
    const posterior = ask({ seed: 5, ranks: 16, blocks: 3, costs: (r) => (r === 6 ? 0.4 : 0) });
    expect(first(posterior).places).toEqual([6]);
  });

  it("names two ranks that are slow at once, also where they share a group", () => {
    for (const pair of [
      [2, 9],
      [4, 5],
    ]) {
      const costs = (rank: number, k: number): number => (pair.includes(rank) && k > 11 ? 0.4 : 0);
      const posterior = ask({ ...CALM, costs });
      expect(first(posterior).places).toEqual(pair);
    }
  });

  it("names a machine all of whose ranks are slow", () => {
    const costs = (rank: number, k: number): number => (rank >> 2 === 1 && k > 11 ? 0.4 : 0);
    const posterior = ask({ ...CALM, costs }, 4);
    expect(first(posterior)).toMatchObject({ kind: "machine", places: [4, 5, 6, 7] });
  });

  it("names a rank that is slow now and then, and leaves rank 0's spikes open", () => {
    const spiking = (slow: number): Posterior =>
      ask({ ...CALM, blocks: 60, costs: (rank, k) => (rank === slow && k % 6 === 2 ? 0.8 : 0) });
    expect(first(spiking(7))).toMatchObject({ places: [7] });
    expect(first(spiking(7)).probability).toBeGreaterThan(0.8);
    expect(first(spiking(0)).probability).toBeLessThanOrEqual(0.5);
  });

  it("names the group whose communication became slow though nobody leads", () => {
    const job = { seed: 3, ranks: 64, blocks: 24 };
    const posterior = ask({ ...job, slower: (group, k) => (group === 9 && k > 11 ? 6 : 1) });
    expect(first(posterior)).toMatchObject({ places: [18, 19] });
    expect(["wire", "device"]).toContain(first(posterior).kind);
  });

  it("is never surer than what it has seen: half of the ranks left no record", () => {
    const costs = (rank: number, k: number): number => (rank === 3 && k > 11 ? 0.5 : 0);
    const posterior = ask({ ...CALM, costs }, 16, 16);
    expect(first(posterior).places).toEqual([3]);
    expect(first(posterior).probability).toBeLessThanOrEqual(0.75);
  });

  it("gives probabilities that add up to 1", () => {
    const { healthy, hypotheses } = ask({ ...CALM, costs: (r) => (r === 3 ? 0.1 : 0) });
    const sum = hypotheses.reduce((total, { probability }) => total + probability, healthy);
    expect(sum).toBeCloseTo(1, 6);
  });
});
