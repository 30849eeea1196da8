import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { seeded } from "../../src/base/random.ts";
import { fitKnn, predictKnn } from "./knn.ts";
import { fitSvm, scoreSvm } from "./linear-svm.ts";
import { quantilePlace, select } from "../../src/maths/quickselect.ts";
import { scaleOf, standardise } from "./standardise.ts";

/** Two features of very different units; the label is a line through both. */
function line(count: number): { rows: Float64Array; labels: Uint8Array } {
  const random = seeded(11);
  const rows = Float64Array.from({ length: 2 * count }, (_, i) => random() * (i % 2 ? 1e6 : 1e-3));
  const labels = Uint8Array.from({ length: count }, (_, row) =>
    Number(rows[2 * row]! * 1e3 + rows[2 * row + 1]! / 1e6 > 1),
  );
  return { rows, labels };
}

const rightShare = (found: Float64Array, cut: number, labels: Uint8Array): number =>
  found.filter((score, row) => Number(score > cut) === labels[row]).length / labels.length;

describe("baselines", () => {
  it("nearest neighbours know the rows they were given", () => {
    const { rows, labels } = line(200);
    const found = predictKnn(fitKnn(rows, labels, 2, 1), rows);
    expect(Array.from(found)).toEqual(Array.from(labels));
  });

  it("nearest neighbours are those that sorting all distances gives", () => {
    const { rows, labels } = line(60);
    const scaled = standardise(rows, scaleOf(rows, 2));
    const found = predictKnn(fitKnn(rows, labels, 2, 7), rows);
    for (let row = 0; row < 60; row++) {
      const distance = (other: number): number =>
        (scaled[2 * row]! - scaled[2 * other]!) ** 2 +
        (scaled[2 * row + 1]! - scaled[2 * other + 1]!) ** 2;
      const nearest = [...labels.keys()].sort((a, b) => distance(a) - distance(b)).slice(0, 7);
      expect(found[row]).toBe(nearest.filter((other) => labels[other] === 1).length / 7);
    }
  });

  it("a linear machine finds a line, the same one for the same seed", () => {
    const { rows, labels } = line(500);
    const options = { lambda: 1e-4, steps: 50_000, seed: 1 };
    const svm = fitSvm(rows, labels, 2, options);
    expect(rightShare(scoreSvm(svm, rows), 0, labels)).toBeGreaterThan(0.97);
    expect(fitSvm(rows, labels, 2, options)).toEqual(svm);
  });
});

describe("selection", () => {
  it("finds what sorting finds", () => {
    const numbers = fc.array(fc.integer({ min: -9, max: 9 }), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(numbers, fc.double({ min: 0, max: 1, noNaN: true }), (given, quantile) => {
        const k = quantilePlace(given.length, quantile);
        const sorted = Float64Array.from(given).sort();
        const values = Float64Array.from(given);
        expect(select(values, 0, values.length, k)).toBe(sorted[k]);
        expect(values.slice().sort()).toEqual(sorted);
        for (let i = 0; i < k; i++) expect(values[i]).toBeLessThanOrEqual(sorted[k]!);
        for (let i = k; i < values.length; i++)
          expect(values[i]).toBeGreaterThanOrEqual(sorted[k]!);
      }),
    );
  });
});
