import { expect, test } from "vitest";
import { factOf } from "../../model/facts.ts";
import type { NewFinding } from "../../model/finding.ts";
import type { Job } from "../../model/job.ts";
import { STARTED } from "../../model/operators.ts";
import { slowDown } from "./slow-down-method.ts";
import { makeSeries } from "../../../test/support/methods/series.ts";
import { trackSeries } from "./track-series.ts";

async function findings(
  level: (i: number) => number,
  to = 300,
  dumps: ReadonlyMap<number, unknown> = new Map(),
): Promise<NewFinding[]> {
  const iterations = [trackSeries(makeSeries({ level, to }))];
  const env = { signal: new AbortController().signal, progress: () => undefined };
  const found: NewFinding[] = [];
  const job = { iterations, dumps } as Partial<Job> as Job;
  for await (const one of slowDown.run(job, env)) found.push(one);
  return found;
}

/** A dump that ends in an operator that nobody completed: the job stopped. */
const STOPPED = new Map([
  [
    0,
    {
      dump: {
        epochNs: 0n,
        ops: {
          count: 1,
          state: Uint8Array.of(STARTED),
          createdNs: Float64Array.of(0),
          completedNs: Float64Array.of(NaN),
        },
      },
    },
  ],
]);

test("of a job that stopped, no iteration takes longer any more", async () => {
  const [plain] = await findings((i) => (i < 9 ? 330 : 660), 20, STOPPED);
  expect(plain!.says).toMatch(/^iterations took 1\.99 times as long from iteration 9 /);
  expect(plain!.says).toContain("until the job stopped");
  const [long] = await findings((i) => (i < 200 ? 1000 : 1500), 300, STOPPED);
  expect(long!.says).toMatch(/^iterations took 1\.5\d times as long from iteration 200 /);
  expect(long!.says).toContain("until the job stopped");
});

test("of a job that stopped, spikes count only if they came until then", async () => {
  const told = async (spikeAt: number): Promise<string> =>
    (await findings((i) => (i === spikeAt ? 3000 : 1000), 300, STOPPED))
      .map(({ says }) => says)
      .join();
  expect(await told(150)).not.toContain("spike");
  expect(await told(297)).toContain("1 spike in the iteration times");
});

test("of a job that stopped, a slow stretch that was over weighs little", async () => {
  const level = (i: number): number => (i >= 100 && i < 200 ? 1500 : 1000);
  const [[running], [stopped]] = [await findings(level), await findings(level, 300, STOPPED)];
  expect(stopped!.says).toContain("until iteration");
  expect(stopped!.weight).toBeLessThan(0.5 * running!.weight);
});

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
