import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { seeded } from "../base/random.ts";
import { Bocpd } from "./bocpd.ts";
import { gaussian } from "../../test/support/noise.ts";

const PRIOR = { mean: 0, kappa: 1, alpha: 1, beta: 1 };

/** Adams & MacKay as they write it: a probability for every run length, nothing pruned, no logarithms. */
function dense(values: readonly number[], lambda: number): number[][] {
  let runs = [{ p: 1, mean: 0, kappa: 1, alpha: 1, beta: 1 }];
  const posteriors: number[][] = [];
  for (const x of values) {
    const seen = runs.map((run) => run.p * student(x, run));
    const evidence = seen.reduce((a, b) => a + b, 0);
    const grown = runs.map((run, i) => ({
      p: (seen[i]! / evidence) * (1 - 1 / lambda),
      mean: (run.kappa * run.mean + x) / (run.kappa + 1),
      kappa: run.kappa + 1,
      alpha: run.alpha + 0.5,
      beta: run.beta + (run.kappa * (x - run.mean) ** 2) / (2 * (run.kappa + 1)),
    }));
    runs = [{ p: 1 / lambda, mean: 0, kappa: 1, alpha: 1, beta: 1 }, ...grown];
    posteriors.push(runs.map(({ p }) => p));
  }
  return posteriors;
}

function student(
  x: number,
  run: { mean: number; kappa: number; alpha: number; beta: number },
): number {
  const scale = (run.beta * (run.kappa + 1)) / (run.alpha * run.kappa);
  const nu = 2 * run.alpha;
  const c = gamma((nu + 1) / 2) / gamma(nu / 2) / Math.sqrt(nu * Math.PI * scale);
  return c * (1 + (x - run.mean) ** 2 / (nu * scale)) ** (-(nu + 1) / 2);
}

/** Γ at halves and integers, by its recurrence. */
function gamma(x: number): number {
  if (x === 0.5) return Math.sqrt(Math.PI);
  return x === 1 ? 1 : (x - 1) * gamma(x - 1);
}

describe("Bayesian online change-point detection", () => {
  test("gives the posterior of the textbook recursion", () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: -5, max: 5, noNaN: true }), { minLength: 1, maxLength: 40 }),
        fc.integer({ min: 2, max: 500 }),
        (values, lambda) => {
          const bocpd = new Bocpd({ lambda, prior: PRIOR, prune: 0 });
          const expected = dense(values, lambda);
          values.forEach((x, t) => {
            bocpd.push(x);
            bocpd.forEach((start, logP) => {
              const runLength = t + 1 - start;
              expect(Math.exp(logP)).toBeCloseTo(expected[t]![runLength]!, 8);
            });
          });
        },
      ),
    );
  });

  test("P(r = 0) is the hazard whatever the data: the paper's alarm cannot fire as written", () => {
    const bocpd = new Bocpd({ lambda: 250, prior: PRIOR });
    for (const x of [0, 0.1, -0.1, 50, 50, 50.1, 0]) {
      bocpd.push(x);
      let newest = NaN;
      bocpd.forEach((start, logP) => {
        if (start === bocpd.time) newest = Math.exp(logP);
      });
      expect(newest).toBeCloseTo(1 / 250, 12);
    }
  });

  test("a few points after a jump nearly all probability lies on runs since the jump", () => {
    const random = seeded(1);
    const bocpd = new Bocpd({ lambda: 250, prior: PRIOR });
    for (let i = 0; i < 60; i++) bocpd.push(0.2 * gaussian(random));
    expect(bocpd.probabilitySince(50)).toBeLessThan(0.2);
    for (let i = 0; i < 4; i++) bocpd.push(3 + 0.2 * gaussian(random));
    expect(bocpd.probabilitySince(60)).toBeGreaterThan(0.9);
    expect(bocpd.mostLikely.start).toBe(60);
    expect(bocpd.mostLikely.mean).toBeGreaterThan(2);
  });

  test("pruning keeps the number of hypotheses small and the answer the same", () => {
    const random = seeded(2);
    const all = new Bocpd({ lambda: 100, prior: PRIOR, prune: 0 });
    const few = new Bocpd({ lambda: 100, prior: PRIOR });
    for (let i = 0; i < 600; i++) {
      const x = (i < 300 ? 0 : 2) + 0.5 * gaussian(random);
      all.push(x);
      few.push(x);
      expect(few.probabilitySince(290)).toBeCloseTo(all.probabilitySince(290), 1);
    }
    expect(all.hypotheses).toBe(601);
    expect(few.hypotheses).toBeLessThan(150);
    expect(few.mostLikely.start).toBe(all.mostLikely.start);
  });
});
