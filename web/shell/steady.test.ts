import { describe, expect, it } from "vitest";
import { steadyOrder } from "./steady.ts";

describe("rows", () => {
  it("take the order that is wanted when nobody points at them", () => {
    expect(steadyOrder(["a", "b"], ["b", "c", "a"], false)).toEqual(["b", "c", "a"]);
  });

  it("keep their places while somebody does: new ones come behind, gone ones leave", () => {
    expect(steadyOrder(["a", "x", "b"], ["c", "b", "a"], true)).toEqual(["a", "b", "c"]);
  });
});
