/** Machines that take no part in the job, though they are monitored with it: login nodes, spares. They are compared apart. */
import type { Fleet, MetricGrid } from "../../model/fleet.ts";
import { exporterOf } from "./absence.ts";
import { isKnownMember } from "./another-job.ts";
import { phasesOf } from "./phases.ts";
import { median } from "../../maths/robust.ts";
import { listed } from "./words.ts";

const LEAST_WORKERS = 3;
const WITHOUT_GPUS = "machines without GPUs";
const SPARES = "machines that never worked";
/** Of what the others hold: less is nothing. */
const HELD_SHARE = 0.1;
const WORKED_DUTY = 5;

export function withoutOutsiders(fleet: Fleet): Fleet {
  const { machines, grids } = fleet;
  const gpu = grids.filter((grid) => exporterOf(grid) === "gpu");
  const hasAny = (list: readonly MetricGrid[], m: number): boolean =>
    list.some((grid) => Number.isFinite(highest(grid, m)));
  // One that is not seen at all is dead, not outside.
  const hasGpu = machines.map((_, m) => hasAny(gpu, m) || !hasAny(grids, m));
  const isSpare = sparesOf(fleet);
  const workers = machines.filter((_, m) => hasGpu[m] && !isSpare[m]).length;
  const outside = machines.filter((_, m) => !hasGpu[m] || isSpare[m]);
  if (outside.length === 0 || workers < LEAST_WORKERS) return fleet;
  const roles = [...fleet.roles, WITHOUT_GPUS, SPARES];
  const role = fleet.role.map((r, m) =>
    isSpare[m] ? roles.length - 1 : hasGpu[m] ? r : roles.length - 2,
  );
  const without = machines.filter((_, m) => !hasGpu[m]);
  const spares = machines.filter((_, m) => hasGpu[m] && isSpare[m]);
  const left = (names: readonly string[], why: string): string[] =>
    names.length === 0 ? [] : [`not compared with the others: ${listed(names)}, ${why}`];
  const missing = [
    ...fleet.missing,
    ...left(without, "without GPU metrics (no GPUs, or they report under another name)"),
    ...left(spares, "which took no part in the job: idle from the first sample on"),
  ];
  return { ...fleet, role, roles, missing };
}

/** The fleet without them: nobody is compared with them either. */
export function workersOnly(fleet: Fleet): Fleet {
  const members = [...fleet.machines.keys()].filter((m) => !isOutsider(fleet, m));
  if (members.length === fleet.machines.length) return fleet;
  const rows = <T extends Float32Array | Uint8Array>(column: T, ticks: number): T => {
    const kept = column.slice(0, members.length * ticks) as T;
    members.forEach((m, k) => kept.set(column.subarray(m * ticks, (m + 1) * ticks), k * ticks));
    return kept;
  };
  return {
    ...fleet,
    machines: members.map((m) => fleet.machines[m]!),
    role: Int32Array.from(members, (m) => fleet.role[m]!),
    roles: fleet.roles.slice(0, -2),
    ...(fleet.lastSeenS
      ? { lastSeenS: Float64Array.from(members, (m) => fleet.lastSeenS![m]!) }
      : {}),
    grids: fleet.grids.map((grid) => {
      const { ticks, mean, low, high, lowDevice, highDevice, reporting } = grid;
      const kept = rows(mean, ticks);
      const seen = kept.reduce((sum, value) => (value === value ? sum + 1 : sum), 0);
      return {
        ...grid,
        mean: kept,
        low: low === mean ? kept : rows(low, ticks),
        high: high === mean ? kept : rows(high, ticks),
        lowDevice: lowDevice && rows(lowDevice, ticks),
        highDevice: highDevice && rows(highDevice, ticks),
        reporting: reporting && rows(reporting, ticks),
        coverage: seen / kept.length,
      };
    }),
  };
}

export function isOutsider({ role, roles }: Fleet, machine: number): boolean {
  const name = roles[role[machine]!];
  return name === WITHOUT_GPUS || name === SPARES;
}

/** Machines whose GPUs idled from the first sample on, while those of the others worked. */
function sparesOf(fleet: Fleet): boolean[] {
  const { machines, grids } = fleet;
  const memory = grids.find(({ metric }) => metric === "gpu-memory-used");
  const duty = grids.find(({ metric }) => metric === "gpu-duty-cycle");
  const work = WORK.flatMap((id) => grids.filter(({ metric }) => metric === id));
  if (!duty && work.length === 0) return machines.map(() => false);
  const held = memory && machines.map((_, m) => highest(memory, m));
  const usualHeld = held && upper(held);
  const levels = work.map((grid) => {
    const own = machines.map((_, m) => workOf(grid, m));
    return { grid, own, usual: upper(own.map(({ usual }) => usual)) };
  });
  const isApart = apartFrom(fleet, duty, memory, HELD_SHARE * (usualHeld ?? NaN));
  return machines.map((_, m) => {
    // A process that is stuck keeps its memory; without it there is none.
    const holdsNothing =
      held !== undefined && Number.isFinite(held[m]!) && held[m]! < HELD_SHARE * usualHeld!;
    if (holdsNothing && duty && highest(duty, m) < WORKED_DUTY) return true;
    // Those that wait in a collective look busy, and draw little: only work tells.
    const seen = levels.filter(({ own }) => own[m]!.seen > 0);
    const isIdle = ({ grid, own, usual }: (typeof levels)[number]): boolean =>
      isIdleAll(grid, m, IDLE_SHARE[grid.metric]! * usual, own[m]!.seen);
    if (isApart(m)) return true;
    const dutyIdle =
      !duty || workOf(duty, m).seen === 0 || isIdleAll(duty, m, WORKED_DUTY, workOf(duty, m).seen);
    return seen.length > 0 && dutyIdle && seen.every(isIdle);
  });
}

