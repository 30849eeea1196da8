import { describe, expect, test } from "vitest";
import type { RankOperators } from "../../model/rank-operators.ts";
import { ofSamePace } from "./same-pace.ts";

const ranksOf = (times: readonly (readonly number[])[], first = 1): RankOperators[] =>
  times.map((durations, rank) => {
    const iteration = Float64Array.from(durations, (_, i) => first + i);
    return {
      rank,
      iteration,
      durationMs: Float64Array.from(durations),
    } as unknown as RankOperators;
  });
const kept = (ranks: readonly RankOperators[]) => ofSamePace(ranks).map(({ rank }) => rank);

describe("ranks of the same pace", () => {
  const trainer = [700, 720, 690, 640, 730, 710];
  const engine = [0.02, 0.02, 2150, 0.03, 451, 0.02];

  test("are those that go through the same iterations: engines that decode do not", () => {
    expect(kept(ranksOf([engine, trainer, trainer.map((ms) => ms + 9), trainer]))).toEqual([
      1, 2, 3,
    ]);
  });

  test("are all ranks of a synchronous job, whatever its iterations do", () => {
    const noisy = [700, 2100, 690, 140, 730, 9000];
    expect(kept(ranksOf([noisy, noisy.map((ms) => 1.3 * ms), noisy]))).toEqual([0, 1, 2]);
  });

  test("are all where none goes along with another: then nothing is known", () => {
    expect(kept(ranksOf([engine, trainer]))).toEqual([0, 1]);
  });

  test("are compared by what they usually take where their records do not overlap", () => {
    const [early] = ranksOf([trainer]);
    const [late] = ranksOf([trainer], 100);
    expect(ofSamePace([early!, { ...late!, rank: 1 }])).toHaveLength(2);
  });
});
