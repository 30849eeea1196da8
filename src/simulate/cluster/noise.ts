/**
 * Noise by coordinates: every random number is a hash of what it belongs to (seed, rank, operator,
 * iteration), never of the order of calls. So a fault changes what it touches and nothing else, and
 * removing it gives back the healthy run bit by bit.
 *
 * Levels at `noise: 1`. Measured: together they give iteration times a robust variation of 1.2 to 2.3 %
 * (three layouts of 16 to 256 GPUs, three seeds, 200 iterations), set to meet the 1.2 % median of the 67
 * healthy series in iterations-megatron-golden; that set's p90 is 3.9 %, so jobs noisier than ours are
 * common. Single iterations that take much longer, too: in the 59 of these series that log at least every
 * tenth iteration, degradations left out, 2.0 % of the points of the median series (p90 6.1 %) lie above 1.15
 * times their level, by 1.44 times in the median of all such points (p90 2.0, p99 3.4); of 817 runs of such
 * points 71 were longer than one. Our own
 * slow-none is no model: its ranks share a GPU and vary by 18 to 34 %.
 * Assumed, for want of data: the parts of that sum (jitter of kernels, common drift), network jitter of
 * 3 % with one operator in 500 congested, a pause of 10 to 30 ms for garbage collection in one iteration
 * of 50 a rank, one fetch in 100 taking ten times as long, ±4 % of compute by sequence length, ±15 % by
 * experts. A site that has data should replace them.
 */

