/**
 * From raw samples to a fleet: every metric of the catalog that has a source, on a grid of its own sampling interval.
 * Minder aligns and pads with the nearest sample (§4.1); padding hides exactly the machines that died, so here a tick
 * without a sample stays empty.
 */
import { getOrInsert } from "../../base/group-by.ts";
import { CATALOG, catalogMetric, unknownMetric } from "../../model/metric-catalog.ts";
import type { CatalogMetric, MetricSource } from "../../model/metric-catalog.ts";
import type { Fleet, MetricGrid } from "../../model/fleet.ts";
import type { MetricSet } from "../../model/metrics.ts";
import { median } from "../../maths/robust.ts";
import { linkUsage } from "./link-usage.ts";
import { GridMaker, type Placed } from "./grid-maker.ts";
import { joinSets, type JoinedNames } from "./names/join-names.ts";
import { onceEach } from "./names/once-each.ts";
import type { Ticks } from "./grid-rows.ts";
import { offClocks } from "./off-clocks.ts";
import { rolesOf, type RoleHints } from "./roles.ts";

const MAX_CELLS = 64_000_000;
const LEAST_SLACK_S = 600;

export interface AlignOptions extends RoleHints {
  /** Unix seconds; samples outside are left out. */
  readonly fromS?: number;
  readonly toS?: number;
  /** The job's machines, by their joined names; others are left out. All of them where it is not given. */
  readonly only?: ReadonlySet<string>;
  /** Who is who, where more is known than these sets tell. */
  readonly names?: JoinedNames;
}

export function alignFleet(sets: readonly MetricSet[], options: AlignOptions = {}): Fleet {
  const { nameOf, joined, disputed } = options.names ?? joinSets(sets);
  const seen = [...new Set(sets.flatMap((set) => set.machines.map(nameOf)))].sort();
  const machines = options.only ? seen.filter((machine) => options.only!.has(machine)) : seen;
  const numberOf = new Map(machines.map((machine, m) => [machine, m]));
  const byName = new Map<string, Placed[]>();
  for (const set of sets) {
    const place = Int32Array.from(set.machines, (machine) => numberOf.get(nameOf(machine)) ?? -1);
    for (const samples of set.samples) {
      getOrInsert(byName, samples.name, () => []).push({
        samples,
        machine: samples.machine.map((m) => place[m]!),
      });
    }
  }
  // One set, and nobody in it under two names, says nothing twice.
  const isPlain = sets.length === 1 && seen.length === sets[0]!.machines.length;
  if (!isPlain) for (const [name, placed] of byName) byName.set(name, onceEach(placed));
  const hardware = hardwareOf(sets, machines, nameOf);
  const { isOff, missing } = offClocks(machines, [...byName.values()].flat());
  const grids: MetricGrid[] = [];
  for (const metric of CATALOG) {
    const grid = gridOf(metric, byName, machines.length, isOff, options);
    if (grid) grids.push(grid);
  }
  const known = new Set(
    CATALOG.flatMap(({ id, sources }) => [id, ...sources.flatMap((s) => s.names)]),
  );
  for (const name of byName.keys()) {
    if (known.has(name) || catalogMetric(name)) continue;
    const grid = gridOf(unknownMetric(name), byName, machines.length, isOff, options);
    if (grid) grids.push(grid);
  }
  const usage = linkUsage(grids);
  if (usage && !grids.some(({ metric }) => metric === "pcie-usage")) grids.push(usage);
  if (machines.length < seen.length) {
    missing.push(
      `${seen.length - machines.length} of ${seen.length} monitored machines are not the job's and were left out`,
    );
  }
  const { role, roles } = rolesOf(machines, hardware, options);
  const isCut = sets.some((set) => set.isCut === true);
  const names = { joined, disputed };
  const isJob = options.only !== undefined;
  return {
    machines,
    role,
    roles,
    grids,
    missing,
    names,
    ...(isCut ? { isCut } : {}),
    ...(isJob ? { isJob } : {}),
  };
}

function hardwareOf(
  sets: readonly MetricSet[],
  machines: readonly string[],
  nameOf: (machine: string) => string,
): (string | null)[] {
  const models = new Map<string, string>();
  for (const set of sets) {
    set.machines.forEach((machine, m) => {
      const model = set.hardware[m];
      if (model) models.set(nameOf(machine), model);
    });
  }
  return machines.map((machine) => models.get(machine) ?? null);
}

