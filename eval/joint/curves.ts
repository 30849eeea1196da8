/** How stated weights become chances: a logistic curve a method, and monotone steps for the verdict as a whole. */
import { logOdds, probabilityOf } from "../../src/verdict/reliability.ts";

export interface Case {
  readonly stated: number;
  readonly right: boolean;
}

/**
 * A method stays near "as stated" unless many cases say otherwise: the strength of that belief, in cases. Simulated jobs are
 * not the field, and a few stated weights are no curve: the slope hardly moves.
 */
const RIDGE_OFFSET = 20;
const RIDGE_SLOPE = 200;

/** offset + slope × log-odds, by Newton's method, leaning to 0 and 1. */
export function fitCurve(cases: readonly Case[]): { offset: number; slope: number } {
  let [offset, slope] = [0, 1];
  for (let step = 0; step < 30; step++) {
    let [g0, g1] = [-RIDGE_OFFSET * offset * 0.25, -RIDGE_SLOPE * (slope - 1) * 0.25];
    let [h00, h01, h11] = [RIDGE_OFFSET * 0.25, 0, RIDGE_SLOPE * 0.25];
    for (const { stated, right } of cases) {
      const x = logOdds(stated);
      const p = probabilityOf(offset + slope * x);
      const miss = (right ? 1 : 0) - p;
      g0 += miss;
      g1 += miss * x;
      const v = p * (1 - p);
      h00 += v;
      h01 += v * x;
      h11 += v * x * x;
    }
    const det = h00 * h11 - h01 * h01;
    offset += (h11 * g0 - h01 * g1) / det;
    slope = Math.max(0, slope + (h00 * g1 - h01 * g0) / det);
  }
  return { offset, slope };
}

/** Pool adjacent violators, with each block drawn towards its own probability by a few cases. */
export function isotonic(cases: readonly Case[]): [number, number][] {
  const PULL = 4;
  const sorted = [...cases].sort((a, b) => a.stated - b.stated);
  const perBlock = Math.max(10, Math.ceil(sorted.length / 8));
  const blocks: { n: number; x: number; right: number }[] = [];
  for (let i = 0; i < sorted.length; i += perBlock) {
    const part = sorted.slice(i, i + perBlock);
    blocks.push({
      n: part.length,
      x: part.reduce((sum, { stated }) => sum + stated, 0),
      right: part.filter(({ right }) => right).length,
    });
    for (let last = blocks.length - 1; last > 0; last = blocks.length - 1) {
      const [a, b] = [blocks[last - 1]!, blocks[last]!];
      if (a.right / a.n <= b.right / b.n) break;
      blocks.splice(last - 1, 2, { n: a.n + b.n, x: a.x + b.x, right: a.right + b.right });
    }
  }
  const inside = blocks.map(({ n, x, right }): [number, number] => [
    round(x / n),
    round((right + PULL * (x / n)) / (n + PULL)),
  ]);
  return [[0, 0], ...inside, [1, inside.at(-1)?.[1] ?? 1]];
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
