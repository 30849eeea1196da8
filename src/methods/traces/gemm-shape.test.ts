import { describe, expect, it } from "vitest";
import { bytesOf, shapeWords } from "./gemm-shape.ts";

describe("a shape in words", () => {
  const shapes: [string, { dims: number[][]; types: string[] }][] = [
    [
      "[4096×8192]·[8192×8484] BFloat16",
      {
        dims: [
          [4096, 8192],
          [8192, 8484],
        ],
        types: ["c10::BFloat16", "c10::BFloat16"],
      },
    ],
    // Scalars have no dimensions, and their types say nothing of the product.
    ["[7]·[7×3] Half", { dims: [[], [7], [7, 3]], types: ["Scalar", "c10::Half", "c10::Half"] }],
    ["[2×2]", { dims: [[2, 2]], types: ["SomethingNew"] }],
  ];
  it.each(shapes)("%s", (words, shape) => expect(shapeWords(shape)).toBe(words));
});

it.each([
  ["c10::BFloat16", 2],
  ["BFloat16", 2],
  ["double", 8],
  ["Float8_e4m3fn", 1],
  ["Scalar", 0],
])("an element of %s takes %i bytes", (type, bytes) => expect(bytesOf(type)).toBe(bytes));
