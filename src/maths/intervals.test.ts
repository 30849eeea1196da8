import fc from "fast-check";
import { expect, test } from "vitest";
import { overlapWith, unionOf } from "./intervals.ts";

const spans = fc.array(fc.tuple(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 0, max: 9 })), {
  maxLength: 12,
});

test("the overlap with a union is what counting every unit of time gives", () => {
  fc.assert(
    fc.property(spans, fc.nat(60), fc.nat(30), (list, from, length) => {
      const ordered = list.toSorted((a, b) => a[0] - b[0]);
      const start = Float64Array.from(ordered, ([at]) => at);
      const dur = Float64Array.from(ordered, ([, takes]) => takes);
      const union = unionOf(start, dur, ordered.length, () => true);
      let covered = 0;
      for (let t = from; t < from + length; t++)
        if (list.some(([at, takes]) => at <= t && t < at + takes)) covered++;
      expect(overlapWith(union, from, from + length)).toBe(covered);
    }),
  );
});
