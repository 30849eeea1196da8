/**
 * What the whole job does at a time. Idle is not sick, and machines start up one by one: nobody is accused by what it
 * does then. A pause that ends is a checkpoint or an evaluation; one that does not end is the halt that we are asked
 * about, in which the culprit shows.
 */
import { median } from "../../maths/robust.ts";
import { quantilePlace, select } from "../../maths/quickselect.ts";
import type { Fleet, MetricGrid } from "../../model/fleet.ts";
import type { Phase } from "../../model/machine-report.ts";

/** Best first: tensor cores run only when the model does, the duty cycle stays at 100 % while a collective waits. */
const ACTIVITY = [
  "gpu-tensor-core-activity",
  "gpu-sm-activity",
  "gpu-memory-bandwidth",
  "gpu-power-draw",
  "gpu-duty-cycle",
];
/** Of the usual activity: below it the job does something else. */
const ACTIVE_SHARE = 0.4;
/** High, because a job may stand still or be over for most of the data. */
const USUAL_QUANTILE = 0.95;
/** Iterations of many seconds have quiet parts of their own: those are no pauses. */
const SMOOTH_S = 30;
/** Machines settle for so long after the first of them got to work. */
const SETTLE_S = 60;
const FREED_SHARE = 0.2;
const IDLE_DUTY = 5;

export interface Activity {
  readonly phases: readonly Phase[];
  /** The middle machine's activity, by tick of `grid`; null where no metric tells. */
  readonly level: Float64Array | null;
  readonly grid: MetricGrid | null;
}

export function phasesOf(fleet: Fleet): Activity {
  const grid = ACTIVITY.map((id) => fleet.grids.find(({ metric }) => metric === id)).find(
    (found) => found !== undefined,
  );
  if (!grid) return { phases: [], level: null, grid: null };
  const level = smoothed(middleMachine(grid, fleet.machines.length), grid.stepS);
  const seen = level.filter((value) => !Number.isNaN(value));
  if (seen.length === 0) return { phases: [], level: null, grid: null };
  const usual = select(seen, 0, seen.length, quantilePlace(seen.length, USUAL_QUANTILE));
  const isFree = freed(fleet, grid);
  const isStill = stillness(fleet, grid);
  const what = (tick: number): Phase["what"] | null => {
    if (level[tick]! >= ACTIVE_SHARE * usual && usual > 0 && !isStill(tick)) return null;
    return isFree(tick) ? "idle" : "pause";
  };
  const phases = runs(grid, level.length, what);
  return { phases: named(phases, grid), level, grid };
}

/** Mean over some seconds around each tick. */
function smoothed(level: Float64Array, stepS: number): Float64Array {
  const around = Math.floor(SMOOTH_S / 2 / stepS);
  if (around === 0) return level;
  const out = new Float64Array(level.length);
  let sum = 0;
  let seen = 0;
  const count = (t: number, sign: number): void => {
    const value = level[t];
    if (value === undefined || Number.isNaN(value)) return;
    sum += sign * value;
    seen += sign;
  };
  for (let t = 0; t < around; t++) count(t, 1);
  for (let t = 0; t < level.length; t++) {
    count(t + around, 1);
    count(t - around - 1, -1);
    out[t] = seen === 0 ? NaN : sum / seen;
  }
  return out;
}

/** Median over machines, by tick. */
function middleMachine({ mean, ticks }: MetricGrid, machines: number): Float64Array {
  const scratch = new Float64Array(machines);
  const level = new Float64Array(ticks);
  for (let t = 0; t < ticks; t++) {
    let seen = 0;
    for (let m = 0; m < machines; m++) {
      const value = mean[m * ticks + t]!;
      if (value === value) scratch[seen++] = value;
    }
    level[t] = seen === 0 ? NaN : select(scratch, 0, seen, seen >> 1);
  }
  return level;
}

/** Of the usual traffic: less is nothing. */
const STILL_SHARE = 0.02;
/** Longer than the computing part of an iteration. */
const LEAST_STILL_S = 120;

/**
 * Power and the duty cycle of GPUs that wait in a collective may be half of what they are at work, and more. Where nobody
 * sends anything for minutes, nobody works.
 */
