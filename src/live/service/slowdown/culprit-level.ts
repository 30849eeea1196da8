/**
 * How slow a culprit is by itself, whatever else is slow in its job: the time of its ranks outside communication; of
 * network devices, the time of an iteration that no rank's own work accounts for.
 */
import { median } from "../../../maths/robust.ts";
import type { Suspect } from "../../../model/verdict.ts";
import { isOfNetwork } from "../incident/incident-lifecycle.ts";
import type { JobRun } from "../job/job-run.ts";

export interface CulpritLevel {
  /** Milliseconds an iteration: before it was slow, and while it is. */
  readonly beforeMs: number;
  readonly slowMs: number;
  /** It is slower than before by itself, as far as its times can show. */
  readonly isUp: boolean;
  /** What iterations of the whole job took while it was slow; absent in documents of older services. */
  readonly paceMs?: number;
  /** The longest that iterations of the whole job took meanwhile. */
  readonly peakMs: number;
  /** Of a network device: the network took longer than when healthy before it already, so that another one is slow, too. */
  readonly isMixed?: boolean;
  /** Of a network device: what the network takes of a healthy iteration; absent where that is not known. */
  readonly networkMs?: number;
}

const BEFORE = 16;
const LAST = 4;
/** Of the job's iteration: a culprit that took longer by less does not show in its own time. */
const SHOWS = 0.03;
/** Back: nearer to before than to slow, by this much of the way; and slower than before by less than matters to the job. */
const BACK = 0.3;
const MATTERS = 0.1;
/**
 * A rank whose own time is less than this share of before may not be seen: what it computes runs while it waits for somebody
 * slower.
 */
const VISIBLE = 0.5;
/** A rank waits for longer only where the iteration takes longer; a wait may count in two operators at once. */
const WAITS_COUNT = 2;
/** Up to this much of the healthy pace a job is healthy. */
const USUAL = 1.05;
/** A network device can only be seen to be fixed where the job became faster by so much. */
const FASTER = 0.97;

/** What a healthy iteration is spent on. */
export interface HealthyTimes {
  /** The time that no rank's own work accounts for. */
  readonly networkMs: number;
  /** Outside communication, by slot of the run's points; null where another run was healthy. */
  readonly ownMs: Float32Array | null;
}

export function ofEarlierRun(networkMs: number): HealthyTimes {
  return { networkMs, ownMs: null };
}

/**
 * Of the iterations right before one, if the job was healthy in them: otherwise what was known before. A run that is slow
 * from its start takes that for its usual pace, so the least that the network ever took counts.
 */
export function healthyTimes(
  run: JobRun,
  fromIteration: number,
  usualMs: number,
  known: HealthyTimes | null,
): HealthyTimes | null {
  const earlier = before(run, fromIteration);
  if (!(paceMs(run, earlier) < USUAL * usualMs)) return known;
  const networkMs = median(earlier.map((number) => networkTime(run, number)));
  if (!Number.isFinite(networkMs)) return known;
  const times = earlier.flatMap((number) => ownTimes(run, number) ?? []);
  const slots = run.points.rowOf(earlier.at(-1)!)?.durationMs.length ?? 0;
  const ownMs = Float32Array.from({ length: slots }, (_, slot) =>
    median(times.map((own) => own(slot)).filter((ms) => !Number.isNaN(ms))),
  );
  return { networkMs: Math.min(networkMs, known?.networkMs ?? Infinity), ownMs };
}

function before(run: JobRun, fromIteration: number): number[] {
  return countedIterations(run)
    .filter((number) => number < fromIteration)
    .slice(-BEFORE);
}

/** null where iterations from before are no longer at hand. */
export function culpritLevel(
  run: JobRun,
  suspect: Suspect,
  fromIteration: number,
  healthy: HealthyTimes | null,
): CulpritLevel | null {
  const numbers = countedIterations(run);
  const earlier = before(run, fromIteration);
  const later = numbers.filter((number) => number >= fromIteration);
  const isShared = isOfNetwork(suspect);
  // Right before, a rank may have waited for a slower one, or have been slow itself: what it took when the job was healthy counts.
  const healthyMs = isShared
    ? (healthy?.networkMs ?? NaN)
    : medianOf(run, suspect, (slot) => healthy?.ownMs?.[slot] ?? NaN);
  const rightBeforeMs = median(timesOf(run, suspect, earlier));
  const beforeMs = isShared || Number.isNaN(healthyMs) ? rightBeforeMs : healthyMs;
  // It may be fixed by now, and somebody else be slow.
  const [firstMs, lastMs] = [later.slice(0, LAST), later.slice(-LAST)].map((some) =>
    median(timesOf(run, suspect, some)),
  ) as [number, number];
  const peakMs = paceMs(run, later.slice(-LAST));
  const shows = (ms: number): boolean => ms - beforeMs > SHOWS * peakMs;
  const slowMs = shows(lastMs) ? lastMs : firstMs;
  const slow = shows(lastMs) ? later.slice(-LAST) : later.slice(0, LAST);
  if (!(beforeMs >= 0 || beforeMs < 0) || !(peakMs > 0)) return null;
  const isMixed = isShared && !(beforeMs - healthyMs <= SHOWS * peakMs);
  return {
    beforeMs,
    slowMs,
    isUp: shows(slowMs),
    paceMs: paceMs(run, slow),
    peakMs,
    isMixed,
    ...(isShared && !Number.isNaN(healthyMs) ? { networkMs: healthyMs } : {}),
  };
}

