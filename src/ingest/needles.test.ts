import fc from "fast-check";
import { expect, it } from "vitest";
import { FirstAndLast } from "./first-and-last.ts";
import { Needles } from "./needles.ts";

it("finds what includes() finds", () => {
  const letter = fc.constantFrom("a", "b", " ", "é", "漢");
  const word = (min: number, max: number): fc.Arbitrary<string> =>
    fc.array(letter, { minLength: min, maxLength: max }).map((l) => l.join(""));
  fc.assert(
    fc.property(
      fc.array(word(6, 9), { minLength: 1, maxLength: 5 }),
      word(0, 60),
      (needles, text) => {
        expect(new Needles(needles).in(text)).toBe(needles.some((needle) => text.includes(needle)));
      },
    ),
    { numRuns: 2000 },
  );
});

it("finds a needle at every place of a line", () => {
  const needles = new Needles(["Killed", "CUDA out of memory"]);
  for (let before = 0; before < 40; before++) {
    for (let after = 0; after < 8; after++) {
      expect(needles.in(`${"x".repeat(before)}Killed${"y".repeat(after)}`)).toBe(true);
      expect(needles.in(`${"x".repeat(before)}Kille.${"y".repeat(after)}`)).toBe(false);
    }
  }
});

it("keeps the first and the last of many, in order", () => {
  fc.assert(
    fc.property(fc.nat(300), fc.integer({ min: 2, max: 40 }), (count, capacity) => {
      const list = new FirstAndLast<number>(capacity);
      for (let i = 0; i < count; i++) list.add(i);
      const half = capacity >> 1;
      const all = Array.from({ length: count }, (_, i) => i);
      const kept = count <= 2 * half ? all : [...all.slice(0, half), ...all.slice(-half)];
      expect(list.entries).toEqual(kept);
      expect(list.dropped).toBe(count - kept.length);
    }),
  );
});
