import fc from "fast-check";
import { expect, it } from "vitest";
import { numberAfter } from "./number-after.ts";

it("reads what Number() reads", () => {
  const number = fc.oneof(
    fc.integer({ min: -1_000_000, max: 1_000_000_000 }).map(String),
    fc.double({ min: -1e6, max: 1e12, noNaN: true }).map((n) => n.toFixed(4)),
    fc.double({ min: 1e-9, max: 1e12, noNaN: true }).map((n) => n.toExponential(6)),
  );
  const after = fc.constantFrom("", " |", "ms", ", x", "%", ")");
  fc.assert(
    fc.property(number, after, (text, rest) => {
      expect(numberAfter(`: ${text}${rest}`, 1)).toBe(Number(text));
    }),
    { numRuns: 2000 },
  );
});

it("reads thousands commas, and stops at what is none", () => {
  expect(numberAfter("tps: 1,234,567  tflops", 4)).toBe(1234567);
  expect(numberAfter("1,2345", 0)).toBe(1);
  expect(numberAfter("12, 345", 0)).toBe(12);
  expect(numberAfter("1.5,200", 0)).toBe(1.5);
  expect(numberAfter("nan", 0)).toBeNaN();
  expect(numberAfter("", 0)).toBeNaN();
  expect(numberAfter("-", 0)).toBeNaN();
  expect(numberAfter("12345678901234567890", 0)).toBe(Number("12345678901234567890"));
});
