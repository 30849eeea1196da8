import { expect, test } from "vitest";
import { SeriesIndex } from "./series-index.ts";

test("finds what was put, and tells 300,000 names that differ in a digit or two apart", () => {
  const index = new SeriesIndex();
  const name = (i: number): Buffer =>
    Buffer.from(
      `up{gpu="${i % 8}",UUID="GPU-${(i * 7919).toString(16)}",instance="node${i >> 3}:9400"}`,
    );
  for (let i = 0; i < 300_000; i++) {
    const bytes = name(i);
    if (index.find(bytes, 0, bytes.length) !== undefined)
      throw new Error(`${String(bytes)} meets another`);
    index.put(i);
  }
  expect(index.size).toBe(300_000);
  for (const i of [0, 1, 77_777, 299_999]) {
    const bytes = Buffer.concat([Buffer.from("x"), name(i)]);
    expect(index.find(bytes, 1, bytes.length)).toBe(i);
  }
  expect(index.find(Buffer.from("up"), 0, 2)).toBeUndefined();
});
