import { describe, expect, it } from "vitest";
import { seeded } from "../../../base/random.ts";
import { JobIterations } from "../job/job-iterations.ts";
import { PaceWatch } from "./pace-watch.ts";

/** What is said of stretches of iterations, with the number of the iteration at which it is said. */
function watch(
  stretches: readonly (readonly [count: number, ms: number])[],
  { noise = 0.02, seed = 1, pace = new PaceWatch() } = {},
): string[] {
  const random = seeded(seed);
  const iterations = new JobIterations("test");
  const said: string[] = [];
  let [iteration, endMs] = [0, 0];
  for (const [count, ms] of stretches)
    for (let k = 0; k < count; k++) {
      const durationMs = ms * (1 + noise * (2 * random() - 1));
      endMs += durationMs;
      const change = pace.push(
        iterations.push({ iteration: iteration++, durationMs, endMs, ranks: 8 }),
      );
      if (change) said.push(`${change} ${iteration - 1}`);
    }
  return said;
}

const at = (said: string): number => Number(said.split(" ")[1]);

describe("PaceWatch", () => {
  it("says nothing of a healthy job", () => {
    for (let seed = 1; seed <= 10; seed++)
      expect(watch([[1000, 500]], { noise: 0.05, seed })).toEqual([]);
  });

  it("tells of a longer pace and dates it, and of its end", () => {
    for (let seed = 1; seed <= 10; seed++) {
      const pace = new PaceWatch();
      const said = watch(
        [
          [60, 1000],
          [30, 1500],
          [30, 1000],
        ],
        { seed, pace },
      );
      expect(said.map((one) => one.split(" ")[0])).toEqual(["slower", "back"]);
      expect(at(said[0]!)).toBeLessThan(80);
      expect(at(said[1]!)).toBeLessThan(96);
      expect(pace.slowdown).toBeNull();
    }
    const pace = new PaceWatch();
    watch(
      [
        [60, 1000],
        [30, 1500],
      ],
      { pace },
    );
    const { slowFrom, beforeMs, afterMs } = pace.slowdown!;
    expect(slowFrom).toBe(60);
    expect(beforeMs).toBeCloseTo(1000, -2);
    expect(afterMs).toBeCloseTo(1500, -2);
  });

  it("waits three seconds where iterations are short, and says nothing of what is over by then", () => {
    const short = [
      [200, 90],
      [18, 130],
      [200, 90],
    ] as const;
    const long = [
      [200, 90],
      [60, 130],
    ] as const;
    for (let seed = 1; seed <= 10; seed++) {
      expect(watch(short, { seed })).toEqual([]);
      const [said] = watch(long, { seed });
      // 3 s are 23 iterations of 130 ms.
      expect(at(said!)).toBeGreaterThanOrEqual(222);
      expect(at(said!)).toBeLessThanOrEqual(230);
    }
  });

  it("keeps what it was before the first time when the job becomes slower once more", () => {
    const pace = new PaceWatch();
    const said = watch(
      [
        [60, 1000],
        [40, 1500],
        [40, 2500],
        [40, 1500],
      ],
      { pace },
    );
    expect(said).toHaveLength(1);
    expect(pace.slowdown).toMatchObject({ slowFrom: 60 });
    expect(pace.slowdown!.beforeMs).toBeCloseTo(1000, -2);
  });

  it("goes on with what an earlier service knew, until the pace is back", () => {
    const pace = new PaceWatch();
    pace.resume({ isPaced: true, slowFrom: 0, fromMs: 0, beforeMs: 1000, afterMs: 1250 });
    expect(
      watch(
        [
          [40, 1500],
          [10, 1000],
        ],
        { pace },
      ),
    ).toHaveLength(1);
  });

  it("takes a longer pace for the usual one once the judge has called it healthy for a minute", () => {
    const pace = new PaceWatch();
    watch(
      [
        [60, 1000],
        [20, 1500],
      ],
      { pace },
    );
    const { fromMs } = pace.slowdown!;
    pace.accept(fromMs + 50_000);
    expect(pace.slowdown).not.toBeNull();
    pace.accept(fromMs + 61_000);
    expect(pace.slowdown).toBeNull();
  });
});
