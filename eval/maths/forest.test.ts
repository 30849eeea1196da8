import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { randomInt, seeded } from "../../src/base/random.ts";
import { binRows } from "./forest-bins.ts";
import { growForest, type ForestOptions } from "./forest-grow.ts";
import { forestFromJson, forestToJson } from "./forest-json.ts";
import { impurity, trySplit, type Criterion, type Split } from "./forest-split.ts";
import { importances, predictRow, predictRows } from "./forest.ts";

const OPTIONS: ForestOptions = {
  trees: 9,
  maxDepth: 8,
  minLeaf: 1,
  criterion: "gini",
  seed: 7,
};

/** Rows of three features, of few or of many distinct values. */
const tables = fc
  .record({ count: fc.integer({ min: 1, max: 60 }), seed: fc.nat(), isCoarse: fc.boolean() })
  .map(({ count, seed, isCoarse }) => {
    const random = seeded(seed);
    const draw = (): number => (isCoarse ? randomInt(random, 4) : 1e3 * (random() - 0.5));
    const rows = Float64Array.from({ length: 3 * count }, draw);
    const labels = Uint8Array.from({ length: count }, () => randomInt(random, 2));
    return { rows, labels, count };
  });

describe("a forest", () => {
  it.each(["gini", "entropy"] as Criterion[])("learns what can be separated (%s)", (criterion) => {
    const random = seeded(3);
    const rows = Float64Array.from({ length: 4 * 500 }, () => random());
    const labels = Uint8Array.from({ length: 500 }, (_, row) =>
      Number(rows[row * 4]! > 0.3 && rows[row * 4 + 2]! <= 0.6),
    );
    const forest = growForest(rows, labels, 4, { ...OPTIONS, criterion, trees: 30 });
    const found = predictRows(forest, rows);
    expect(Array.from(found, (p) => Number(p > 0.5))).toEqual(Array.from(labels));
    const shares = importances(forest);
    expect(shares[0]! + shares[2]!).toBeGreaterThan(0.8);
    expect(shares.reduce((sum, share) => sum + share)).toBeCloseTo(1);
  });

  it("gives probabilities, the same row by row and all at once", () => {
    fc.assert(
      fc.property(tables, ({ rows, labels, count }) => {
        const forest = growForest(rows, labels, 3, OPTIONS);
        const all = predictRows(forest, rows);
        for (let row = 0; row < count; row++) {
          expect(all[row]).toBe(predictRow(forest, rows, row * 3));
          expect(all[row]).toBeGreaterThanOrEqual(0);
          expect(all[row]).toBeLessThanOrEqual(1);
        }
      }),
    );
  });

  it("is the same for the same seed, and after being stored", () => {
    fc.assert(
      fc.property(tables, fc.nat(), ({ rows, labels }, seed) => {
        const forest = growForest(rows, labels, 3, { ...OPTIONS, seed });
        expect(growForest(rows, labels, 3, { ...OPTIONS, seed })).toEqual(forest);
        const text = JSON.stringify(forestToJson(forest));
        const again = forestFromJson(JSON.parse(text));
        expect({ ...again, gain: 0 }).toEqual({ ...forest, gain: 0 });
        expect(predictRows(again, rows)).toEqual(predictRows(forest, rows));
      }),
    );
  });

  it("keeps to its depth and to the least rows of a leaf", () => {
    fc.assert(
      fc.property(tables, ({ rows, labels, count }) => {
        const options = { ...OPTIONS, bootstrap: false, maxDepth: 3, minLeaf: 4, trees: 1 };
        const { feature, left, right, threshold } = growForest(rows, labels, 3, options);
        const reached = new Map<number, number>();
        for (let row = 0; row < count; row++) {
          let node = 0;
          let depth = 0;
          for (; feature[node]! >= 0; depth++) {
            const isLeft = rows[row * 3 + feature[node]!]! <= threshold[node]!;
            node = isLeft ? left[node]! : right[node]!;
          }
          expect(depth).toBeLessThanOrEqual(3);
          reached.set(node, (reached.get(node) ?? 0) + 1);
        }
        const leaves = feature.filter((asked) => asked < 0).length;
        expect(reached.size).toBe(leaves);
        if (leaves > 1) for (const rows of reached.values()) expect(rows).toBeGreaterThanOrEqual(4);
      }),
    );
  });
});

describe("a split", () => {
  it("is the best that trying every value of every feature finds", () => {
    const criteria = fc.constantFrom<Criterion>("gini", "entropy");
    fc.assert(
      fc.property(tables, criteria, fc.integer({ min: 1, max: 5 }), (table, criterion, minLeaf) => {
        const { rows, labels, count } = table;
        const data = binRows(rows, 3);
        const order = Int32Array.from({ length: count }, (_, row) => row);
        const best: Split = { feature: -1, bin: 0, gain: 0 };
        for (const feature of [0, 1, 2])
          trySplit(data, labels, order, 0, count, feature, criterion, minLeaf, best);
        expect(best.gain).toBeCloseTo(bruteForce(rows, labels, criterion, minLeaf), 6);
        if (best.feature < 0) return;
        const edge = data.edges[best.feature]![best.bin]!;
        const goesLeft = [...labels.keys()].map((row) => rows[row * 3 + best.feature]! <= edge);
        expect(gainOf(goesLeft, labels, criterion)).toBeCloseTo(best.gain, 6);
      }),
    );
  });

  it("puts NaN on the right, as a prediction does", () => {
    const data = binRows(Float64Array.of(1, 2, NaN), 1);
    expect([...data.bins]).toEqual([0, 1, 1]);
  });

  it("goes through at most 255 edges of many values", () => {
    const random = seeded(5);
    const rows = Float64Array.from({ length: 5000 }, () => random());
    const { edges, bins } = binRows(rows, 1);
    expect(edges[0]!.length).toBe(255);
    const sizes = new Int32Array(256);
    for (const bin of bins) sizes[bin]!++;
    expect(Math.max(...sizes)).toBeLessThan(3 * (5000 / 256));
    rows.forEach((value, row) => {
      const bin = bins[row]!;
      if (bin < 255) expect(value).toBeLessThanOrEqual(edges[0]![bin]!);
      if (bin > 0) expect(value).toBeGreaterThan(edges[0]![bin - 1]!);
    });
  });
});

function gainOf(goesLeft: readonly boolean[], labels: Uint8Array, criterion: Criterion): number {
  const side = (left: boolean): number => {
    const own = [...labels].filter((_, row) => goesLeft[row] === left);
    return impurity(criterion, own.filter((label) => label === 1).length, own.length);
  };
  const positives = [...labels].filter((label) => label === 1).length;
  return impurity(criterion, positives, labels.length) - side(true) - side(false);
}

function bruteForce(
  rows: Float64Array,
  labels: Uint8Array,
  criterion: Criterion,
  minLeaf: number,
): number {
  let best = 0;
  for (const feature of [0, 1, 2]) {
    for (let at = 0; at < labels.length; at++) {
      const goesLeft = [...labels.keys()].map(
        (row) => rows[row * 3 + feature]! <= rows[at * 3 + feature]!,
      );
      const left = goesLeft.filter(Boolean).length;
      if (left < minLeaf || labels.length - left < minLeaf) continue;
      best = Math.max(best, gainOf(goesLeft, labels, criterion));
    }
  }
  return best;
}
