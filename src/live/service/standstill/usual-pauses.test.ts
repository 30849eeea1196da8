import { describe, expect, it } from "vitest";
import { usualPauseMs } from "./usual-pauses.ts";

const at = (...iterations: number[]) =>
  iterations.map((iteration) => ({ iteration, durationMs: 60_000 + iteration }));

describe("usualPauseMs", () => {
  it("expects a checkpoint every 100 iterations at its turn, and not between", () => {
    const pauses = at(100, 200, 300);
    expect(usualPauseMs(pauses, 400)).toBe(60_300);
    expect(usualPauseMs(pauses, 401)).toBe(60_300);
    expect(usualPauseMs(pauses, 500)).toBe(60_300);
    expect(usualPauseMs(pauses, 350)).toBe(0);
    expect(usualPauseMs(pauses, 301)).toBe(0);
  });

  it("expects pauses without a rhythm at any time, the longest of the last ones", () => {
    expect(usualPauseMs(at(100, 163, 300), 350)).toBe(60_300);
    expect(usualPauseMs(at(100, 200), 250)).toBe(60_200);
  });

  it("takes one pause for no habit", () => {
    expect(usualPauseMs(at(100), 200)).toBe(0);
    expect(usualPauseMs([], 1)).toBe(0);
  });
});
