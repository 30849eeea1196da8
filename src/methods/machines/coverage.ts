/** Which metrics there were: an answer without the metric that would have shown the fault is worth less. */
import { CATALOG } from "../../model/metric-catalog.ts";
import type { Fleet } from "../../model/fleet.ts";
import type { MetricCoverage } from "../../model/machine-report.ts";

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
