import { describe, expect, it } from "vitest";
import { seeded } from "../../../base/random.ts";
import { IterationTracker } from "../../../methods/iterations/iteration-tracker.ts";
import { SlowdownDetector, type SlowdownDecision } from "./slowdown-detector.ts";
import { runs } from "../../../../test/support/cases.ts";

/** Durations as the service would count them, with the tracker beside; what was decided, with the iteration. */
function watch(
  durations: readonly number[],
  slowWatch = new SlowdownDetector(),
): (SlowdownDecision & { at: number })[] {
  const tracker = new IterationTracker();
  const ends: number[] = [];
  let endMs = 0;
  return durations.flatMap((durationMs, i) => {
    endMs += durationMs;
    ends.push(endMs);
    const found = tracker.push({ iteration: i, durationMs, between: 0, batch: NaN });
    const shift = found && {
      fromIteration: found.start,
      fromMs: ends[found.start]! - durations[found.start]!,
      beforeMs: found.before,
      afterMs: found.after,
    };
    const decisions = slowWatch.push({
      iteration: i,
      durationMs,
      endMs,
      levelMs: tracker.level,
      shift,
    });
    return decisions.map((decision) => ({ ...decision, at: i }));
  });
}

function noisy(
  levels: readonly (readonly [count: number, ms: number])[],
  noise: number,
  seed = 1,
): number[] {
  const random = seeded(seed);
  return levels.flatMap(([count, ms]) =>
    Array.from({ length: count }, () => ms * (1 + noise * gaussian(random))),
  );
}

/** Nearly normal: the sum of twelve. */
function gaussian(random: () => number): number {
  return Array.from({ length: 12 }, random).reduce((sum, value) => sum + value, -6);
}

