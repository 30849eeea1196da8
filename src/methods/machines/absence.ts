/**
 * Samples that are not there. Of a GPU that falls off the bus, and of a machine that dies, this is all there is to see;
 * a query that repeats the last sample, or padding, would hide it.
 */
import type { Fleet, MetricGrid } from "../../model/fleet.ts";

/** Which exporter a grid comes from, as far as it matters: they fail apart from each other. */
export type Exporter = "gpu" | "host";

export function exporterOf({ metric, source }: MetricGrid): Exporter {
  return /^(dcgm|nvidia)/i.test(source) || metric.startsWith("gpu-") ? "gpu" : "host";
}

/** Machines of which no more than an exporter's pod is known. */
export function podsOf({ machines, names }: Pick<Fleet, "machines" | "names">): string[] {
  const pods = new Set(names?.joined.flatMap(({ machine, isPod }) => (isPod ? machine : [])));
  return machines.filter((machine) => pods.has(machine));
}

export interface Silence {
  readonly machine: number;
  readonly fromS: number;
  readonly toS: number;
  /** Whether it lasts to the end. */
  readonly isOpen: boolean;
  /** null: of all exporters. */
  readonly exporter: Exporter | null;
  /** The largest sampling interval among what is silent. */
  readonly stepS: number;
}

export interface LostDevice {
  readonly machine: number;
  readonly fromS: number;
  readonly had: number;
  readonly has: number;
  readonly what: "gpus" | "nics";
  readonly stepS: number;
}

/** Gaps of so many intervals are a lost scrape or two. */
const LEAST_GAP_STEPS = 4;
/** The end of a file or a query is no deadline: who is late by a scrape or two has not fallen silent. */
const LEAST_MISSED = 4;
/** Than the longest gap from which the same exporter came back. */
const LONGER_THAN_USUAL = 1.5;
/** A device is gone when so many scrapes of the others came without it. */
const LEAST_WITHOUT = 3;

/** When a machine was last seen, by exporter; -Infinity where it never was. */
function lastSeen(grids: readonly MetricGrid[], machines: number): Float64Array {
  const last = new Float64Array(machines).fill(-Infinity);
  for (const { mean, ticks, startS, stepS } of grids) {
    for (let m = 0; m < machines; m++) {
      let t = ticks - 1;
      while (t >= 0 && Number.isNaN(mean[m * ticks + t]!)) t--;
      if (t >= 0) last[m] = Math.max(last[m]!, startS + (t + 1) * stepS);
    }
  }
  return last;
}

/** Not the very last: one machine whose clock is ahead must not make the others look dead. */
function usualEnd(lastSeenS: Float64Array): number {
  const seen = lastSeenS.filter((one) => one > -Infinity).sort();
  const ahead = seen.length > 2 ? Math.max(1, Math.floor(0.1 * seen.length)) : 0;
  return seen[seen.length - 1 - ahead] ?? -Infinity;
}

/** Seconds: the longest time after which this exporter of a machine came back, by the metric it has most of. */
function longestGap(grids: readonly MetricGrid[], m: number): number {
  const [grid] = grids.toSorted((a, b) => b.coverage - a.coverage);
  if (!grid) return 0;
  const { mean, ticks, stepS } = grid;
  let longest = 0;
  let last = -1;
  for (let t = 0; t < ticks; t++) {
    if (Number.isNaN(mean[m * ticks + t]!)) continue;
    if (last >= 0) longest = Math.max(longest, t - last - 1);
    last = t;
  }
  return longest * stepS;
}

/**
 * Who has stopped reporting, by each exporter's own habit. A machine is silent when all that the fleet has exporters for
 * are; of one that only one exporter tells of, or that is known as an exporter's pod alone, no more than that one is.
 */
export function silences(fleet: Fleet): Silence[] {
  const machines = fleet.machines.length;
  const pods = new Set(podsOf(fleet));
  const all: Silence[] = [];
  const seen: Partial<Record<Exporter, Float64Array>> = {};
  const end: Partial<Record<Exporter, number>> = {};
  const steps: Partial<Record<Exporter, number>> = {};
  for (const exporter of ["gpu", "host"] as const) {
    const grids = fleet.grids.filter((grid) => exporterOf(grid) === exporter);
    if (grids.length === 0) continue;
    seen[exporter] = lastSeen(grids, machines);
    end[exporter] = usualEnd(seen[exporter]);
    steps[exporter] = grids.reduce((step, grid) => Math.max(step, grid.stepS), 0);
  }
  const exporters = Object.keys(seen) as Exporter[];
  for (let m = 0; m < machines; m++) {
    const before = fleet.lastSeenS?.[m] ?? -Infinity;
    if (before > -Infinity && exporters.every((exporter) => seen[exporter]![m] === -Infinity)) {
      const toS = exporters.reduce((latest, one) => Math.max(latest, end[one]!), -Infinity);
      const stepS = exporters.reduce((largest, one) => Math.max(largest, steps[one]!), 0);
      all.push({ machine: m, fromS: before, toS, isOpen: true, exporter: null, stepS });
      continue;
    }
    const silent = exporters.filter((exporter) => {
      const last = seen[exporter]![m]!;
      const missedS = end[exporter]! - last;
      if (last === -Infinity || missedS < LEAST_MISSED * steps[exporter]!) return false;
      const own = fleet.grids.filter((grid) => exporterOf(grid) === exporter);
      return missedS > LONGER_THAN_USUAL * longestGap(own, m);
    });
    const reports = exporters.filter((exporter) => seen[exporter]![m]! > -Infinity);
    if (silent.length === 0) continue;
    const isWhole =
      silent.length === exporters.length &&
      reports.length === exporters.length &&
      !pods.has(fleet.machines[m]!);
    for (const exporter of isWhole ? silent.slice(0, 1) : silent) {
      const fromS = isWhole
        ? silent.reduce((latest, one) => Math.max(latest, seen[one]![m]!), -Infinity)
        : seen[exporter]![m]!;
      const stepS = steps[exporter]!;
      const toS = end[exporter]!;
      all.push({
        machine: m,
        fromS,
        toS,
        isOpen: true,
        exporter: isWhole ? null : exporter,
        stepS,
      });
    }
  }
  return all;
}