const LEAST_APART_S = 60;
/** Of one that worked first: a gauge that is read now and then shows a machine that stalls at rest for a minute by chance. */
const LEAST_AFTER_WORK_S = 300;
const LEAST_APART_TICKS = 3;
/** Of its usual pace: the job goes on. */
const GOES_ON = 0.8;

/**
 * No machine of a synchronous job rests while the others go on: one that did, and worked again later, or worked only later,
 * has work of its own (a notebook, another job). So has one whose GPUs held nothing meanwhile: its processes had ended, and a
 * job does not outlive them. One that stopped for good is a suspect.
 */
function apartFrom(
  fleet: Fleet,
  duty: MetricGrid | undefined,
  memory: MetricGrid | undefined,
  leastHeld: number,
): (m: number) => boolean {
  const { level, grid } = phasesOf(fleet);
  if (!level || !grid || grid.metric === "gpu-duty-cycle") return () => false;
  const usual = median(level.filter((one) => one === one));
  const goesOn = (atS: number): boolean =>
    level[Math.floor((atS - grid.startS) / grid.stepS)]! >= GOES_ON * usual;
  const isApart = [
    duty && pausesOf(duty, WORKED_DUTY, goesOn, LEAST_AFTER_WORK_S),
    memory && pausesOf(memory, leastHeld, goesOn, LEAST_APART_S),
  ].flatMap((found) => found ?? []);
  return (m) => !isKnownMember(fleet, m) && isApart.some((has) => has(m));
}

/** Whether a machine was below `least` while the job went on, and above it later; for longer if it was above it before. */
function pausesOf(
  { ticks, startS, stepS, high }: MetricGrid,
  least: number,
  goesOn: (atS: number) => boolean,
  afterWorkS: number,
): (m: number) => boolean {
  const counts = Uint8Array.from({ length: ticks }, (_, t) =>
    goesOn(startS + (t + 0.5) * stepS) ? 1 : 0,
  );
  const ticksOf = (seconds: number): number => Math.max(LEAST_APART_TICKS, seconds / stepS);
  return (m) => {
    let rests = 0;
    let needed = ticksOf(LEAST_APART_S);
    for (let t = 0; t < ticks; t++) {
      const value = high[m * ticks + t]!;
      if (value !== value) continue;
      if (value < least) rests = counts[t] === 1 ? rests + 1 : 0;
      else if (rests >= needed) return true;
      else {
        rests = 0;
        needed = ticksOf(afterWorkS);
      }
    }
    return false;
  };
}

const WORK = ["gpu-tensor-core-activity", "gpu-sm-activity", "gpu-power-draw"];
/** Of what the others do: below it a GPU idles. An idle one draws power, too. */
const IDLE_SHARE: Readonly<Record<string, number>> = {
  "gpu-tensor-core-activity": 0.1,
  "gpu-sm-activity": 0.1,
  "gpu-power-draw": 0.4,
};
/** Of its samples: somebody tried something for a moment. */
const MOST_BUSY_SHARE = 0.1;
const FIRST_SAMPLES = 4;

/** Of those that work, if it is a third of them: spares may be the most. */
function upper(values: readonly number[]): number {
  const known = values.filter(Number.isFinite).sort((a, b) => a - b);
  return known[Math.floor(UPPER * (known.length - 1))] ?? NaN;
}

const UPPER = 0.8;

function workOf({ mean, ticks }: MetricGrid, m: number): { usual: number; seen: number } {
  const row = mean.subarray(m * ticks, (m + 1) * ticks).filter((value) => value === value);
  return { usual: row.length === 0 ? NaN : median(Float64Array.from(row)), seen: row.length };
}

/** One that worked at first and then stopped is a suspect. */
function isIdleAll({ high, ticks }: MetricGrid, m: number, least: number, seen: number): boolean {
  let busy = 0;
  let nth = 0;
  for (let at = m * ticks; at < (m + 1) * ticks; at++) {
    if (Number.isNaN(high[at]!)) continue;
    if (high[at]! >= least) {
      if (nth < FIRST_SAMPLES) return false;
      busy++;
    }
    nth++;
  }
  return busy <= MOST_BUSY_SHARE * seen;
}

/** -Infinity where it has no sample. */
function highest({ high, ticks }: MetricGrid, m: number): number {
  let most = -Infinity;
  for (let at = m * ticks; at < (m + 1) * ticks; at++) if (high[at]! > most) most = high[at]!;
  return most;
}