/** The first iteration since which it takes more than half of what it takes longer; NaN where it does not. */
export function slowSince(run: JobRun, suspect: Suspect, level: CulpritLevel): number {
  const half = (level.beforeMs + level.slowMs) / 2;
  const numbers = countedIterations(run);
  const fast = numbers.findLastIndex((number) => timeOf(run, suspect, number) < half);
  return numbers[fast + 1] ?? NaN;
}

/**
 * Whether the culprit was as fast as before in each of the last so many iterations. `isAlone`: others are slow still. Of
 * several network devices nobody knows which is fixed then. `usualMs`: of a healthy iteration.
 */
export function isBack(
  run: JobRun,
  suspect: Suspect,
  level: CulpritLevel,
  usualMs: number,
  iterations: number,
  isAlone: boolean,
): boolean {
  if (!level.isUp || (isAlone && level.isMixed)) return false;
  const last = countedIterations(run).slice(-iterations);
  const isShared = isOfNetwork(suspect);
  if (isShared && !(paceMs(run, last) < FASTER * level.peakMs)) return false;
  const times = timesOf(run, suspect, last);
  if (times.length !== iterations) return false;
  const way = wayBack(level, usualMs);
  if (isShared) return isNetworkBack(level, times, way);
  return times.every((ms, i) => isRankBack(level, ms, paceMs(run, [last[i]!]), way));
}

/**
 * The own time of a rank falls also because it waits for longer: by as much as iterations take longer than when it was
 * measured. What falls by more is not explained by that: it is fixed.
 */
function isRankBack(
  { beforeMs, slowMs, paceMs: slowPaceMs = NaN }: CulpritLevel,
  ms: number,
  nowMs: number,
  way: number,
): boolean {
  const half = (slowMs - beforeMs) / 2;
  const moreMs = Math.max(0, WAITS_COUNT * (nowMs - slowPaceMs));
  const isSeen = ms >= Math.min(VISIBLE * beforeMs, beforeMs) || ms < slowMs - moreMs - half;
  return isSeen && ms < beforeMs + way;
}

/**
 * Where another device was slow before, as fast as before may mean that the other one is fixed: only as fast as when healthy
 * says that both are. Nor does faster than before say which: another one was slow that nobody knew of.
 */
function isNetworkBack(
  { beforeMs, isMixed, networkMs }: CulpritLevel,
  times: readonly number[],
  way: number,
): boolean {
  const backMs = isMixed ? networkMs : beforeMs;
  if (backMs === undefined || !times.every((ms) => ms < backMs + way)) return false;
  return isMixed === true || median(times) > beforeMs - way;
}

/** The first of the last iterations in which it was as fast as before; null where it is slow. */
export function backSince(
  run: JobRun,
  suspect: Suspect,
  level: CulpritLevel,
  usualMs: number,
): number | null {
  const limit = level.beforeMs + wayBack(level, usualMs);
  const numbers = countedIterations(run).slice(-BEFORE);
  const slow = numbers.findLastIndex((number) => !(timeOf(run, suspect, number) < limit));
  return numbers[slow + 1] ?? null;
}

function wayBack({ slowMs, beforeMs, peakMs }: CulpritLevel, usualMs: number): number {
  return Math.min(BACK * (slowMs - beforeMs), MATTERS * Math.min(usualMs, peakMs));
}

export function withPeak(run: JobRun, level: CulpritLevel): CulpritLevel {
  const nowMs = paceMs(run, countedIterations(run).slice(-LAST));
  return nowMs > level.peakMs ? { ...level, peakMs: nowMs } : level;
}

/** What the last iterations took; NaN where there are none. */
export function lastPaceMs(run: JobRun): number {
  return paceMs(run, countedIterations(run).slice(-LAST));
}

function paceMs({ points }: JobRun, numbers: readonly number[]): number {
  return median(numbers.map((number) => points.whole(number)?.durationMs ?? NaN));
}

function countedIterations({ points, lastIteration, pauses }: JobRun): number[] {
  return points.iterations.filter((number) => number <= lastIteration && !pauses.has(number));
}

function timesOf(run: JobRun, suspect: Suspect, numbers: readonly number[]): number[] {
  return numbers.map((number) => timeOf(run, suspect, number)).filter((ms) => !Number.isNaN(ms));
}

function timeOf(run: JobRun, suspect: Suspect, iteration: number): number {
  if (isOfNetwork(suspect)) return networkTime(run, iteration);
  const own = ownTimes(run, iteration);
  return own ? medianOf(run, suspect, own) : NaN;
}

/** Over its ranks. */
function medianOf({ points }: JobRun, { ranks }: Suspect, msOf: (slot: number) => number): number {
  const slots = ranks.map((rank) => points.slotOf(rank)).filter((slot) => slot >= 0);
  return median(slots.map(msOf).filter((ms) => !Number.isNaN(ms)));
}

/** Of an iteration: what no rank's own work accounts for. */
function networkTime(run: JobRun, iteration: number): number {
  const own = ownTimes(run, iteration);
  const slots = run.points.rowOf(iteration)?.durationMs.length ?? 0;
  let longest = -Infinity;
  for (let slot = 0; own && slot < slots; slot++) {
    const ms = own(slot);
    if (ms > longest) longest = ms;
  }
  return (run.points.whole(iteration)?.durationMs ?? NaN) - longest;
}

/** By slot, milliseconds outside communication. */
function ownTimes({ points }: JobRun, iteration: number): ((slot: number) => number) | null {
  const row = points.rowOf(iteration);
  if (!row) return null;
  return (slot) =>
    row.durationMs[slot]! -
    (row.collectiveMs[slot]! || 0) -
    (row.sendMs[slot]! || 0) -
    (row.recvMs[slot]! || 0);
}
