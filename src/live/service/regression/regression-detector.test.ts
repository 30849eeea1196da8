import { describe, expect, it } from "vitest";
import { few, runs } from "../../../../test/support/cases.ts";
import {
  INTERVAL_MS,
  simulatedWork,
  type SimulatedRegression,
  type SimulatedWork,
} from "../../../../test/support/live/simulated-work.ts";
import type { FoundRegression } from "../../../model/regression.ts";
import { liveJob } from "../../../ingest/live-job.ts";
import { regressionVerdict } from "../../../pipeline/live-regression.ts";
import { RegressionDetector, type WorkWindow } from "./regression-detector.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

interface Watched {
  readonly found: readonly (FoundRegression & { readonly atMs: number })[];
  readonly resolvedMs: readonly number[];
  readonly work: string | null;
  readonly healthy: readonly WorkWindow[];
}

/** `before`: healthy windows of earlier runs, by what they did. */
function watch(
  work: SimulatedWork,
  forMs: number,
  before: ReadonlyMap<string, readonly WorkWindow[]> = new Map(),
): Watched {
  const next = simulatedWork(work);
  const detector = new RegressionDetector();
  const found: (FoundRegression & { atMs: number })[] = [];
  const resolvedMs: number[] = [];
  let isOpen = false;
  detector.tick(0, isOpen);
  for (let fromMs = 0; fromMs < forMs; fromMs += INTERVAL_MS) {
    const nowMs = fromMs + INTERVAL_MS;
    for (const [agent, summary] of next(fromMs)) {
      detector.take(agent, summary, nowMs);
      // Beats repeat it.
      detector.take(agent, summary, nowMs);
    }
    const decision = detector.tick(nowMs, isOpen);
    if (decision?.do === "recall") detector.recall(before.get(decision.work) ?? []);
    if (decision?.do === "open") found.push({ ...decision.found, atMs: nowMs });
    if (decision?.do === "resolve") resolvedMs.push(nowMs);
    isOpen = (isOpen || decision?.do === "open") && decision?.do !== "resolve";
  }
  return { found, resolvedMs, work: detector.work, healthy: detector.healthy };
}

const PARTS = [
  "dataloader",
  "garbage-collection",
  "synchronization",
  "products",
  "own",
  "transfers",
] as const;
const CAUSE = {
  dataloader: "dataloader",
  "garbage-collection": "garbage-collection",
  synchronization: "synchronization",
  products: "slow-kernel",
  own: "slow-kernel",
  transfers: "network-slow",
} as const;
const COSTS = [0.06, 0.1, 0.25];

function regressions(): { part: SimulatedRegression["part"]; cost: number; seed: number }[] {
  const all = PARTS.flatMap((part) => COSTS.map((cost) => ({ part, cost })));
  return Array.from({ length: runs(12, 126) }, (_, k) => ({
    ...all[(7 * k) % all.length]!,
    seed: 1000 + k,
  }));
}

describe("regressions of a running job", () => {
  it("are found within three minutes, with their cause", () => {
    let right = 0;
    const all = regressions();
    for (const { part, cost, seed } of all) {
      const fromMs = 20 * MINUTE;
      const { found } = watch({ seed, regression: { part, cost, fromMs } }, 26 * MINUTE);
      const [first] = found;
      if (first?.cause === CAUSE[part] && first.atMs - fromMs <= 3 * MINUTE) right++;
    }
    expect(right / all.length).toBeGreaterThanOrEqual(0.9);
  }, 120_000);

  it("are not claimed of healthy jobs", () => {
    const jobs = runs(3, 50);
    let claimed = 0;
    for (let k = 0; k < jobs; k++) claimed += watch({ seed: 5000 + k }, HOUR).found.length;
    expect(claimed).toBe(0);
  }, 240_000);

  it("are not claimed where one machine of several is slow: that is a device, not the code", () => {
    for (const part of few(PARTS, 3)) {
      const regression = { part, cost: 0.2, fromMs: 20 * MINUTE, machines: 1 };
      expect(watch({ seed: 77, machines: 8, regression }, 30 * MINUTE).found).toEqual([]);
    }
  });

  it("are over when iterations are as they were", () => {
    const regression = {
      part: "dataloader",
      cost: 0.2,
      fromMs: 20 * MINUTE,
      toMs: 30 * MINUTE,
    } as const;
    const { found, resolvedMs } = watch({ seed: 3, regression }, HOUR);
    expect(found).toHaveLength(1);
    expect(resolvedMs).toHaveLength(1);
    expect(resolvedMs[0]! - regression.toMs).toBeLessThanOrEqual(2 * MINUTE);
  });

  it("from the first step on are found by what earlier runs of the same work were like", () => {
    const seed = 11;
    const { work, healthy } = watch({ seed, stepMs: 1500 }, 30 * MINUTE);
    expect(work).toBe("first-16 last-16");
    const before = new Map([[work!, healthy]]);
    const regression = { part: "synchronization", cost: 0.1, fromMs: 0 } as const;
    const again = { seed, stepMs: 1500, regression };
    expect(watch(again, 10 * MINUTE, before).found[0]?.cause).toBe("synchronization");
    // Another layout's windows say nothing.
    expect(watch({ ...again, ranks: 8 }, 10 * MINUTE, before).found).toEqual([]);
    expect(watch({ seed: 12, stepMs: 1500 }, 30 * MINUTE, before).found).toEqual([]);
  });

  it("are not claimed where sequences become longer: that is other work, which is learnt anew", () => {
    const sequences = { times: 1.4, fromMs: 20 * MINUTE };
    for (const seed of few([21, 22, 23, 24], 2))
      expect(watch({ seed, sequences }, 40 * MINUTE).found).toEqual([]);
    const regression = { part: "products", cost: 0.2, fromMs: 40 * MINUTE } as const;
    const { found } = watch({ seed: 21, sequences, regression }, 46 * MINUTE);
    expect(found[0]?.cause).toBe("slow-kernel");
    expect(found[0]!.atMs - regression.fromMs).toBeLessThanOrEqual(3 * MINUTE);
  });

  it("are over, too, when the job does other work", () => {
    const regression = { part: "dataloader", cost: 0.2, fromMs: 20 * MINUTE } as const;
    const sequences = { times: 2, fromMs: 30 * MINUTE };
    const { found, resolvedMs } = watch({ seed: 3, regression, sequences }, 40 * MINUTE);
    expect([found.length, resolvedMs.length]).toEqual([1, 1]);
  });

  it("are told with less certainty where no product shows that the work is the same", () => {
    const sequences = { times: 1.4, fromMs: 20 * MINUTE };
    const [found] = watch({ seed: 21, sequences, hasShapes: false }, 30 * MINUTE).found;
    expect(found?.isSameWork).toBe(false);
    const own = { part: "own", cost: 0.3, fromMs: 20 * MINUTE } as const;
    expect(watch({ seed: 21, regression: own }, 30 * MINUTE).found[0]?.isSameWork).toBe(true);
    const { job } = liveJob("job", 8, [], null);
    const verdict = regressionVerdict(job, found!);
    expect(verdict.confidence).toBeLessThan(0.6);
    expect(verdict.missing.join()).toContain("longer sequences");
  });
});
