/** The judge on kept jobs small enough for a test: who, and which device. */
import { describe, expect, test } from "vitest";
import { few } from "../../test/support/cases.ts";
import { NORMAL, SLOW } from "./cases.ts";
import { keepJob } from "./kept-job.ts";
import { ours } from "./ours.ts";
import { drawSmallCase } from "./small-jobs.ts";

const asked = (gpus: number, fault: string, seed: number) =>
  ours(keepJob(drawSmallCase(gpus, fault, seed)), [...NORMAL, ...SLOW]);

describe("the judge, with durations alone", () => {
  test.each(
    few(
      [
        [32, "gpu-slow:rank=13:from=11:severity=2.5", 1, 13],
        [64, "gpu-slow:rank=50:from=11:severity=2", 2, 50],
        [128, "cpu-stall:rank=77:from=11:severity=6", 3, 77],
        [128, "gpu-slow:rank=0:from=11:severity=2", 4, 0],
      ] as const,
      2,
    ),
  )("comes to the slow rank of %i: %s", (gpus, fault, seed, rank) => {
    expect(asked(gpus, fault, seed)).toMatchObject({ cause: "compute", ranks: [rank] });
  });

  test.each([
    [128, "network-slow:rank=77:from=11:severity=8", 5, "nic of rank 77"],
    [128, "network-slow:link=9-41:from=11:severity=30", 6, "link 9–41"],
  ] as const)("names the device of %i: %s", (gpus, fault, seed, name) => {
    expect(asked(gpus, fault, seed)).toMatchObject({ cause: "network", name });
  });

  test("accuses nobody in a healthy job", () => {
    for (const seed of few([40, 41, 42, 43, 44, 45, 46, 47], 4))
      expect(asked(64, "", seed).ranks).toEqual([]);
  });

  test("needs the operators of the named rank's groups, not the job's", () => {
    const { share } = asked(128, "gpu-slow:rank=50:from=11:severity=2", 7);
    expect(share).toBeGreaterThan(0);
    expect(share).toBeLessThan(0.2);
  });
});
