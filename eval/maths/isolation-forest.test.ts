import { describe, expect, it } from "vitest";
import { randomInt, seeded } from "../../src/base/random.ts";
import {
  contributions,
  growForest,
  isolationScores,
  meanDepth,
  valueAt,
} from "./isolation-forest.ts";
import type { SparseRows } from "../../src/methods/logs/spatial-matrix.ts";

function sparse(rows: readonly (readonly number[])[]): SparseRows {
  const start = [0];
  const column: number[] = [];
  const value: number[] = [];
  for (const row of rows) {
    row.forEach((one, c) => {
      if (one === 0) return;
      column.push(c);
      value.push(one);
    });
    start.push(column.length);
  }
  return {
    rows: rows.length,
    columns: Math.max(0, ...rows.map(({ length }) => length)),
    start: Int32Array.from(start),
    column: Int32Array.from(column),
    value: Float64Array.from(value),
  };
}

/** Counts that vary a little, as of nodes that do the same. */
function alike(count: number, columns: number): number[][] {
  const random = seeded(3);
  return Array.from({ length: count }, () =>
    Array.from({ length: columns }, () => 20 + randomInt(random, 3)),
  );
}

describe("an isolation forest", () => {
  it("knows the mean depth of a search tree", () => {
    expect(meanDepth(1)).toBe(0);
    expect(meanDepth(2)).toBe(1);
    expect(meanDepth(256)).toBeCloseTo(10.2448, 3);
  });

  it("reads what is not listed as 0", () => {
    const data = sparse([[0, 4, 0, 5], [1]]);
    expect([0, 1, 2, 3].map((c) => valueAt(data, 0, c))).toEqual([0, 4, 0, 5]);
    expect(valueAt(data, 1, 3)).toBe(0);
  });

  it("finds the row with what no other has, and says what", () => {
    const rows = alike(40, 6).map((row, r) => [...row, r === 17 ? 30 : 0]);
    const data = sparse(rows);
    const forest = growForest(data);
    const scores = isolationScores(data, forest);
    expect(scores.indexOf(Math.max(...scores))).toBe(17);
    const why = [...contributions(data, forest, 17)].sort((a, b) => b[1] - a[1]);
    expect(why[0]![0]).toBe(6);
  });

  it("finds the row that lacks what all others have", () => {
    const data = sparse(alike(40, 6).map((row, r) => (r === 5 ? [0, 0, ...row.slice(2)] : row)));
    const scores = isolationScores(data, growForest(data));
    expect(scores.indexOf(Math.max(...scores))).toBe(5);
  });

  it("thinks equal rows equally ordinary", () => {
    const scores = isolationScores(sparse([[1], [1], [1]]), growForest(sparse([[1], [1], [1]])));
    expect(new Set(scores).size).toBe(1);
    expect(growForest(sparse([])).roots).toEqual([]);
  });

  it("gives the same answer for the same seed", () => {
    const data = sparse(alike(300, 8));
    const once = isolationScores(data, growForest(data, { seed: 9 }));
    expect(isolationScores(data, growForest(data, { seed: 9 }))).toEqual(once);
    expect(isolationScores(data, growForest(data, { seed: 8 }))).not.toEqual(once);
  });
});
