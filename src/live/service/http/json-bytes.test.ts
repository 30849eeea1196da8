import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { column } from "./json.ts";
import { JsonBytes } from "./json-bytes.ts";

const written = (values: Float32Array | Float64Array): string =>
  new JsonBytes().numbers(values).done().toString();

describe("JsonBytes", () => {
  it("writes numbers as JSON.stringify does, rounded to a thousandth", () => {
    const some = [
      0,
      -0,
      0.001,
      -0.5,
      1.05,
      999.9995,
      1e12,
      2 ** 53,
      -1e21,
      1e300,
      -1.7e308,
      NaN,
      Infinity,
    ];
    const values = Float64Array.from(some);
    expect(JSON.parse(written(values))).toEqual(JSON.parse(JSON.stringify(column(values))));
    fc.assert(
      fc.property(fc.float64Array(), (numbers) => {
        expect(JSON.parse(written(numbers))).toEqual(JSON.parse(JSON.stringify(column(numbers))));
      }),
    );
    fc.assert(
      fc.property(fc.array(fc.double({ min: -1e5, max: 1e5, noNaN: true })), (numbers) => {
        const floats = Float32Array.from(numbers);
        expect(written(floats)).toBe(JSON.stringify(column(floats)).replaceAll("-0,", "0,"));
      }),
    );
  });

  it("writes words and text of any length, as text", () => {
    const words = ["running", 'a "quote"', "ü".repeat(50_000), "running"];
    const bytes = new JsonBytes().text('{"a":').words(words).text("}").done();
    expect(JSON.parse(bytes.toString())).toEqual({ a: words });
  });
});
