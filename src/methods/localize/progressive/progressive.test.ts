import { describe, expect, test } from "vitest";
import { drawSmallCase } from "../../../../eval/localize/small-jobs.ts";
import { keepJob, sourceOf } from "../../../../eval/localize/kept-job.ts";
import { split } from "../../../../eval/localize/ours.ts";
import { NORMAL, SLOW } from "../../../../eval/localize/cases.ts";
import { searchProgressively } from "./progressive.ts";
import { sampled } from "./rank-waits.ts";
import { RECORD_BYTES } from "./source.ts";
import { few } from "../../../../test/support/cases.ts";

function search(gpus: number, fault: string, seed: number, options = {}) {
  const job = keepJob(drawSmallCase(gpus, fault, seed));
  const source = sourceOf(job);
  const given = split(job, NORMAL, SLOW);
  const found = searchProgressively(source, job.groups, given, job.simulation.topology, options);
  return { job, source, given, found };
}

describe("the progressive search", () => {
  test.each([
    [32, "gpu-slow:rank=13:from=11:severity=2.5", 1, 13],
    [64, "gpu-slow:rank=50:from=11:severity=2", 2, 50],
    [128, "cpu-stall:rank=77:from=11:severity=6", 3, 77],
    [128, "gpu-slow:rank=0:from=11:severity=2", 4, 0],
  ])("comes to the slow rank of %i: %s", (gpus, fault, seed, rank) => {
    const { found } = search(gpus, fault, seed);
    expect(found.culprit).toMatchObject({ cause: "compute", ranks: [rank], isSignificant: true });
  });

  test.each([
    [128, "network-slow:rank=77:from=11:severity=8", 5, "nic of rank 77"],
    [128, "network-slow:link=9-41:from=11:severity=30", 6, "link 9–41"],
  ])("names the device of %i: %s", (gpus, fault, seed, name) => {
    const { found } = search(gpus, fault, seed);
    expect(found.culprit).toMatchObject({ cause: "network", device: { name } });
  });

  test("comes to the same with three pivots and samples as from everywhere with everything read", () => {
    const different: string[] = [];
    for (const seed of few(
      Array.from({ length: 12 }, (_, i) => 10 + i),
      4,
    )) {
      const gpus = [32, 64, 128][seed % 3]!;
      const rank = (seed * 37) % gpus;
      const fault = `${seed % 2 === 0 ? "gpu-slow" : "cpu-stall"}:rank=${rank}:from=11:severity=5`;
      const { job, given, found } = search(gpus, fault, seed);
      const pivots = Array.from({ length: gpus }, (_, pivot) => pivot);
      const whole = searchProgressively(sourceOf(job), job.groups, given, job.simulation.topology, {
        pivots,
        isWhole: true,
      });
      const [few, all] = [found.culprit, whole.culprit];
      if (`${few?.cause} ${few?.ranks.join()}` !== `${all?.cause} ${all?.ranks.join()}`)
        different.push(`seed ${seed}: ${few?.ranks.join()} against ${all?.ranks.join()}`);
    }
    expect(different).toEqual([]);
  });

  test("accuses nobody in a healthy job", () => {
    for (let seed = 40; seed < 60; seed++)
      expect(search(64, "", seed).found.culprit?.isSignificant ?? false).toBe(false);
  });

  test("reads ranks on the path, not the job", () => {
    const { source, found } = search(128, "gpu-slow:rank=50:from=11:severity=2", 7);
    expect(found.fetched).toBeLessThan(20);
    expect(found.bytes).toBe(source.bytes);
    expect(source.bytes % RECORD_BYTES).toBe(0);
    expect(source.bytes).toBeLessThan(0.2 * source.totalBytes);
  });
});

test("a sample has no doubles, stays in range and does not keep step with layers", () => {
  for (const count of [17, 64, 100, 128, 1000]) {
    const places = sampled(count, 16);
    expect(new Set(places).size).toBe(places.length);
    expect(places.length).toBeGreaterThan(12);
    expect(Math.max(...places)).toBeLessThan(count);
    expect(new Set(places.map((place) => place % 4)).size).toBeGreaterThan(2);
  }
  expect(sampled(3, 16)).toEqual([0, 1, 2]);
});
