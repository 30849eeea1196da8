import fc from "fast-check";
import { expect, test } from "vitest";
import { jsonText } from "./json-text.ts";

test("is JSON, whatever the value", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const read: unknown = JSON.parse(jsonText(value, 1e9));
      expect(read).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
});

test("keeps numbers on one line", () => {
  expect(jsonText({ ranks: [0, 1, 2], name: "x".repeat(100) }, 1e4)).toBe(
    `{\n  "ranks": [0, 1, 2],\n  "name": "${"x".repeat(100)}"\n}`,
  );
});

test("stops early on a huge value", () => {
  const huge = Array.from({ length: 100_000 }, () => ({ text: "y".repeat(200) }));
  expect(jsonText(huge, 4_000)).toHaveLength(4_000);
});
