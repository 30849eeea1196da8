/** Fleets put together: metrics that were pulled one by one, and the minutes since the last call. */
import type { Fleet, MetricGrid } from "../../model/fleet.ts";
import { inOrder } from "./grid-maker.ts";
import { linkUsage } from "./link-usage.ts";
import { ALL_MACHINES } from "./roles.ts";

/** Metrics of the same machines, some of which may be lacking in some. */
export function mergeMetrics(fleets: readonly Fleet[]): Fleet | null {
  if (fleets.length === 0) return null;
  const machines = [...new Set(fleets.flatMap((fleet) => fleet.machines))].sort();
  const roleOf = new Map<string, string>();
  for (const fleet of fleets) {
    fleet.machines.forEach((machine, m) => {
      const name = fleet.roles[fleet.role[m]!]!;
      const known = roleOf.get(machine);
      // Only some metrics carry the hardware's name: the most that is known of a machine counts.
      if (known === undefined || known === ALL_MACHINES || name.length > known.length)
        roleOf.set(machine, name);
    });
  }
  const roles = [...new Set(roleOf.values())].sort();
  const numberOf = new Map(roles.map((name, r) => [name, r]));
  const grids = fleets.flatMap((fleet) =>
    fleet.grids.map((grid) => placed(grid, fleet.machines, machines)),
  );
  // All were joined by the same names.
  const named = fleets.find((fleet) => fleet.names)?.names;
  const usage = grids.some(({ metric }) => metric === "pcie-usage") ? null : linkUsage(grids);
  return {
    machines,
    role: Int32Array.from(machines, (machine) => numberOf.get(roleOf.get(machine)!)!),
    roles,
    grids: usage ? [...grids, usage] : grids,
    ...(named ? { names: named } : {}),
    ...(fleets.every(({ isJob }) => isJob) ? { isJob: true } : {}),
    missing: [...new Set(fleets.flatMap((fleet) => fleet.missing))],
  };
}

/** A machine that has been silent for so many spans is no longer the job's. */
const FORGOTTEN_SPANS = 4;

/**
 * What was seen before, with the new minutes behind it: a call every eight minutes on fifteen minutes of data need not
 * pull the seven that it already has. The first two intervals of the new part lack the sample before them and are
 * taken from the old one. Metrics whose interval changed come as they are; those that did not come end where they did.
 */
export function extendFleet(old: Fleet, fresh: Fleet, spanS: number): Fleet {
  const both = mergeMetrics([
    { ...old, grids: [] },
    { ...fresh, grids: [] },
  ])!;
  const { machines } = both;
  const endS = fresh.grids.reduce((end, grid) => Math.max(end, endOf(grid)), -Infinity);
  const grids = fresh.grids.map((grid) => {
    const before = old.grids.find((other) => isSame(other, grid));
    const now = placed(grid, fresh.machines, machines);
    if (!before) return now;
    const devices = [...new Set([...before.devices, ...now.devices])].sort(inOrder);
    const earlier = withDevices(placed(before, old.machines, machines), devices);
    return appended(earlier, withDevices(now, devices), spanS);
  });
  const gone = old.grids.filter(
    (grid) =>
      !fresh.grids.some((other) => other.metric === grid.metric) && endOf(grid) > endS - spanS,
  );
  grids.push(...gone.map((grid) => placed(grid, old.machines, machines)));
  const lastSeenS = Float64Array.from(machines, (machine) => seenBefore(old, machine));
  lastSeenS.forEach((lastS, m) => {
    if (endS - lastS > FORGOTTEN_SPANS * spanS) lastSeenS[m] = -Infinity;
  });
  return { ...both, grids, lastSeenS, missing: fresh.missing };
}

function endOf({ startS, ticks, stepS }: MetricGrid): number {
  return startS + ticks * stepS;
}

function isSame(a: MetricGrid, b: MetricGrid): boolean {
  return a.metric === b.metric && a.source === b.source && a.stepS === b.stepS;
}

function seenBefore(fleet: Fleet, machine: string): number {
  const m = fleet.machines.indexOf(machine);
  if (m < 0) return -Infinity;
  let lastS = fleet.lastSeenS?.[m] ?? -Infinity;
  for (const { mean, ticks, startS, stepS } of fleet.grids) {
    let t = ticks - 1;
    while (t >= 0 && Number.isNaN(mean[m * ticks + t]!)) t--;
    if (t >= 0) lastS = Math.max(lastS, startS + (t + 1) * stepS);
  }
  return lastS;
}

