/** Which metrics there were: an answer without the metric that would have shown the fault is worth less. */
import { groupBy } from "../../base/group-by.ts";
import { CATALOG, catalogMetric } from "../../model/metric-catalog.ts";
import type { Fleet, MetricGrid } from "../../model/fleet.ts";
import type { MetricCoverage } from "../../model/machine-report.ts";
import { listed } from "./words.ts";

export function coverageOf({ grids }: Fleet): MetricCoverage[] {
  const byName = new Map(grids.map((grid) => [grid.metric, grid]));
  const ids = CATALOG.filter(({ isMinder }) => isMinder).map(({ id }) => id);
  const others = grids.map(({ metric }) => metric).filter((name) => !ids.includes(name));
  return [...ids, ...others].map((name) => {
    const grid = byName.get(name);
    return {
      name,
      source: grid?.source ?? "",
      coverage: grid ? Math.round(grid.coverage * 1000) / 1000 : 0,
      intervalS: grid?.stepS ?? 0,
    };
  });
}

/** Machines that lack what at least half of the others have: no sign of a fault, but they were not compared in it. */
export function notComparedWords({ machines, grids }: Fleet): string[] {
  const known = grids.flatMap((grid) => {
    const { title, sources } = catalogMetric(grid.metric) ?? { title: "", sources: [] };
    const has = machines.map((_, m) => hasSamples(grid, m));
    const isUsual = 2 * has.filter(Boolean).length >= machines.length;
    // What is computed from others lacks with them.
    return isUsual && sources.length > 0 ? [{ title, has }] : [];
  });
  const lacking = (m: number): string =>
    listed(known.filter(({ has }) => !has[m]).map(({ title }) => title));
  // One that has nothing at all is silent, which is another matter.
  const seen = [...machines.keys()].filter((m) => known.some(({ has }) => has[m]));
  return [...groupBy(seen, lacking)]
    .filter(([what]) => what !== "")
    .map(
      ([what, those]) =>
        `${listed(those.map((m) => machines[m]!))} ${those.length === 1 ? "has" : "have"} no samples of ${what} and could not be compared in that`,
    );
}

function hasSamples({ mean, ticks }: MetricGrid, m: number): boolean {
  return mean.subarray(m * ticks, (m + 1) * ticks).some((value) => value === value);
}
