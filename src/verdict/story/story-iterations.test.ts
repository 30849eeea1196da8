import { describe, expect, it } from "vitest";
import type { RankOperators } from "../../model/rank-operators.ts";
import { storyIterations, type SlowSpan, type StoryIterations } from "./story-iterations.ts";

/** From iteration 3 on; all ranks take the same. */
function told(ms: readonly number[], span: SlowSpan): StoryIterations {
  const durationMs = Float64Array.from(ms);
  const iteration = durationMs.map((_, i) => i + 3);
  const rank = { iteration, durationMs } as unknown as RankOperators;
  return storyIterations([rank, rank, rank], span);
}

/** As rank 0 of the recording slow-gpu2-tp4 had them from iteration 3: slow from 31 on, with hiccups on both sides. */
const HICCUPS = [
  133, 148, 147, 138, 124, 123, 123, 129, 128, 143, 146, 123, 129, 123, 125, 125, 126, 126, 126,
  125, 125, 125, 128, 123, 124, 590, 533, 445, 176, 243, 159, 166, 155, 275, 153, 153, 164, 153,
  156, 210, 159, 157, 177, 169, 153, 184, 164, 154, 155, 156, 159, 450, 159, 155, 159, 154, 164,
];

describe("the iterations that a slow-down is told of", () => {
  it("are as long as usual since, not as the longest", () => {
    const { slowMs, healthyMs, slow } = told(HICCUPS, { from: 31, until: null });
    expect(slowMs).toBe(159);
    expect(healthyMs).toBe(126);
    expect(slow).toEqual([31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42]);
  });

  it("begin with one that shows it well and is no hiccup", () => {
    const span = { from: 31, until: null };
    const lengths = told(HICCUPS, span).shown.map((number) => HICCUPS[number - 3]);
    expect(lengths[0]).toBe(210);
    expect(Math.max(...lengths.map((ms) => ms!))).toBe(210);
    expect(told([...calm(8), 150, 151, 152], { from: 11, until: null }).shown[0]).toBe(12);
    expect(told([...calm(8), 150], { from: 11, until: null }).shown).toEqual([11]);
  });

  it("are slow ones alone where they come now and then, whatever one of them takes", () => {
    const ms = [...calm(40)];
    for (const [at, took] of [12, 18, 24, 30].map((n, k) => [n, [170, 165, 900, 175][k]!] as const))
      ms[at - 3] = took;
    const { slow, slowMs, shown: first } = told(ms, { from: 12, until: 30 });
    expect(slow).toEqual([12, 18, 24, 30]);
    expect(slowMs).toBe(172.5);
    expect(first[0]).toBe(30);
  });

  it("are all of a slow-down that is over", () => {
    const ms = [...calm(20), ...calm(10).map((one) => one + 50), ...calm(10)];
    ms[25] = 2000;
    const { slow, slowMs, healthyMs } = told(ms, { from: 23, until: 32 });
    expect(slow).toEqual([23, 24, 25, 26, 27, 28, 29, 30, 31, 32]);
    expect(slowMs - healthyMs).toBeCloseTo(50, -1);
  });

  it("are typical ones where it was slow from the start", () => {
    const { shown: first, healthyMs } = told([...calm(9), 500], { from: null, until: null });
    expect(healthyMs).toBeNaN();
    expect(first).not.toContain(12);
  });
});

/** About 100 ms each. */
function calm(count: number): number[] {
  return Array.from({ length: count }, (_, i) => 100 + ((7 * i) % 5));
}
