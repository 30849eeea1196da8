import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DecimalReader } from "./decimal-reader.ts";

const reader = new DecimalReader();

/** Amid other bytes, as in an answer. */
function read(text: string): number {
  const bytes = Buffer.from(`["${text}"]`);
  expect(reader.read(bytes, 2, bytes.length)).toBe(2 + text.length);
  return reader.value;
}

describe("DecimalReader", () => {
  it("is equal to Number(), bit for bit, for any double as JavaScript and Go write it", () => {
    fc.assert(
      fc.property(fc.double({ noDefaultInfinity: true, noNaN: true }), (value) => {
        const go = value.toExponential().replace(/e([+-])(\d)$/, "e$10$2");
        for (const text of [String(value), go, value.toFixed(3), value.toPrecision(17)]) {
          expect(Object.is(read(text), Number(text)), text).toBe(true);
        }
      }),
      { numRuns: 2000 },
    );
  });

  it("is equal to Number() for any digits, points and exponents", () => {
    const text = fc
      .tuple(
        fc.constantFrom("", "-"),
        fc.stringMatching(/^\d{1,25}$/),
        fc.option(fc.stringMatching(/^\d{1,30}$/)),
        fc.option(fc.integer({ min: -400, max: 400 })),
      )
      .map(([sign, whole, rest, exponent]) => {
        return `${sign}${whole}${rest === null ? "" : `.${rest}`}${exponent === null ? "" : `e${exponent}`}`;
      });
    fc.assert(
      fc.property(text, (text) => {
        expect(Object.is(read(text), Number(text)), text).toBe(true);
      }),
      { numRuns: 3000 },
    );
  });

  it("is equal to division by 1000 for times in seconds with milliseconds", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4_000_000_000_000 }), (ms) => {
        expect(read(String(ms / 1000))).toBe(ms / 1000);
        expect(read((ms / 1000).toFixed(3))).toBe(ms / 1000);
      }),
    );
  });

  it.each([
    ["NaN", NaN],
    ["+Inf", Infinity],
    ["-Inf", -Infinity],
    ["null", NaN],
    ["Infinity", Infinity],
    ["1e+06", 1e6],
    ["-0", -0],
    ["5.e3", 5000],
  ])("reads %s", (text, value) => expect(read(text)).toBe(value));

  it("asks for more where the bytes end, and refuses what has no end", () => {
    for (const text of ["", "1", "-", "12.", "1.5e", "1e-", "Na"]) {
      expect(reader.read(Buffer.from(text), 0, text.length)).toBe(-1);
    }
    for (const text of [",", "junk,", "1.2.3,", "-,", "[,"]) {
      expect(reader.read(Buffer.from(text), 0, text.length)).toBe(-2);
    }
    expect(reader.read(Buffer.from("7".repeat(2000)), 0, 2000)).toBe(-2);
    expect(reader.read(Buffer.from("x".repeat(2000)), 0, 2000)).toBe(-2);
  });
});
