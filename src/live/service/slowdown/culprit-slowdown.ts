/** Since which iteration a culprit is slow, and what iterations took before and take since. */
import { median } from "../../../maths/robust.ts";
import type { LiveCulprit } from "../../../model/live-judgement.ts";
import type { JobIterations } from "../job/job-iterations.ts";
import { LEAST_RISE, type Slowdown } from "./pace-watch.ts";

/** Iterations right before and since that tell what one takes. */
const LOOKED_AT = 16;
/** Fewer since then do not tell the pace. */
const FEWEST_SINCE = 3;
/** Of a job that is slow now and then, iterations that take longer than usual by this factor are its slow ones. */
const SLOW_NOW_AND_THEN = 1.1;

/** `usualMs`: what an iteration takes when nobody is slow, where somebody else is slow already; else null. */
export function slowdownOf(
  { sinceMs, shape }: Pick<LiveCulprit, "sinceMs" | "shape">,
  iterations: JobIterations,
  usualMs: number | null,
): Slowdown {
  const { numbers, endsMs, durationsMs } = iterations;
  const counts = (i: number): boolean => !iterations.isPause(numbers[i]!);
  const of = (indices: readonly number[]): number => median(indices.map((i) => durationsMs[i]!));
  const from = iterations.firstAfter(sinceMs);
  const since = indices(from, numbers.length).filter(counts);
  const before = indices(Math.max(0, from - LOOKED_AT), from).filter(counts);
  const beforeMs = usualMs ?? (before.length > 0 ? of(before) : of(since));
  const single = since.filter((i) => isSlowOne(durationsMs[i]!, beforeMs));
  // What the judge takes for one stretch may be several, where that costs less than half of the iterations.
  const isMostlyUsual = single.length >= FEWEST_SINCE && of(since) < LEAST_RISE * beforeMs;
  const isNowAndThen = shape === "now-and-then" || isMostlyUsual;
  const slow = isNowAndThen ? single : since;
  const afterMs = slow.length > 0 ? of(slow.slice(-LOOKED_AT)) : beforeMs;
  // The judge dates to half a second, in which several iterations may end.
  const middleMs = (beforeMs + afterMs) / 2;
  const first = slow.slice(0, LOOKED_AT).find((i) => durationsMs[i]! >= middleMs) ?? slow[0];
  return {
    isPaced: since.length >= FEWEST_SINCE,
    slowFrom: first === undefined ? (numbers.at(-1) ?? -1) + 1 : numbers[first]!,
    fromMs: first === undefined ? sinceMs : endsMs[first]! - durationsMs[first]!,
    beforeMs,
    afterMs,
    ...(isNowAndThen
      ? { intermittent: { slow: Math.max(1, slow.length), of: Math.max(1, since.length) } }
      : {}),
  };
}

/** Whether it is one of the iterations that make a job slow now and then. */
export function isSlowOne(durationMs: number, usualMs: number): boolean {
  return durationMs > SLOW_NOW_AND_THEN * usualMs;
}

function indices(from: number, to: number): number[] {
  return Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);
}
