/** In which order bad slots are placed (`insert.ts`): the hardest first, but what is hard depends on the job. */
import { randomInt, seeded } from "../../base/random.ts";
import type { JobTables } from "./cost-model.ts";

const SHUFFLES = 6;

/** Who does most harm first; who computes slowly; who has the worst network; some by chance. */
export function ordersOf(job: JobTables, bad: readonly number[]): number[][] {
  const passMs = mean(job.stageMs) * mean(job.microBatches);
  const gradientMs = mean(job.gradientMs);
  const compute = (slot: number): number => (job.compute[slot]! - 1) * passMs;
  const network = (slot: number): number => {
    let worst = job.network[slot]! - 1;
    for (let i = job.links.from[slot]!; i < job.links.from[slot + 1]!; i++)
      worst = Math.max(worst, job.links.factor[job.links.of[i]!]! - 1);
    return worst * gradientMs;
  };
  const by = (harm: (slot: number) => number): number[] => {
    const harms = new Map(bad.map((slot) => [slot, harm(slot)]));
    return [...bad].sort((a, b) => harms.get(b)! - harms.get(a)! || a - b);
  };
  const large = passMs + gradientMs;
  const orders = [
    by((slot) => compute(slot) + network(slot)),
    by((slot) => compute(slot) * large + network(slot)),
    by((slot) => compute(slot) + network(slot) * large),
  ];
  const random = seeded(1);
  for (let i = 0; i < SHUFFLES; i++) orders.push(shuffled(bad, random));
  return orders;
}

const mean = (values: Float64Array): number =>
  values.reduce((sum, v) => sum + v, 0) / values.length;

function shuffled(values: readonly number[], random: () => number): number[] {
  const out = [...values];
  for (let i = out.length - 1; i > 0; i--) {
    const j = randomInt(random, i + 1);
    [out[i], out[j]] = [out[j]!, out[i]!];
  }
  return out;
}