/** Times without any sample after which the machine came back. */
export function gaps(fleet: Fleet, leastS: number): Silence[] {
  return (["gpu", "host"] as const).flatMap((exporter) => {
    const grid = fleet.grids.find((one) => exporterOf(one) === exporter);
    return grid ? gapsOf(fleet, grid, exporter, leastS) : [];
  });
}

function gapsOf(fleet: Fleet, grid: MetricGrid, exporter: Exporter, leastS: number): Silence[] {
  const { mean, ticks, startS, stepS } = grid;
  const least = Math.max(LEAST_GAP_STEPS, Math.ceil(leastS / stepS));
  const found: Silence[] = [];
  for (let m = 0; m < fleet.machines.length; m++) {
    let last = -1;
    for (let t = 0; t < ticks; t++) {
      if (Number.isNaN(mean[m * ticks + t]!)) continue;
      if (last >= 0 && t - last > least) {
        const fromS = startS + (last + 1) * stepS;
        found.push({ machine: m, fromS, toS: startS + t * stepS, isOpen: false, exporter, stepS });
      }
      last = t;
    }
  }
  return found;
}

/** Gaps of a whole machine: of both exporters at once, where there are both. */
export function absences(fleet: Fleet, found: readonly Silence[], leastS: number): Silence[] {
  const exporters = new Set(fleet.grids.map(exporterOf));
  if (exporters.size === 1) return found.filter(({ fromS, toS }) => toS - fromS >= leastS);
  return found
    .filter(({ exporter }) => exporter === "gpu")
    .flatMap((gpu) => {
      const host = found.find(
        (other) =>
          other.exporter === "host" &&
          other.machine === gpu.machine &&
          Math.min(other.toS, gpu.toS) - Math.max(other.fromS, gpu.fromS) >= leastS,
      );
      return host ? [{ ...gpu, fromS: Math.max(gpu.fromS, host.fromS), exporter: null }] : [];
    });
}

/** Machines that report fewer GPUs, or NICs, than they did, up to the end. */
/** A table with a row for each GPU repeats the host's metrics by GPU. */
function isOfGpus(grid: MetricGrid): boolean {
  return exporterOf(grid) === "gpu" || (grid.devices[0] ?? "").startsWith("gpu");
}

export function lostDevices(fleet: Fleet, leastS: number): LostDevice[] {
  const found: LostDevice[] = [];
  for (const what of ["gpus", "nics"] as const) {
    const grids = fleet.grids.filter(
      (grid) => grid.reporting !== null && (what === "gpus") === isOfGpus(grid),
    );
    if (grids.length === 0) continue;
    for (let m = 0; m < fleet.machines.length; m++) {
      const losses = grids.map((grid) => lossOf(grid, m, leastS)).filter((loss) => loss !== null);
      // One metric that lacks a device is a field that the exporter dropped; all of them is the device.
      if (losses.length * 2 <= grids.length) continue;
      const first = losses.reduce((a, b) => (b.fromS < a.fromS ? b : a));
      found.push({ machine: m, what, ...first });
    }
  }
  return found;
}

function lossOf(
  { reporting, ticks, startS, stepS }: MetricGrid,
  m: number,
  leastS: number,
): { fromS: number; had: number; has: number; stepS: number } | null {
  const row = reporting!.subarray(m * ticks, (m + 1) * ticks);
  let end = ticks;
  while (end > 0 && row[end - 1] === 0) end--;
  if (end === 0) return null;
  const had = row.reduce((most, count) => Math.max(most, count), 0);
  // From the end backwards: how long have there been fewer? A lost scrape of the rest does not count.
  let from = end;
  while (from > 0 && row[from - 1]! < had) from--;
  if (from === 0 || end - from < LEAST_WITHOUT || (end - from) * stepS < leastS) return null;
  const has = row.subarray(from, end).reduce((most, count) => Math.max(most, count), 0);
  return { fromS: startS + from * stepS, had, has, stepS };
}
