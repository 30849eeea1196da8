/** Jobs of 64 to 2,048 GPUs in the shapes that people train in, with iterations of seconds. */
import { pick, type Random } from "../../../src/base/random.ts";
import { quietIterationNs } from "../../../src/simulate/cluster/costs.ts";
import { completeSpec, type ClusterSpec } from "../../../src/simulate/cluster/spec.ts";

/** GPUs → of a hundred jobs: small ones are common, and a large one takes as long to write as ten small ones. */
export const SIZE_SHARES = { 64: 40, 128: 26, 256: 16, 512: 9, 1024: 5, 2048: 4 } as const;

/** tp and pp; the rest is data parallel. */
const SHAPES: readonly (readonly [tp: number, pp: number])[] = [
  [2, 2],
  [4, 1],
  [4, 2],
  [4, 4],
  [8, 1],
  [8, 2],
  [8, 4],
  [8, 8],
];

/** Log-uniform. */
export function magnitude(random: Random, least: number, most: number): number {
  return least * (most / least) ** random();
}

export function within(random: Random, least: number, most: number): number {
  return least + (most - least) * random();
}

/**
 * Few layers of a wide model stand for many of a usual one: as many parameters and as much time a GPU, so that
 * gradients weigh against compute as they do in the field, with few records.
 */
export function drawShape(seed: number, gpus: number, random: Random): ClusterSpec {
  const fitting = SHAPES.filter(([tp, pp]) => gpus / (tp * pp) >= 2 && gpus % (tp * pp) === 0);
  const [tp, pp] = pick(random, fitting);
  const isLarge = gpus > 512;
  const draft = {
    name: pick(random, ["llama-70b", "gpt-175b", "moe-8x22b-dense", "pretrain-7"]),
    gpus,
    tp,
    pp,
    microBatches: Math.max(pp, pick(random, isLarge ? [2, 4] : [2, 4, 8])),
    schedule: pick(random, ["1f1b", "1f1b", "gpipe"] as const),
    layersPerStage: pick(random, isLarge ? [1, 2] : [2, 3]),
    hidden: pick(random, [12_288, 16_384, 20_480]),
    sequence: 8192,
    sequenceParallel: !isLarge && random() < 0.5,
    overlapGradients: random() < 0.7,
    machinesPerLeaf: pick(random, [4, 8, 16]),
    noise: pick(random, [0.5, 1, 1, 1.5]),
    seed: seed % 2 ** 32,
    // Some day of 2026.
    epochNs:
      1_767_225_600_000_000_000n + BigInt(Math.floor(random() * 300 * 86_400)) * 1_000_000_000n,
  };
  // Holmes' job took 8 to 9 s an iteration (appendix B); smaller jobs are mostly quicker.
  const wantedS = magnitude(random, isLarge ? 6 : 3, isLarge ? 12 : 8);
  // Attention grows with the square, so that long sequences take longer than wanted.
  const takesS = quietIterationNs(completeSpec(draft), []) / 1e9;
  const scale = 2 ** Math.max(-2, Math.round(Math.log2(wantedS / takesS)));
  const sequence = 8192 * scale;
  const iterationS = takesS * scale;
  const lengthS = within(random, 900, 1500);
  return completeSpec({
    ...draft,
    sequence,
    iterations: Math.max(40, Math.round(lengthS / iterationS)),
  });
}
