/**
 * What a machine's ranks spent their iterations on, over some seconds: small enough to travel all the time, so that a job
 * whose code became slower is noticed without traces (FLARE §5.2).
 */

/** What is measured of each iteration of each rank, in milliseconds. */
export const WORK_PARTS = [
  "step",
  "dataloader",
  "garbage-collection",
  "synchronization",
  /** Outside communication. */
  "own",
  /** From the CPU's call of a collective to its start on the GPU, the median: a CPU that is ahead of its GPU has a long one. */
  "issue-latency",
] as const;
export type WorkPart = (typeof WORK_PARTS)[number];

/** Counts by size, sparse and ascending: a bucket is 2 % wide, exact enough for a regression of a few per cent. */
export interface Histogram {
  readonly bucket: readonly number[];
  readonly count: readonly number[];
}

export interface WorkSummary {
  /** Counts the agent's intervals: one that came twice is one. */
  readonly interval: number;
  /** A part that no rank has is missing. */
  readonly parts: Readonly<Partial<Record<WorkPart, Histogram>>>;
  /** Calls that wait for the GPU, an iteration and rank. */
  readonly synchronizations: number;
  /** Matrix products that were traced, by shape: those that took most. The time of a shape is its FLOPS. */
  readonly shapes: readonly ShapeTimes[];
  /** Collectives by operator and size: those that took most. The shortest are transfers alone, others wait for ranks. */
  readonly transfers: readonly ShapeTimes[];
  /** What ranks here communicate in an iteration, hashed: the same model in the same layout has the same. */
  readonly programs: readonly string[];
}

export interface ShapeTimes {
  /** m, n, k and the batch: "4096x8192x2048x1"; of a collective operator, elements and their type: "all_reduce-4096-Half". */
  readonly shape: string;
  readonly ms: Histogram;
}

export const MOST_SHAPES = 8;
export const MOST_PROGRAMS = 16;

export const MOST_BUCKETS = 1024;
const WIDTH = Math.log(1.02);
/** Nothing at all, and whatever is shorter than a microsecond. */
const ZERO = -500;
const LARGEST = 2000;

export function bucketOf(ms: number): number {
  if (!(ms >= 0.001)) return ZERO;
  return Math.min(LARGEST, Math.max(ZERO + 1, Math.round(Math.log(ms) / WIDTH)));
}

export function msOf(bucket: number): number {
  return bucket <= ZERO ? 0 : Math.exp(bucket * WIDTH);
}

export function isBucket(bucket: unknown): bucket is number {
  return (
    Number.isSafeInteger(bucket) && (bucket as number) >= ZERO && (bucket as number) <= LARGEST
  );
}

export function histogramOf(values: Iterable<number>): Histogram {
  const counts = new Map<number, number>();
  for (const ms of values) {
    const bucket = bucketOf(ms);
    counts.set(bucket, (counts.get(bucket) ?? 0) + 1);
  }
  return sparse(counts);
}

export function merged(all: readonly Histogram[]): Histogram {
  const counts = new Map<number, number>();
  for (const { bucket, count } of all)
    bucket.forEach((one, i) => counts.set(one, (counts.get(one) ?? 0) + count[i]!));
  return sparse(counts);
}

function sparse(counts: ReadonlyMap<number, number>): Histogram {
  const sorted = [...counts].sort((a, b) => a[0] - b[0]);
  return { bucket: sorted.map(([bucket]) => bucket), count: sorted.map(([, count]) => count) };
}

/** Milliseconds below which a share of all lies; NaN of nothing. */
export function quantile({ bucket, count }: Histogram, share: number): number {
  const total = count.reduce((sum, one) => sum + one, 0);
  let before = 0;
  for (const [i, one] of count.entries()) {
    before += one;
    if (before >= share * total) return msOf(bucket[i]!);
  }
  return NaN;
}

export function mean({ bucket, count }: Histogram): number {
  let sum = 0;
  let total = 0;
  bucket.forEach((one, i) => {
    sum += msOf(one) * count[i]!;
    total += count[i]!;
  });
  return sum / total;
}
