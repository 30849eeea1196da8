import { expect, test } from "vitest";
import { factOf } from "../../model/facts.ts";
import type { NewFinding } from "../../model/finding.ts";
import type { Job } from "../../model/job.ts";
import { slowDown } from "./slow-down-method.ts";
import { makeSeries } from "../../../test/support/methods/series.ts";
import { trackSeries } from "./track-series.ts";

async function findings(level: (i: number) => number): Promise<NewFinding[]> {
  const iterations = [trackSeries(makeSeries({ level, to: 300 }))];
  const env = { signal: new AbortController().signal, progress: () => undefined };
  const found: NewFinding[] = [];
  for await (const one of slowDown.run({ iterations } as Partial<Job> as Job, env)) found.push(one);
  return found;
}

test("a rise that is no slow-down is told with its size, and accuses nobody", async () => {
  const [even] = await findings((i) => (i <= 150 ? 1000 : 1060));
  expect(even!.says).toContain("no lasting slowdown in 300 iterations");
  expect(factOf(even!, "even-iterations")!.rise).toBeCloseTo(1.06, 2);
  expect(even!.accuses).toEqual([]);
  const [flat] = await findings(() => 1000);
  expect(factOf(flat!, "even-iterations")!.rise).toBeCloseTo(1, 2);
});

test("what came little by little is told so, from where to where and how fast", async () => {
  const [slow] = await findings((i) => 1000 + 2 * Math.min(150, Math.max(0, i - 100)));
  expect(slow!.says).toMatch(
    /^iterations slowed down gradually from iteration \d+ to \d+ and take 1\.\d+ times as long/,
  );
  const { ramp, iteration } = factOf(slow!, "slow-down")!;
  expect(ramp!.msPerIteration).toBeCloseTo(2, 0);
  expect(Math.abs(iteration - 100)).toBeLessThanOrEqual(10);
});
