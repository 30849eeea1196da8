import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { apart, spreadOffsets } from "./clock-offsets.ts";

describe("clocks spread from neighbour to neighbour", () => {
  test("come out as they were set, whatever tree joins them", () => {
    const trees = fc.array(fc.tuple(fc.nat(1_000), fc.integer({ min: -1e6, max: 1e6 })), {
      minLength: 1,
      maxLength: 40,
    });
    fc.assert(
      fc.property(trees, (list) => {
        const ahead = [0, ...list.map(([, ns]) => ns)];
        const edges = list.map(([parent], i) => [parent % (i + 1), i + 1] as const);
        const known = spreadOffsets(
          ahead.keys(),
          () => (node, isKnown) =>
            edges
              .flatMap(([a, b]) => (a === node ? [b] : b === node ? [a] : []))
              .filter((other) => !isKnown(other))
              .map((other) => [other, ahead[other]! - ahead[node]!] as const),
        );
        for (const [node, { ahead: found, component }] of known) {
          expect(component).toBe(0);
          expect(found - known.get(0)!.ahead).toBeCloseTo(ahead[node]! - ahead[0]!, 3);
        }
        expect(known.size).toBe(ahead.length);
      }),
    );
  });

  test("stay apart where nothing joins them", () => {
    const known = spreadOffsets([3, 8], () => () => []);
    expect([...known]).toEqual([
      [3, { ahead: 0, component: 3 }],
      [8, { ahead: 0, component: 8 }],
    ]);
  });

  test("are compared by what both saw, and by nothing else", () => {
    const own = new Map([
      ["a", 1],
      ["b", 2],
    ]);
    expect(
      apart(
        own,
        new Map([
          ["b", 7],
          ["c", 9],
        ]),
      ),
    ).toEqual([5]);
  });
});
