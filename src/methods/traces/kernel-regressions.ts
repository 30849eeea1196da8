/**
 * ② and ⑤-minority: kernels that take longer than in healthy runs (FLARE §5.2.3, §5.2.4, §7.3.2, §7.3.3). All kernels of
 * some ranks: the GPU. Some kernels: the kernel. More kernels outside the instrumented set: minority-regressions.ts.
 * Kernels that overlap communication are compared with kernels that did so, too, or not at all.
 */
import { groupBy } from "../../base/group-by.ts";
import { median } from "../../maths/robust.ts";
import type { KernelRow, RankProfile, RunProfile } from "../../model/trace-profile.ts";
import type { Healthy } from "./healthy.ts";
import { isSameShapes } from "./same-work.ts";

export interface SlowerKernel {
  readonly row: KernelRow;
  readonly healthyUs: number;
  readonly ratio: number;
  /** Share of the step that the slowness costs. */
  readonly cost: number;
}

export interface KernelGrowth {
  readonly profile: RankProfile;
  /** How many times longer its kernels take, the median by time; 1 where nothing can be compared. */
  readonly ratio: number;
  /** Whether nearly all of its computing time is slower. */
  readonly isAll: boolean;
  /** Whether kernels other than matrix products are as fast as before. */
  readonly isMatrixOnly: boolean;
  readonly slower: readonly SlowerKernel[];
  /** Share of the step. */
  readonly cost: number;
}

/** Kernels of some microseconds vary by their neighbours in the cache: too short to tell anything. */
const LEAST_US = 10;
/** Durations of one kernel differ by less between healthy GPUs of one kind (boost clocks, temperature). */
export const SLOWER = 1.05;
/** Kernels of one shape are compared where so much of them at most is overlapped in one run and not in the other. */
const SAME_OVERLAP = 0.1;
/** Of the computing time: a GPU that is slow slows all that computes; copies and what waits for memory it may spare. */
const NEARLY_ALL = 0.75;

export function kernelGrowth(profile: RankProfile, healthy: Healthy): KernelGrowth {
  // The slowest of several healthy runs; of other ranks, where the baseline lacks this one, the middle.
  const isKnown = healthy.of(profile.rank).every(({ rank }) => rank === profile.rank);
  const healthyUs = durations(healthy.of(profile.rank), isKnown ? slowest : median);
  const isSized = isSameShapes(profile, healthy.of(profile.rank));
  const compared = profile.kernels
    .filter(({ kind, medianUs }) => kind !== "communication" && medianUs >= LEAST_US)
    // Of a kernel without a shape only the rest of the work tells whether it does the same.
    .filter(({ shape }) => isSized || shape !== "")
    .flatMap((row): SlowerKernel[] => {
      const before = healthyUs.get(kernelKey(row));
      // Where communication overlaps others of them than before, those left over are not the same ones.
      if (!before || Math.abs(row.overlapped - before.overlapped) > SAME_OVERLAP) return [];
      // Slower in every step than in the slowest healthy one; else inputs differ, and the kernel is as fast as it was.
      const isSteady = row.stepUs[0] > before.slowestUs;
      const ratio = isSteady
        ? row.medianUs / before.medianUs
        : Math.min(1, row.medianUs / before.medianUs);
      return [{ row, healthyUs: before.medianUs, ratio, cost: row.share * (1 - 1 / ratio) }];
    });
  const matrix = compared.filter(({ row }) => row.kind === "matrix");
  const decisive = sumOf(matrix) >= LEAST_DECISIVE ? matrix : compared;
  const slow = decisive.filter(({ ratio }) => ratio >= SLOWER);
  const isAll = decisive.length > 0 && sumOf(slow) >= NEARLY_ALL * sumOf(decisive);
  const others = compared.filter(({ row }) => row.kind !== "matrix");
  const slower = compared
    .filter(({ ratio }) => ratio >= SLOWER)
    .toSorted((a, b) => b.cost - a.cost);
  return {
    profile,
    ratio: weightedMedian(decisive),
    isAll,
    isMatrixOnly:
      sumOf(matrix) >= LEAST_DECISIVE && others.length > 0 && weightedMedian(others) < SLOWER,
    slower,
    cost: slower.reduce((sum, { cost }) => sum + cost, 0),
  };
}

/** Ranks that run the same matrix kernels equally often do the same work: a stage of a pipeline is one such group. */
export function sameWorkers(ranks: readonly RankProfile[]): RankProfile[][] {
  const signature = ({ kernels }: RankProfile): string =>
    kernels
      .filter(({ kind }) => kind === "matrix")
      .map(({ name, shape, perStep }) => `${name}|${shape}|${perStep}`)
      .toSorted((a, b) => (a < b ? -1 : 1))
      .join();
  return [...groupBy(ranks, signature).values()];
}

/** How many times longer the slowest GPU of a healthy run takes than the fastest that does the same work. */
export function gpusApart({ ranks }: RunProfile): number {
  const ratios = sameWorkers(ranks).map((workers) => {
    const us = workers.map(
      ({ kernels }) => new Map(kernels.map((row) => [kernelKey(row), row.medianUs])),
    );
    const speeds = workers.map(({ kernels }, i) =>
      weightedMedian(
        kernels
          .filter(({ kind, medianUs }) => kind === "matrix" && medianUs >= LEAST_US)
          .map((row) => {
            const all = us.flatMap((map) => map.get(kernelKey(row)) ?? []);
            const ratio = us[i]!.get(kernelKey(row))! / median(all);
            return { row, healthyUs: 0, ratio, cost: 0 };
          }),
      ),
    );
    return Math.max(...speeds) / Math.min(...speeds);
  });
  return Math.max(1, ...ratios);
}

/** Of the step: matrix kernels must take so much of it to speak for the GPU. */
const LEAST_DECISIVE = 0.02;

function slowest(values: readonly number[]): number {
  return Math.max(...values);
}

function durations(
  profiles: readonly RankProfile[],
  levelOf: (values: readonly number[]) => number,
): Map<string, { medianUs: number; slowestUs: number; overlapped: number }> {
  const rows = groupBy(
    profiles.flatMap(({ kernels }) => kernels),
    kernelKey,
  );
  return new Map(
    [...rows].map(([key, list]) => [
      key,
      {
        medianUs: levelOf(list.map(({ medianUs }) => medianUs)),
        slowestUs: levelOf(list.map(({ stepUs }) => stepUs[1])),
        overlapped: median(list.map(({ overlapped }) => overlapped)),
      },
    ]),
  );
}

export function kernelKey({ name, shape, isOverlapped }: KernelRow): string {
  return `${name}|${shape}|${isOverlapped}`;
}

function sumOf(list: readonly SlowerKernel[]): number {
  return list.reduce((sum, { row }) => sum + row.share, 0);
}

function weightedMedian(list: readonly SlowerKernel[]): number {
  let rest = sumOf(list) / 2;
  for (const { row, ratio } of list.toSorted((a, b) => a.ratio - b.ratio)) {
    rest -= row.share;
    if (rest <= 0) return ratio;
  }
  return 1;
}
