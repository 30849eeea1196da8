/**
 * Whether two runs can be compared at all. FLARE cannot tell a regression from a new architecture (§8.4), and a run
 * that is measured against another kind of job raises false alarms (§7.3: images of unequal size, embeddings on the
 * CPU). So the kinds of matrix operators and collectives must agree; their sizes need not.
 */
import { median } from "../../maths/robust.ts";
import type { KernelRow, RankProfile, RunProfile } from "../../model/trace-profile.ts";

/** Half of all calls in common: below, another model or another way to parallelise it. */
const COMPARABLE = 0.5;
/** Nearly all: a step does the same, so that milliseconds can be compared, not only shares of the step. */
const SAME = 0.9;

export interface Likeness {
  readonly isComparable: boolean;
  /** Whether a step of both does the same work. */
  readonly isSame: boolean;
  /** 0..1 */
  readonly inCommon: number;
}

export function likeness(run: RunProfile, healthy: readonly RunProfile[]): Likeness {
  const inCommon = Math.max(0, ...healthy.map((other) => common(run.mix, other.mix)));
  const counts = healthy.flatMap(({ ranks }) => ranks.map(callsPerStep));
  const ratio = median(run.ranks.map(callsPerStep)) / median(counts);
  const hardware = new Set(
    [run, ...healthy].map((one) => one.hardware).filter((name) => name !== ""),
  );
  const isSameSize = ratio > SAME && ratio < 1 / SAME;
  return {
    isComparable: inCommon >= COMPARABLE,
    isSame: inCommon >= SAME && isSameSize && hardware.size <= 1,
    inCommon,
  };
}

function common(a: RunProfile["mix"], b: RunProfile["mix"]): number {
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  // A job without any matrix operator or collective that the trace names is like any other such job.
  if (names.size === 0) return 1;
  return [...names].reduce((sum, name) => sum + Math.min(a[name] ?? 0, b[name] ?? 0), 0);
}

function callsPerStep({ kernels }: RankProfile): number {
  return kernels
    .filter(({ kind }) => kind !== "minority")
    .reduce((sum, row) => sum + row.perStep, 0);
}

/**
 * Whether a rank's matrix products have the shapes that they had. Traces give no size of other kernels: where shapes
 * have changed (longer sequences), an element-wise kernel of the same name does other work.
 */
export function isSameShapes({ kernels }: RankProfile, others: readonly RankProfile[]): boolean {
  const shaped = kernels.filter(({ kind, shape }) => kind === "matrix" && shape !== "");
  const known = new Set(others.flatMap((other) => other.kernels.map(({ shape }) => shape)));
  const timeOf = (rows: readonly KernelRow[]): number =>
    rows.reduce((sum, { share }) => sum + share, 0);
  return timeOf(shaped.filter(({ shape }) => known.has(shape))) >= SAME * timeOf(shaped);
}
