/** Whether a rank is fixed while others are slow: figures of a rehearsal with three faults, 32 ranks, four stages. */
import { expect, it } from "vitest";
import { jobOf, pointsOf } from "../../../../test/support/live/messages.ts";
import type { Suspect } from "../../../model/verdict.ts";
import { JobRun } from "../job/job-run.ts";
import { culpritLevel, healthyTimes, type HealthyTimes, isBack } from "./culprit-level.ts";

const HEALTHY_MS = 508;
const SUSPECT: Suspect = {
  type: "rank",
  ranks: [1],
  machine: null,
  name: null,
  link: null,
  cause: "gpu-slow",
  score: 0.9,
  why: "",
  evidence: [],
};

class Job {
  readonly run = new JobRun({ ...jobOf("job", [0, 1]), worldSize: 2 }, null);
  #iteration = 0;
  #nowMs = 1e12;

  constructor() {
    this.run.take("a", "m", { ...jobOf("job", [0, 1]), worldSize: 2 }, { has: () => true });
  }

  /** What an iteration takes, and rank 1 outside communication. */
  iterate(count: number, ms: number, ownMs: number): number {
    const first = this.#iteration + 1;
    for (let k = 0; k < count; k++) {
      this.#iteration++;
      this.#nowMs += ms;
      const all = (value: number): Float32Array => new Float32Array(2).fill(value);
      this.run.addPoints(
        "a",
        {
          ...pointsOf(2),
          run: this.run.run,
          iteration: new Float64Array(2).fill(this.#iteration),
          endMs: new Float64Array(2).fill(this.#nowMs),
          durationMs: all(ms),
          collectiveMs: Float32Array.of(ms - 300, ms - ownMs),
          sendMs: all(0),
          recvMs: all(0),
        },
        this.#nowMs,
      );
      this.run.count(this.#nowMs);
    }
    return first;
  }

  isBack(
    from: number,
    healthy: HealthyTimes | null = null,
  ): (ms: number, ownMs: number) => boolean {
    const level = culpritLevel(this.run, SUSPECT, from, healthy)!;
    expect(level.isUp).toBe(true);
    return (ms, ownMs) => {
      this.iterate(4, ms, ownMs);
      return isBack(this.run, SUSPECT, level, HEALTHY_MS, 4, true);
    };
  }
}

it("sees that a rank is fixed which from then on only waits for another, and not one that still works", () => {
  const job = new Job();
  job.iterate(20, HEALTHY_MS, 344);
  const isBackWhen = job.isBack(job.iterate(20, 869, 718));
  // Others are slow as well: it waits more, and is slow itself.
  expect(isBackWhen(992, 674)).toBe(false);
  expect(isBackWhen(1136, 618)).toBe(false);
  expect(isBackWhen(1088, -12)).toBe(true);
  // Whoever waits for somebody four times slower shows nothing of its own.
  expect(isBackWhen(2500, -12)).toBe(false);
});

it("sees that a rank is fixed whose time before was that of one who waits", () => {
  const job = new Job();
  job.iterate(20, HEALTHY_MS, 205);
  const healthy = healthyTimes(job.run, job.iterate(20, 869, -92), HEALTHY_MS, null);
  const isBackWhen = job.isBack(job.iterate(20, 995, 796), healthy);
  expect(isBackWhen(1140, 810)).toBe(false);
  expect(isBackWhen(869, 600)).toBe(false);
  expect(isBackWhen(620, 600)).toBe(false);
  // Less than half of what it was slower by, and slow all the same.
  expect(isBackWhen(620, 340)).toBe(false);
  expect(isBackWhen(620, 205)).toBe(true);
});