/** 32 bits out of four numbers. */
export function hash(a: number, b: number, c: number, d: number): number {
  let h = Math.imul(a ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(b + 0x165667b1, 0xc2b2ae35);
  h ^= Math.imul(c ^ 0x27d4eb2f, 0x9e3779b1) ^ Math.imul(d + 0x85ebca77, 0x2c1b3c6d);
  h ^= h >>> 15;
  h = Math.imul(h, 0x2c1b3c6d);
  h ^= h >>> 12;
  h = Math.imul(h, 0x297a2d39);
  return (h ^ (h >>> 15)) >>> 0;
}

/** In [0, 1). */
export function uniform(a: number, b: number, c: number, d: number): number {
  return hash(a, b, c, d) / 4294967296;
}

export const COMPUTE_JITTER = 0.012;
const NETWORK_JITTER = 0.03;
const CONGESTED_SHARE = 0.002;
const CONGESTED_FACTOR = 3;
const GC_SHARE = 0.02;
const SLOW_FETCH_SHARE = 0.01;

/** Streams of random numbers: one per purpose, so that none disturbs another. */
export const STREAM = {
  compute: 1,
  network: 2,
  gc: 3,
  load: 4,
  sequence: 5,
  expert: 6,
  drift: 7,
  hang: 8,
  clock: 9,
  spike: 10,
  kernel: 11,
  logs: 11,
  metrics: 12,
  duration: 13,
  hiccup: 14,
  placement: 15,
  site: 16,
  image: 17,
  embedding: 18,
  retry: 19,
} as const;

/** Compute of all ranks together: temperature, power, other load. */
export function commonDrift(seed: number, iteration: number, level: number): number {
  const phase = 2 * Math.PI * uniform(seed, STREAM.drift, 0, 0);
  const slow = Math.sin(iteration / 37 + phase) + 0.6 * Math.sin(iteration / 11 + 2 * phase);
  return 1 + level * (0.01 * slow + 0.03 * (uniform(seed, STREAM.drift, iteration, 1) - 0.5));
}

/** Factor on one transfer. */
export function networkNoise(
  seed: number,
  group: number,
  op: number,
  iteration: number,
  level: number,
): number {
  if (level === 0) return 1;
  const u = uniform(seed ^ STREAM.network, group, op, iteration);
  const congested = u < CONGESTED_SHARE * level ? CONGESTED_FACTOR : 1;
  return (1 + level * NETWORK_JITTER * 3.46 * (u - 0.5)) * congested;
}

/** Longer and shorter sequences: the same for all ranks that work on one micro-batch of one replica. */
export function sequenceFactor(
  seed: number,
  replica: number,
  microBatch: number,
  iteration: number,
  level: number,
): number {
  return level === 0
    ? 1
    : 1 + level * 0.08 * (uniform(seed ^ STREAM.sequence, replica, microBatch, iteration) - 0.5);
}

/** Tiles that an image is cut into, by its resolution (LlamaVision: one to four). */
const MOST_TILES = 4;

/**
 * Compute of a micro-batch with images: 1 on average, in steps of one tile, so that shapes recur. FLARE's first false
 * positive was such a job (§7.3). The same for all ranks that work on it, as with sequences.
 */
export function imageFactor(
  seed: number,
  replica: number,
  microBatch: number,
  iteration: number,
  imbalance: number,
): number {
  if (imbalance === 0) return 1;
  const tiles = 1 + (hash(seed ^ STREAM.image, replica, microBatch, iteration) % MOST_TILES);
  return 1 + imbalance * ((2 * tiles) / (MOST_TILES + 1) - 1);
}

/**
 * CPU time of one lookup in embeddings that stay in host memory; which rows are asked for, and which of
 * them are cached, differs from batch to batch (±25 %) and from run to run (±15 %). Assumed.
 */
export function lookupNs(
  seed: number,
  rank: number,
  microBatch: number,
  iteration: number,
  meanNs: number,
): number {
  if (meanNs === 0) return 0;
  const run = 0.85 + 0.3 * uniform(seed ^ STREAM.embedding, 0, 0, 0);
  return (
    meanNs * run * (0.75 + 0.5 * uniform(seed ^ STREAM.embedding, rank, microBatch, iteration))
  );
}

export function expertFactor(
  seed: number,
  rank: number,
  layer: number,
  iteration: number,
  level: number,
): number {
  return level === 0
    ? 1
    : 1 + level * 0.3 * (uniform(seed ^ STREAM.expert, rank, layer, iteration) - 0.5);
}

/** Garbage collection: the operator at which a rank pauses in this iteration, and for how long; -1 for none. */
export function gcPause(
  seed: number,
  rank: number,
  iteration: number,
  ops: number,
  level: number,
): { op: number; ns: number } | null {
  const u = uniform(seed ^ STREAM.gc, rank, iteration, 0);
  if (u >= GC_SHARE * level) return null;
  return {
    op: hash(seed ^ STREAM.gc, rank, iteration, 1) % ops,
    ns: 1e7 + (2e7 * u) / (GC_SHARE * level),
  };
}

const HICCUP_SHARE = 0.02;
const HICCUP_GOES_ON = 0.09;
const HICCUP_LEAST = 0.2;
const HICCUP_MEAN = 0.35;

/** How much longer than usual an iteration takes because somebody stalls once, as a share of it; mostly 0. */
export function hiccup(seed: number, iteration: number, level: number): number {
  const draw = (k: number, n: number): number => uniform(seed ^ STREAM.hiccup, iteration - n, k, 0);
  const begins = (n: number): boolean => draw(0, n) < HICCUP_SHARE * level;
  const goesOn = iteration > 1 && begins(1) && draw(1, 0) < HICCUP_GOES_ON;
  if (!begins(0) && !goesOn) return 0;
  return HICCUP_LEAST - HICCUP_MEAN * Math.log(1 - draw(2, 0));
}

/** Time of one fetch from a data loader that has its next batch ready, nearly always. */
export function fetchNs(
  seed: number,
  rank: number,
  microBatch: number,
  iteration: number,
  level: number,
): number {
  const u = uniform(seed ^ STREAM.load, rank, microBatch, iteration);
  return 2e5 * (u < SLOW_FETCH_SHARE * level ? 10 : 1);
}
