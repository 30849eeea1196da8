import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { NEVER, type Operators, sweepSlot } from "./slot-sweep.ts";

function operatorsOf(rows: readonly (readonly [number, number, number])[]): Operators {
  return {
    count: rows.length,
    issued: Float64Array.from(rows, ([issued]) => issued),
    started: Float64Array.from(rows, ([, started]) => started),
    ended: Float64Array.from(rows, ([, , ended]) => ended),
  };
}

describe("a slot of a rank's time", () => {
  it("is its CPU's until the next operator is issued, then its GPU's until it starts, then inside", () => {
    const operators = operatorsOf([
      [20, 50, 60],
      [55, 80, NEVER],
    ]);
    expect(sweepSlot(operators, 0, 100)).toEqual({ late: 20, gpu: 30 + 20, inside: 10 + 20 });
  });

  it("is inside as long as any of several operators is under way", () => {
    const operators = operatorsOf([
      [0, 10, 60],
      [0, 20, 30],
      [0, 50, 90],
    ]);
    expect(sweepSlot(operators, 0, 100)).toEqual({ late: 10, gpu: 10, inside: 80 });
  });

  it("ends waiting for what was issued first and has not started, or for its CPU", () => {
    expect(sweepSlot(operatorsOf([[70, NEVER, NEVER]]), 0, 100)).toEqual({
      late: 70,
      gpu: 30,
      inside: 0,
    });
    expect(sweepSlot(operatorsOf([]), 0, 100)).toEqual({ late: 100, gpu: 0, inside: 0 });
  });

  it("is spent on something at every moment, the same as walking through it tells", () => {
    const operator = fc
      .tuple(fc.nat(150), fc.nat(60), fc.nat(60), fc.nat(5))
      .map(
        ([issued, wait, lasts, open]) =>
          [
            issued - 50,
            open === 0 ? NEVER : issued - 50 + wait,
            open < 2 ? NEVER : issued - 50 + wait + lasts,
          ] as const,
      );
    fc.assert(
      fc.property(fc.array(operator, { maxLength: 12 }), (rows) => {
        const swept = sweepSlot(operatorsOf(rows), 0, 100);
        expect(swept).toEqual(walked(rows));
        expect(swept.inside + swept.late + swept.gpu).toBe(100);
      }),
    );
  });
});

/** Moment by moment. */
function walked(rows: readonly (readonly [number, number, number])[]) {
  const shares = { late: 0, gpu: 0, inside: 0 };
  for (let at = 0; at < 100; at++) {
    if (rows.some(([, started, ended]) => started <= at && at < ended)) {
      shares.inside++;
      continue;
    }
    const later = rows.filter(([, started]) => started > at && started < 100);
    const start = Math.min(...later.map(([, started]) => started));
    const next = later.find(([, started]) => started === start);
    const waiting = rows.filter(([, started]) => started >= 100).map(([issued]) => issued);
    const call = next ? next[0] : Math.min(...waiting);
    if (call <= at) shares.gpu++;
    else shares.late++;
  }
  return shares;
}
