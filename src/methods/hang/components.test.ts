import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { terminalComponents } from "./components.ts";

/** Slow and plain: nodes that reach each other, and nothing outside. */
function bruteForce(edges: readonly (readonly number[])[]): number[][] {
  const reach = edges.map((_, from) => {
    const seen = new Set([from]);
    const queue = [from];
    for (let node = queue.pop(); node !== undefined; node = queue.pop()) {
      for (const next of edges[node]!) {
        if (!seen.has(next)) {
          seen.add(next);
          queue.push(next);
        }
      }
    }
    return seen;
  });
  const result: number[][] = [];
  for (let node = 0; node < edges.length; node++) {
    const all = [...reach[node]!];
    if (all.every((other) => reach[other]!.has(node)) && Math.min(...all) === node)
      result.push(all);
  }
  return result;
}

const sorted = (components: number[][]): number[][] =>
  components.map((c) => c.toSorted((a, b) => a - b)).sort((a, b) => a[0]! - b[0]!);

describe("the ends of a wait graph", () => {
  it("are what following every arrow by hand gives", () => {
    const graph = fc
      .integer({ min: 1, max: 14 })
      .chain((n) =>
        fc.array(fc.array(fc.nat(n - 1), { maxLength: 3 }), { minLength: n, maxLength: n }),
      );
    fc.assert(
      fc.property(graph, (edges) => {
        expect(sorted(terminalComponents(edges))).toEqual(sorted(bruteForce(edges)));
      }),
      { numRuns: 2000, seed: 5 },
    );
  });

  it("are found at the end of a chain as long as a large job", () => {
    const n = 200_000;
    const chain = Array.from({ length: n }, (_, i) => (i + 1 < n ? [i + 1] : []));
    expect(terminalComponents(chain)).toEqual([[n - 1]]);
  });
});
