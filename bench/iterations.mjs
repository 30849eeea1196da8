/**
 * What following iteration times costs: `npm run bench:iterations`. Figures of one run on one machine; the
 * targets are the issue's: 20 µs a point at 20,000 points, 10,000 series fed at one point a second within a
 * fifth of a core, a period of 5,000 calls in 100,000 within 200 ms.
 */
import { performance } from "node:perf_hooks";
import { seeded } from "../dist/base/random.js";
import { Bocpd } from "../dist/maths/bocpd.js";
import { findPeriod } from "../dist/maths/period.js";
import { IterationTracker } from "../dist/methods/iterations/iteration-tracker.js";

const random = seeded(1);
const gaussian = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());

/** Levels that change every 2,500 points, spikes, and noise. */
function series(points, noise) {
  return Float64Array.from({ length: points }, (_, i) => {
    const level = 1000 * (Math.floor(i / 2500) % 2 === 0 ? 1 : 1.4);
    return level * Math.exp(noise * gaussian()) * (random() < 0.02 ? 1.5 : 1);
  });
}

function best(runs, work) {
  let least = Infinity;
  for (let run = 0; run < runs; run++) {
    const started = performance.now();
    work();
    least = Math.min(least, performance.now() - started);
  }
  return least;
}

function follow(values) {
  const tracker = new IterationTracker();
  let changes = 0;
  for (let i = 0; i < values.length; i++) {
    const point = { iteration: i + 1, durationMs: values[i], between: 0, batch: NaN };
    if (tracker.push(point)) changes++;
  }
  return changes;
}

console.log("| what | measured | target |\n|---|---|---|");
for (const noise of [0.01, 0.05, 0.2]) {
  const values = series(20_000, noise);
  let changes = 0;
  const ms = best(3, () => (changes = follow(values)));
  console.log(
    `| tracker, 20,000 points, noise ${100 * noise} % (${changes} changes) | ${((1000 * ms) / values.length).toFixed(2)} µs a point | 20 µs |`,
  );
}
{
  const values = series(20_000, 0.05);
  const run = (prune) =>
    best(1, () => {
      const prior = { mean: Math.log(1000), kappa: 0.01, alpha: 2, beta: 0.005 };
      const bocpd = new Bocpd({ lambda: 250, prior, prune });
      for (const value of values.subarray(0, 4000)) bocpd.push(Math.log(value));
    });
  const pruned = run(1e-4);
  console.log(
    `| change-point detector alone, 4,000 points, pruned / not | ${(pruned / 4).toFixed(2)} / ${(run(0) / 4).toFixed(0)} µs a point | |`,
  );
}
{
  // 10,000 series a second: sixty seconds' worth, with the memory they take.
  const count = 10_000;
  const before = process.memoryUsage().heapUsed;
  const trackers = Array.from({ length: count }, () => new IterationTracker());
  const values = series(1000, 0.02);
  for (let i = 0; i < 300; i++)
    for (let k = 0; k < count; k++) push(trackers[k], i, values[(i + 7 * k) % 1000]);
  const cpu = process.cpuUsage();
  for (let i = 300; i < 360; i++)
    for (let k = 0; k < count; k++) push(trackers[k], i, values[(i + 7 * k) % 1000]);
  const used = process.cpuUsage(cpu);
  const share = (used.user + used.system) / 60e6;
  const memory = (process.memoryUsage().heapUsed - before) / count / 1024;
  console.log(
    `| 10,000 series at a point a second (after 300 points each) | ${(100 * share).toFixed(1)} % of a core, ${memory.toFixed(0)} kB a series | 20 % |`,
  );
}
function push(tracker, i, durationMs) {
  tracker.push({ iteration: i + 1, durationMs, between: 0, batch: NaN });
}
{
  const period = 5000;
  // 250 micro-batches of 19 calls and 250 calls of gradients, after an initialisation of its own.
  const calls = Int32Array.from({ length: 100_000 }, (_, i) => {
    if (i < 300) return 100 + Math.floor(random() * 50);
    const at = i % period;
    return at < 4750 ? (at % 19) % 7 : 10 + (at % 11);
  });
  let found = 0;
  const ms = best(3, () => (found = findPeriod(calls)?.level.period ?? 0));
  console.log(
    `| period of ${period} in 100,000 calls: found ${found} | ${ms.toFixed(0)} ms | 200 ms |`,
  );
}
