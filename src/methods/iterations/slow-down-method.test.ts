import { expect, test } from "vitest";
import { factOf } from "../../model/facts.ts";
import type { NewFinding } from "../../model/finding.ts";
import type { Job } from "../../model/job.ts";
import { slowDown } from "./slow-down-method.ts";
import { makeSeries } from "../../../test/support/methods/series.ts";
import { trackSeries } from "./track-series.ts";

async function findings(level: (i: number) => number, to = 300): Promise<NewFinding[]> {
  const iterations = [trackSeries(makeSeries({ level, to }))];
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

test("a short series that rises once says since when, and a healthy one does not", async () => {
  // As the log of a simulated job of 512 GPUs had them: a hiccup in front, and a GPU that is slow from iteration 6 on.
  const took = [150, 162, 142, 144, 144, 167, 164, 165, 182, 161, 164, 164, 171, 160, 169, 165];
  const [risen] = await findings((i) => took[i - 1] ?? 164, 20);
  expect(risen!.says).toContain("times as long since about iteration 6");
  expect(factOf(risen!, "even-iterations")!.riseFrom).toBe(6);
  const [even] = await findings((i) => 1000 + 60 * Math.sin(i * 2.4), 20);
  expect(even!.says).toContain("no lasting slowdown in");
});

test.each([
  [5, 1.7],
  [9, 1.25],
])("a short series with a plain step in iteration %i is a slowdown", async (from, ratio) => {
  const level = (i: number): number => (i < from ? 330 : 330 * ratio) + 4 * Math.sin(7 * i);
  const [slow] = await findings(level, 20);
  const fact = factOf(slow!, "slow-down")!;
  expect(fact).toMatchObject({ iteration: from, until: null });
  expect(fact.ratio).toBeCloseTo(ratio, 1);
  expect(slow!.weight).toBeGreaterThanOrEqual(0.6);
});

test("a slow stretch that ended is told as past", async () => {
  const found = await findings((i) => (i >= 100 && i < 200 ? 1500 : 1000));
  expect(found[0]!.says).toMatch(
    /^iterations took 1\.5\d times as long from iteration 100 .* until iteration (?:199|200)/,
  );
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
