import { describe, expect, it } from "vitest";
import { coveringOf, f1Of, score } from "../eval/change-points/scores.ts";
import { bocpdChanges } from "../eval/change-points/tcpd.ts";

describe("scores of change points, as TCPDBench counts them", () => {
  it("counts index 0 for everybody", () => {
    expect(score([[]], [], 100)).toEqual({ f1: 1, covering: 1 });
    expect(f1Of([[50]], [])).toBeCloseTo(2 / 3, 12);
    expect(f1Of([[]], [50])).toBeCloseTo(2 / 3, 12);
    expect(f1Of([[50]], [0, 50])).toBe(1);
  });

  it("forgives five points, not six, and gives a found point to one change only", () => {
    expect(f1Of([[50]], [55])).toBe(1);
    expect(f1Of([[50]], [44])).toBeCloseTo(0.5, 12);
    // Precision 1, recall 2 of 3.
    expect(f1Of([[50, 54]], [52])).toBeCloseTo(0.8, 12);
  });

  it("takes precision against all annotators, recall as their mean", () => {
    // Precision 3 of 3; recall (2/2 + 2/2 + 1/1) / 3.
    expect(f1Of([[30], [70], []], [30, 70])).toBe(1);
    // Precision 2 of 2; recall (2/2 + 1/2) / 2.
    expect(f1Of([[30], [70]], [30])).toBeCloseTo((2 * 0.75) / 1.75, 12);
  });

  it("weighs each true segment's best overlap by its length", () => {
    expect(coveringOf([[50]], [], 100)).toBeCloseTo(0.5, 12);
    expect(coveringOf([[50]], [60], 100)).toBeCloseTo(0.5 * (50 / 60) + 0.5 * (40 / 50), 12);
    expect(coveringOf([[50], []], [50], 100)).toBeCloseTo((1 + 0.5) / 2, 12);
  });
});

it("the benchmark's Bayesian detector finds a plain step", () => {
  const values = Array.from({ length: 100 }, (_, t) => (t < 40 ? 0 : 10) + Math.sin(t * t));
  expect(bocpdChanges(values)).toEqual([40]);
});