/** The same grid with these devices: a GPU that is seen for the first or the last time must not cost the history. */
function withDevices(grid: MetricGrid, devices: readonly string[]): MetricGrid {
  if (devices.length === 0 || devices.join() === grid.devices.join()) return grid;
  const place = grid.devices.map((device) => devices.indexOf(device));
  const moved = (column: Uint8Array | null): Uint8Array =>
    column ? column.map((device) => place[device] ?? 0) : new Uint8Array(grid.mean.length);
  const seen = (): Uint8Array => Uint8Array.from(grid.mean, (value) => (value === value ? 1 : 0));
  return {
    ...grid,
    low: grid.low === grid.mean ? grid.mean.slice() : grid.low,
    high: grid.high === grid.mean ? grid.mean.slice() : grid.high,
    lowDevice: moved(grid.lowDevice),
    highDevice: moved(grid.highDevice),
    reporting: grid.reporting ?? seen(),
    devices,
  };
}

type Column = "mean" | "low" | "high" | "lowDevice" | "highDevice" | "reporting";

/** The same grid with rows for all machines, in their order. */
function placed(grid: MetricGrid, from: readonly string[], to: readonly string[]): MetricGrid {
  if (from.length === to.length && from.every((machine, m) => machine === to[m])) return grid;
  const place = new Map(to.map((machine, m) => [machine, m]));
  return withColumns(grid, grid.ticks, to.length, (read, write) => {
    from.forEach((machine, m) => {
      const at = place.get(machine);
      if (at === undefined) return;
      write.set(read.subarray(m * grid.ticks, (m + 1) * grid.ticks), at * grid.ticks);
    });
  });
}

const BORROWED_TICKS = 2;

function appended(before: MetricGrid, now: MetricGrid, spanS: number): MetricGrid {
  const { stepS } = now;
  const endS = now.startS + now.ticks * stepS;
  const startS = Math.max(before.startS, Math.floor((endS - spanS) / stepS) * stepS);
  const ticks = Math.round((endS - startS) / stepS);
  const shift = Math.round((startS - before.startS) / stepS);
  const offset = Math.round((now.startS - startS) / stepS);
  if (ticks <= now.ticks || shift < 0) return now;
  const machines = now.mean.length / now.ticks;
  const kept = Math.min(offset + BORROWED_TICKS, before.ticks - shift, ticks);
  const grid = withColumns({ ...now, startS }, ticks, machines, (read, write, column) => {
    const earlier = before[column] ?? null;
    for (let m = 0; m < machines; m++) {
      write.set(read.subarray(m * now.ticks, (m + 1) * now.ticks), m * ticks + offset);
      if (!earlier) continue;
      const from = m * before.ticks + shift;
      write.set(earlier.subarray(from, from + Math.max(0, kept)), m * ticks);
    }
  });
  let seen = 0;
  for (const value of grid.mean) if (value === value) seen++;
  return { ...grid, coverage: seen / grid.mean.length };
}

/** Makes all columns of a grid anew; those that are one and the same array stay so. */
function withColumns(
  grid: MetricGrid,
  ticks: number,
  machines: number,
  fill: (read: Float32Array | Uint8Array, write: Float32Array | Uint8Array, column: Column) => void,
): MetricGrid {
  const make = (column: "mean" | "low" | "high"): Float32Array => {
    const write = new Float32Array(machines * ticks).fill(NaN);
    fill(grid[column], write, column);
    return write;
  };
  const bytes = (column: "lowDevice" | "highDevice" | "reporting"): Uint8Array | null => {
    const read = grid[column];
    if (!read) return null;
    const write = new Uint8Array(machines * ticks);
    fill(read, write, column);
    return write;
  };
  const mean = make("mean");
  return {
    ...grid,
    ticks,
    mean,
    low: grid.low === grid.mean ? mean : make("low"),
    high: grid.high === grid.mean ? mean : make("high"),
    lowDevice: bytes("lowDevice"),
    highDevice: bytes("highDevice"),
    reporting: bytes("reporting"),
  };
}