/** The first source that has samples; one that has twice the machines of an earlier one is better. */
function gridOf(
  metric: CatalogMetric,
  byName: ReadonlyMap<string, readonly Placed[]>,
  machines: number,
  isOff: Uint8Array,
  options: AlignOptions,
): MetricGrid | null {
  // A table's column carries the catalog's own word; a word that is nobody's may be a counter's.
  const own: MetricSource = { names: [metric.id], how: "level" };
  const isCounter = metric.sources.some(({ names }) => names.includes(metric.id));
  const alternatives = (isCounter ? metric.sources : [own, ...metric.sources])
    .map((source) => withWhatIsThere(source, byName))
    .filter((source) => source !== null)
    .map((source) => ({ source, seen: machinesWith(byName.get(source.names[0]!)!, machines) }));
  let best = alternatives[0];
  for (const other of alternatives) if (best && other.seen > 2 * best.seen) best = other;
  if (!best) return null;
  const placed = best.source.names.map((name) => byName.get(name)!);
  const ticks = ticksOf(placed[0]!, machines, isOff, options);
  return ticks && new GridMaker(metric, best.source, ticks, machines, isOff).make(placed);
}

/** Of a sum whatever there is (an exporter may have TX alone); of a share both parts. */
function withWhatIsThere(
  source: MetricSource,
  byName: ReadonlyMap<string, readonly Placed[]>,
): MetricSource | null {
  const names = source.names.filter((name) => byName.has(name));
  const isShare = source.how === "used-share" || source.how === "full";
  if (names.length === 0 || (isShare && names.length < 2)) return null;
  return names.length === source.names.length ? source : { ...source, names };
}

function machinesWith(placed: readonly Placed[], machines: number): number {
  const seen = new Uint8Array(machines);
  for (const { machine } of placed) for (const m of machine) if (m >= 0) seen[m] = 1;
  return seen.reduce((sum, one) => sum + one, 0);
}

/** The sampling interval that was seen, and the time that all series span. */
function ticksOf(
  placed: readonly Placed[],
  machines: number,
  isOff: Uint8Array,
  { fromS = -Infinity, toS = Infinity }: AlignOptions,
): Ticks | null {
  const intervals: number[] = [];
  const firsts: number[] = [];
  const lasts: number[] = [];
  let first = Infinity;
  let last = -Infinity;
  for (const { samples, machine } of placed) {
    const { start, timeS } = samples;
    const every = Math.max(1, Math.floor((start.length - 1) / 500));
    for (let s = 0; s + 1 < start.length; s++) {
      const from = start[s]!;
      const to = start[s + 1]!;
      if (from === to || machine[s]! < 0 || isOff[machine[s]!] === 1) continue;
      firsts.push(timeS[from]!);
      lasts.push(timeS[to - 1]!);
      first = Math.min(first, timeS[from]!);
      last = Math.max(last, timeS[to - 1]!);
      if (s % every !== 0 || to - from < 3) continue;
      const gaps = Float64Array.from({ length: Math.min(to - from - 1, 201) }, (_, i) => {
        return timeS[from + i + 1]! - timeS[from + i]!;
      });
      intervals.push(median(gaps));
    }
  }
  // One absurd time must not stretch the grid to years.
  const usualFirst = median(firsts);
  const usualLast = median(lasts);
  const slack = Math.max(LEAST_SLACK_S, usualLast - usualFirst);
  first = Math.max(first, fromS, usualFirst - slack);
  last = Math.min(last, toS, usualLast + slack);
  if (!(last > first) || intervals.length === 0) return null;
  const seenS = tidy(median(intervals));
  const stepS = Math.max(seenS, ((last - first) * machines) / MAX_CELLS);
  const startS = Math.floor(first / stepS) * stepS;
  return { startS, stepS, ticks: Math.floor((last - startS) / stepS) + 1 };
}

/** 14.998 → 15; millisecond data keep their millisecond. */
function tidy(stepS: number): number {
  const unit = stepS >= 0.5 ? 1 : 10 ** Math.floor(Math.log10(stepS));
  const whole = Math.round(stepS / unit) * unit;
  return Math.abs(whole - stepS) < 0.05 * stepS ? whole : stepS;
}
