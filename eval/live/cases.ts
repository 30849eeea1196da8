/** What the live evaluations share: jobs of 32 to 1,024 GPUs in several layouts, and whether a suspect is the fault. */
import { pick, seeded } from "../../src/base/random.ts";
import type { Suspect } from "../../src/model/verdict.ts";
import { completeSpec, type ClusterSpec } from "../../src/simulate/cluster/spec.ts";

const LAYOUTS = [
  { gpus: 32, tp: 4, pp: 2 },
  { gpus: 64, tp: 2, pp: 4 },
  { gpus: 64, tp: 8, pp: 1 },
  { gpus: 128, tp: 8, pp: 4 },
  { gpus: 256, tp: 4, pp: 4 },
  { gpus: 512, tp: 8, pp: 2 },
  { gpus: 1024, tp: 8, pp: 4 },
];

export function specOf(seed: number): ClusterSpec {
  const random = seeded(seed);
  const sizes = { hidden: pick(random, [4096, 8192]), sequence: pick(random, [4096, 8192]) };
  return completeSpec({
    ...pick(random, LAYOUTS),
    ...sizes,
    microBatches: pick(random, [4, 8]),
    layersPerStage: pick(random, [1, 2]),
    sharesByFlops: true,
    seed,
    iterations: Number.MAX_SAFE_INTEGER,
  });
}

export function isPlace(suspect: Suspect | undefined, fault: string): boolean {
  const [, link] = /link=([\d-]+)/.exec(fault) ?? [];
  const [, rank] = /rank=(\d+)/.exec(fault) ?? [];
  const ranks = suspect?.ranks ?? [];
  if (link === undefined) return ranks.length === 1 && ranks[0] === Number(rank);
  return ranks.length === 2 && link.split("-").every((end) => ranks.includes(Number(end)));
}

export function covers(suspect: Suspect | undefined, fault: string): boolean {
  const [, ends = ""] = /(?:link|rank)=([\d-]+)/.exec(fault) ?? [];
  return ends.split("-").every((end) => suspect?.ranks.includes(Number(end)));
}

export function share(count: number, of: number): string {
  // Wilson's interval.
  const z = 1.96;
  const p = count / of;
  const middle = (p + (z * z) / (2 * of)) / (1 + (z * z) / of);
  const half = (z * Math.sqrt((p * (1 - p)) / of + (z * z) / (4 * of * of))) / (1 + (z * z) / of);
  return `${count} of ${of} (95 %: ${(100 * (middle - half)).toFixed(0)} to ${(100 * (middle + half)).toFixed(0)} %)`;
}