describe("SlowdownDetector", () => {
  it("looks into a steady rise of a job whose level wanders, and of which no three iterations are plain", () => {
    for (let seed = 1; seed <= 5; seed++) {
      const wandering = [1000, 1090, 1000, 1090, 1000].map((ms) => [25, ms] as const);
      const durations = noisy([...wandering, [12, 1220]], 0.06, seed);
      const rises = watch(durations).filter(
        (one) => one.do === "localize" && !one.suspicion.intermittent,
      );
      expect(rises.some((one) => one.do === "localize" && one.suspicion.slowFrom >= 120)).toBe(
        true,
      );
    }
  });

  it("ends a slowdown that is over though one iteration after it is a little longer than healthy ones", () => {
    const after = [1050, 1050, 1180, ...Array.from({ length: 100 }, (_, i) => 1058 + (i % 3))];
    const durations = [
      ...noisy(
        [
          [60, 1000],
          [30, 2000],
        ],
        0.003,
      ),
      ...after,
    ];
    const decisions = watch(durations);
    expect(decisions.some((one) => one.do === "suspect")).toBe(true);
    expect(decisions.find((one) => one.do === "recovered")?.at).toBeLessThan(105);
  });

  it("suspects a slow stretch of fast iterations only once it has lasted three seconds", () => {
    for (let seed = 1; seed <= 10; seed++) {
      const short = noisy(
        [
          [200, 90],
          [18, 130],
          [200, 90],
        ],
        0.02,
        seed,
      );
      expect(watch(short).filter((one) => one.do === "suspect")).toEqual([]);
      const long = noisy(
        [
          [200, 90],
          [60, 130],
        ],
        0.02,
        seed,
      );
      const decisions = watch(long);
      const suspected = decisions.filter((one) => one.do === "suspect");
      expect(suspected).toHaveLength(1);
      // 3 s are 23 iterations of 130 ms.
      expect(suspected[0]!.at).toBeGreaterThanOrEqual(222);
      expect(suspected[0]!.at).toBeLessThanOrEqual(226);
      // Searched from the third on, and once more with what is known when it is told.
      const searches = decisions.filter((one) => one.do === "localize");
      expect(searches[0]!.at).toBeLessThanOrEqual(204);
      expect(searches.some((one) => one.isLast && one.at >= suspected[0]!.at)).toBe(true);
    }
  });

  it("looks into a rise of half where iterations vary by a fifth", () => {
    const levels = [
      [90, 250],
      [60, 375],
    ] as const;
    const seeds = Array.from({ length: runs(10, 20) }, (_, seed) => seed + 1);
    const found = seeds.filter((seed) =>
      watch(noisy(levels, 0.2, seed)).some((one) => one.do === "localize" && one.at >= 93),
    );
    expect(found.length).toBeGreaterThanOrEqual(runs(9, 19));
  });

  it("looks into no rise where iterations only vary", () => {
    const durations = noisy([[1000, 1000]], 0.06, 9);
    const rises = watch(durations).filter(
      (one) => one.do === "localize" && !one.suspicion.intermittent,
    );
    expect(rises).toEqual([]);
  });

  it("looks into a plain jump three iterations after it began, before the tracker speaks", () => {
    const decisions = watch(
      noisy(
        [
          [40, 1000],
          [20, 1500],
        ],
        0.01,
      ),
    );
    expect(decisions[0]).toMatchObject({ do: "localize", at: 42, slow: 3 });
    expect(decisions[0]!.suspicion).toMatchObject({ slowFrom: 40, isTentative: true });
    expect(decisions.find((one) => one.do === "suspect")!.suspicion.slowFrom).toBe(40);
  });

  it("says nothing of noise, of single spikes, and of changes that do not matter", () => {
    for (let seed = 1; seed <= runs(3, 20); seed++) {
      const durations = noisy(
        [
          [300, 1000],
          [300, 1030],
        ],
        0.03,
        seed,
      );
      for (let i = 50; i < 600; i += 37) durations[i]! *= 3;
      expect(
        watch(durations).filter(
          (one) => one.do !== "forget" && !(one.do === "localize" && one.suspicion.isTentative),
        ),
      ).toEqual([]);
    }
  });

  it("sees the end, and a second slow-down after it", () => {
    const decisions = watch(
      noisy(
        [
          [40, 1000],
          [15, 1600],
          [30, 1000],
          [15, 1600],
          [20, 1000],
        ],
        0.01,
      ),
    );
    const recovered = decisions.filter((one) => one.do === "recovered");
    expect(recovered.length).toBeGreaterThanOrEqual(1);
    expect(recovered[0]!.at).toBeLessThan(60);
  });

  it("forgets a jump that only it saw and that nobody could explain", () => {
    const slowWatch = new SlowdownDetector();
    const push = (iteration: number, durationMs: number): SlowdownDecision[] =>
      slowWatch.push({
        iteration,
        durationMs,
        endMs: iteration * 1000,
        levelMs: 1000,
        shift: null,
      });
    for (let i = 0; i < 30; i++) push(i, 1000 + (i % 3));
    const decisions = Array.from({ length: 20 }, (_, k) => push(30 + k, 1500)).flat();
    expect(decisions.at(-1)!.do).not.toBe("suspect");
    expect(decisions.some((one) => one.do === "forget")).toBe(true);
    expect(decisions.every((one) => one.do !== "suspect")).toBe(true);
  });

  it("goes on with an incident of before a restart, and counts only what is slow", () => {
    const slowWatch = new SlowdownDetector();
    const suspicion = {
      slowFrom: 100,
      fromMs: 0,
      beforeMs: 1000,
      afterMs: 1500,
      isTentative: false,
    };
    slowWatch.resume(suspicion, false);
    const push = (iteration: number, durationMs: number): SlowdownDecision[] =>
      slowWatch.push({
        iteration,
        durationMs,
        endMs: iteration * 1000,
        levelMs: 1000,
        shift: null,
      });
    // Told again by the agents: healthy ones from before, which are no recovery.
    for (let i = 90; i < 100; i++) expect(push(i, 1000)).toEqual([]);
    expect(push(100, 1500)).toEqual([]);
    expect(push(101, 1500)).toEqual([]);
    expect(push(102, 1500)).toMatchObject([{ do: "localize", slow: 3 }]);
    slowWatch.settle();
    const after = [103, 104, 105, 106, 107, 108].flatMap((i) => push(i, 1000));
    expect(after.map((one) => one.do)).toContain("recovered");
  });

  it("searches what is left of two slowdowns by how slow that is, not by what was fixed", () => {
    const detector = new SlowdownDetector();
    watch(
      noisy(
        [
          [40, 1000],
          [10, 4000],
        ],
        0.005,
      ),
      detector,
    );
    detector.settle();
    const push = (iteration: number): SlowdownDecision[] => {
      const durationMs = 1350 + (iteration % 3);
      const endMs = 80_000 + 1350 * (iteration - 50);
      return detector.push({ iteration, durationMs, endMs, levelMs: 4000, shift: null });
    };
    for (let i = 50; i < 54; i++) push(i);
    detector.beginAgain(50);
    const search = push(54).find((one) => one.do === "localize")!;
    expect(search).toMatchObject({ isAgain: false, suspicion: { slowFrom: 50 } });
    expect(search.suspicion.afterMs).toBeCloseTo(1351, -1);
  });

  it("searches an incident again ever more seldom, unless the job became slower", () => {
    type Search = Extract<SlowdownDecision, { do: "localize" }>;
    const searchesOf = (msAt: (iteration: number) => number): Search[] => {
      const slowWatch = new SlowdownDetector();
      const [slowFrom, fromMs, beforeMs, afterMs] = [1, 0, 1000, 1500];
      slowWatch.resume({ slowFrom, fromMs, beforeMs, afterMs, isTentative: false }, true);
      return Array.from({ length: 1000 }, (_, i) => i + 1).flatMap((iteration) => {
        const durationMs = msAt(iteration);
        const one = { iteration, durationMs, endMs: 1000 * iteration, levelMs: 1000, shift: null };
        return slowWatch.push(one).filter((decision) => decision.do === "localize");
      });
    };
    // Every 20th: 50 searches.
    expect(searchesOf(() => 1500)).toHaveLength(6);
    const slower = (iteration: number): number => Math.min(200, Math.max(0, iteration - 330));
    expect(searchesOf((iteration) => 1500 + slower(iteration))).toHaveLength(7);
    // Too little for the tracker, and at once: somebody else came to it.
    const jump = searchesOf((iteration) => (iteration > 460 ? 1600 : 1500)).slice(5);
    const beside = { slowFrom: 461, beforeMs: 1000, besideMs: 1500, afterMs: 1600 };
    expect(jump[0]).toMatchObject({ isAgain: false, slow: 4, suspicion: beside });
  });

  describe("with iterations that are slow now and then", () => {
    const spiked = (count: number, slow: readonly number[]): number[] => {
      const durations = noisy([[count, 1000]], 0.01);
      for (const i of slow) durations[i]! *= 1.8;
      return durations;
    };

    it("searches that set from the third on, not all since the first", () => {
      const [first, second] = watch(spiked(80, [40, 47, 55, 70]));
      expect(first).toMatchObject({ do: "localize", at: 55, slow: 3, isLast: false });
      expect(first!.suspicion).toMatchObject({
        slowFrom: 40,
        isTentative: true,
        intermittent: { slow: [40, 47, 55], of: 56 },
      });
      expect(first!.suspicion.afterMs / first!.suspicion.beforeMs).toBeCloseTo(1.8, 1);
      expect(second!.suspicion.intermittent!.slow).toEqual([40, 47, 55, 70]);
    });

    it("searches large ones without the small hiccups before, and at once, however often those were searched", () => {
      const durations = spiked(100, [70, 71, 77]);
      for (let i = 20; i < 66; i += 4) durations[i]! *= 1.2;
      const found = watch(durations).filter(({ at }) => at >= 66);
      expect(found.at(-1)).toMatchObject({ do: "localize", at: 77 });
      expect(found.at(-1)!.suspicion.intermittent!.slow).toEqual([70, 71, 77]);
    });

    it("forgets it after a long rest if nobody was found, and calls it over if somebody was", () => {
      const durations = spiked(120, [40, 47, 55]);
      expect(watch(durations).map((one) => one.do)).toEqual(["localize", "forget"]);
      const detector = new SlowdownDetector();
      const until = watch(durations.slice(0, 56), detector);
      expect(until.map((one) => one.do)).toEqual(["localize"]);
      detector.settle();
      const rest = noisy([[60, 1000]], 0.01).flatMap((durationMs, k) =>
        detector.push({
          iteration: 56 + k,
          durationMs,
          endMs: 1000 * (100 + k),
          levelMs: 1000,
          shift: null,
        }),
      );
      expect(rest.map((one) => one.do)).toEqual(["recovered"]);
    });

    it("is over when two later searches no longer come to the suspect, though hiccups go on", () => {
      const detector = new SlowdownDetector();
      watch(spiked(56, [40, 47, 55]), detector);
      detector.settle();
      const decisions: string[] = [];
      for (let i = 56; i < 200; i++) {
        const durationMs = i % 6 === 0 ? 1800 : 1000 + (i % 5);
        for (const one of detector.push({
          iteration: i,
          durationMs,
          endMs: i * 1000,
          levelMs: 1000,
          shift: null,
        })) {
          decisions.push(one.do);
          if (one.do === "localize" && one.isAgain) detector.miss();
        }
      }
      expect(decisions.slice(0, 3)).toEqual(["localize", "localize", "recovered"]);
    });

    /** Each iteration after the first hundred is slow or not; when an incident with a known suspect ended. */
    const endOf = (isSlow: (iteration: number) => boolean, ms: number, until: number): number => {
      const detector = new SlowdownDetector();
      for (let i = 0; i < until; i++) {
        const durationMs = i >= 100 && isSlow(i) ? 1.8 * ms : ms * (1 + 0.001 * (i % 5));
        const decisions = detector.push({
          iteration: i,
          durationMs,
          endMs: ms * i,
          levelMs: ms,
          shift: null,
        });
        if (decisions.some((one) => one.do === "localize")) detector.settle();
        if (decisions.some((one) => one.do === "recovered")) return i;
      }
      return NaN;
    };

    it.each([20, 55, 70, 95])(
      "is over after four usual gaps of %i iterations, however long those are",
      (gap) => {
        const last = 100 + 2 * gap;
        const end = endOf((i) => (i - 100) % gap === 0 && i <= last, 1000, 2000);
        expect(end - last).toBe(4 * gap);
      },
    );

    it("goes on through a rest that is short for people, where iterations take 20 ms", () => {
      const bursts = (i: number): boolean => i <= 1952 && i % 120 < 40 && i % 8 === 0;
      const quietMs = 20 * (endOf(bursts, 20, 4000) - 1952);
      expect(quietMs).toBeGreaterThan(9_500);
      expect(quietMs).toBeLessThan(10_500);
    });

    it("sees a plain jump beside spikes with a known suspect as soon as it is longer than any of them", () => {
      const seenAt = (slow: readonly number[]): number => {
        const detector = new SlowdownDetector();
        for (let i = 0; i < 120; i++) {
          const isSlow = i >= 90 || slow.includes(i);
          const decisions = detector.push({
            iteration: i,
            durationMs: isSlow ? 1800 : 1000 + (i % 5),
            endMs: 1000 * i,
            levelMs: 1000,
            shift: null,
          });
          const search = decisions.find((one) => one.do === "localize");
          if (search && !search.suspicion.intermittent) return i - 90 + 1;
          if (search) detector.settle();
        }
        return NaN;
      };
      expect(seenAt([40, 49, 55, 70])).toBe(5);
      expect(seenAt([40, 41, 55, 70])).toBe(7);
    });

    it("does not take an incident that is over for the first of several", () => {
      const detector = new SlowdownDetector();
      const push = (iteration: number, durationMs: number): SlowdownDecision[] => {
        const decisions = detector.push({
          iteration,
          durationMs,
          endMs: iteration * 1000,
          levelMs: 1000,
          shift: null,
        });
        if (decisions.some((one) => one.do === "localize")) detector.settle();
        return decisions;
      };
      for (let i = 0; i < 40; i++) push(i, 1000 + (i % 3));
      for (let i = 40; i < 50; i++) push(i, 1500);
      const over = Array.from({ length: 40 }, (_, k) => push(50 + k, 1000 + (k % 3))).flat();
      expect(over.map((one) => one.do)).toEqual(["recovered"]);
      expect(push(90, 1500)).toEqual([]);
    });

    it("takes two very slow iterations that come back for one pattern, though the tracker sees a shift in them", () => {
      const detector = new SlowdownDetector();
      const slow = new Set([60, 61, 67, 68, 74, 75]);
      let endMs = 0;
      const decisions = Array.from({ length: 100 }, (_, iteration) => {
        const durationMs = slow.has(iteration) ? 3300 : 1000 + (iteration % 3);
        endMs += durationMs;
        const seen = { fromIteration: 60, fromMs: endMs - 6600, beforeMs: 1000, afterMs: 3300 };
        const shift = iteration === 61 ? seen : null;
        return detector.push({ iteration, durationMs, endMs, levelMs: 1000, shift });
      }).flat();
      const first = decisions.find(({ suspicion }) => suspicion.intermittent);
      expect(first?.suspicion.intermittent?.slow).toEqual([60, 61, 67]);
      // Nobody is told of a slowdown that nobody is found for.
      expect(decisions.filter((one) => one.do === "suspect")).toEqual([]);
    });

    it("stays what it is where several come in a short time, though the tracker sees a shift in them", () => {
      const detector = new SlowdownDetector();
      const done: string[] = [];
      const slow = new Set([40, 48, 52, 60, 61, 64, 65, 66, 67, 68, 69]);
      for (let i = 0; i < 80; i++) {
        const shift = { fromIteration: 60, fromMs: 60_000, beforeMs: 1000, afterMs: 1300 };
        const decisions = detector.push({
          iteration: i,
          durationMs: slow.has(i) ? 1300 : 1000 + (i % 3),
          endMs: (i + 1) * 1000,
          levelMs: 1000,
          shift: i === 67 ? shift : null,
        });
        for (const one of decisions) {
          done.push(one.do);
          if (one.do === "localize") detector.settle();
        }
      }
      expect(done).toContain("localize");
      expect(done).not.toContain("suspect");
      expect(done).not.toContain("recovered");
      expect(detector.suspicion?.intermittent).toBeDefined();
    });

    it("is one slowdown where each stretch is so long that it looks like a lasting one", () => {
      const detector = new SlowdownDetector();
      const done: [number, string][] = [];
      const push = (iteration: number, durationMs: number): void => {
        const endMs = iteration * 1000;
        for (const one of detector.push({
          iteration,
          durationMs,
          endMs,
          levelMs: 1000,
          shift: null,
        })) {
          done.push([iteration, one.do]);
          if (one.do === "localize") detector.settle();
        }
      };
      for (let i = 0; i < 40; i++) push(i, 1000 + (i % 3));
      for (let i = 40; i < 82; i++) push(i, (i - 40) % 7 < 3 ? 1500 : 1000 + (i % 3));
      expect(done.some(([, what]) => what === "localize")).toBe(true);
      expect(done.some(([, what]) => what === "recovered")).toBe(false);
      for (let i = 82; i < 130; i++) push(i, 1000 + (i % 3));
      expect(done.filter(([, what]) => what === "recovered")).toHaveLength(1);
    });

    it("takes short stretches that come back for one pattern, and a long one for a jump", () => {
      const durations = noisy([[100, 1000]], 0.01);
      for (const from of [40, 50, 60]) for (let k = 0; k < 3; k++) durations[from + k]! *= 1.5;
      const sets = watch(durations).flatMap(({ suspicion }) => suspicion.intermittent ?? []);
      expect(sets.at(-1)!.slow).toEqual([40, 41, 42, 50, 51, 52, 60, 61]);
      for (let i = 60; i < 100; i++) durations[i] = 1500;
      const last = watch(durations).at(-1)!;
      expect(last.suspicion.intermittent).toBeUndefined();
      expect(last.suspicion.slowFrom).toBe(60);
    });
  });
});