function stillness(fleet: Fleet, like: MetricGrid): (tick: number) => boolean {
  const network = fleet.grids.find(({ metric }) => metric === "tcp-rdma-throughput");
  const isClear = !["gpu-power-draw", "gpu-duty-cycle"].includes(like.metric);
  if (!network || isClear) return () => false;
  const sent = middleMachine(network, fleet.machines.length);
  const seen = sent.filter((value) => !Number.isNaN(value));
  if (seen.length === 0) return () => false;
  const usual = select(seen, 0, seen.length, quantilePlace(seen.length, USUAL_QUANTILE));
  const still = runs(network, sent.length, (t) =>
    usual > 0 && !(sent[t]! > STILL_SHARE * usual) ? "pause" : null,
  ).filter(({ fromS, toS }) => toS - fromS >= LEAST_STILL_S);
  return (tick) => isIn(still, like.startS + (tick + 0.5) * like.stepS, "pause");
}

/** Whether most machines' GPUs have nothing to do and hold nothing: there is no job. */
function freed(fleet: Fleet, like: MetricGrid): (tick: number) => boolean {
  const duty = fleet.grids.find(({ metric }) => metric === "gpu-duty-cycle");
  const memory = fleet.grids.find(({ metric }) => metric === "gpu-memory-used");
  const machines = fleet.machines.length;
  const dutyLevel = duty && middleMachine(duty, machines);
  const memoryLevel = memory && middleMachine(memory, machines);
  const held = memoryLevel ? median(memoryLevel.filter((value) => !Number.isNaN(value))) : NaN;
  const most = memoryLevel?.reduce((a, b) => (b > a ? b : a), held) ?? NaN;
  return (tick) => {
    const atS = like.startS + tick * like.stepS;
    const at = (grid: MetricGrid, level: Float64Array): number =>
      level[Math.min(grid.ticks - 1, Math.max(0, Math.floor((atS - grid.startS) / grid.stepS)))]!;
    if (memory && at(memory, memoryLevel!) > FREED_SHARE * most) return false;
    if (duty) return at(duty, dutyLevel!) < IDLE_DUTY;
    return memory !== undefined;
  };
}

function runs(
  { startS, stepS }: MetricGrid,
  ticks: number,
  what: (tick: number) => Phase["what"] | null,
): Phase[] {
  const phases: Phase[] = [];
  let from = 0;
  let now = what(0);
  for (let t = 1; t <= ticks; t++) {
    const next = t < ticks ? what(t) : undefined;
    if (next === now) continue;
    if (now !== null)
      phases.push({ what: now, fromS: startS + from * stepS, toS: startS + t * stepS });
    from = t;
    now = next ?? null;
  }
  return phases;
}

/** Than the longest pause that ended. */
const AS_BEFORE = 1.2;

/** What comes before the first work is warm-up; a pause after which nothing is done any more is a halt. */
function named(phases: readonly Phase[], { startS, stepS, ticks }: MetricGrid): Phase[] {
  const endS = startS + ticks * stepS;
  const longestS = phases.reduce(
    (most, { what, fromS, toS }) =>
      what === "pause" && fromS > startS && toS < endS ? Math.max(most, toS - fromS) : most,
    0,
  );
  // The data may end in the middle of a checkpoint.
  const isUsual = ({ fromS, toS }: Phase): boolean =>
    toS === endS && toS - fromS <= AS_BEFORE * longestS;
  return phases.map((phase, i) => {
    if (phase.fromS === startS && phase.toS < endS)
      return { ...phase, what: "warm-up", toS: Math.min(endS, phase.toS + SETTLE_S) };
    const next = phases[i + 1];
    const isLast = phase.toS === endS || (next?.what === "idle" && next.fromS === phase.toS);
    return phase.what === "pause" && isLast && !isUsual(phase) ? { ...phase, what: "halt" } : phase;
  });
}

export function isIn(
  phases: readonly Phase[],
  atS: number,
  ...which: readonly Phase["what"][]
): boolean {
  return phases.some(({ what, fromS, toS }) => which.includes(what) && atS >= fromS && atS < toS);
}
