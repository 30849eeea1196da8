/** Fleets put together: metrics that were pulled one by one, and the minutes since the last call. */
import type { Fleet, MetricGrid } from "../../model/fleet.ts";

/** Metrics of the same machines, some of which may be lacking in some. */
export function mergeMetrics(fleets: readonly Fleet[]): Fleet | null {
  const [first] = fleets;
  if (!first) return null;
  const machines = [...new Set(fleets.flatMap((fleet) => fleet.machines))].sort();
  const roleOf = new Map<string, string>();
  for (const fleet of fleets) {
    fleet.machines.forEach((machine, m) => roleOf.set(machine, fleet.roles[fleet.role[m]!]!));
  }
  const roles = [...new Set(roleOf.values())].sort();
  return {
    machines,
    role: Int32Array.from(machines, (machine) => roles.indexOf(roleOf.get(machine)!)),
    roles,
    grids: fleets.flatMap((fleet) =>
      fleet.grids.map((grid) => placed(grid, fleet.machines, machines)),
    ),
    missing: [...new Set(fleets.flatMap((fleet) => fleet.missing))],
  };
}

/**
 * What was seen before, with the new minutes behind it: a call every eight minutes on fifteen minutes of data need not
 * pull the seven that it already has. The first two intervals of the new part lack the sample before them and are
 * taken from the old one. Metrics whose interval changed, and new ones, come as they are.
 */
export function extendFleet(old: Fleet, fresh: Fleet, spanS: number): Fleet {
  const both = mergeMetrics([
    { ...old, grids: [] },
    { ...fresh, grids: [] },
  ])!;
  const machines = both.machines;
  const grids = fresh.grids.map((grid) => {
    const before = old.grids.find(
      (other) =>
        other.metric === grid.metric &&
        other.source === grid.source &&
        other.stepS === grid.stepS &&
        other.devices.join() === grid.devices.join(),
    );
    const now = placed(grid, fresh.machines, machines);
    return before ? appended(placed(before, old.machines, machines), now, spanS) : now;
  });
  return { ...both, grids, missing: fresh.missing };
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
