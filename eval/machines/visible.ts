/** Whether a fault can be seen at all in what the task's site records. */
import type { Fleet } from "../../src/model/fleet.ts";
import { catalogMetric } from "../../src/model/metric-catalog.ts";
import type { FleetFault } from "./fleet/faults.ts";

/** In a job that halted nobody's NICs carry anything: there it shows by what is left. */
const THROUGHPUT_IN_HALTS = ["tcp-throughput", "ecn-packet-rate", "cnp-packet-rate"];

/** Where it shows: groups, states, "absence"; those alone for which the site has a metric. */
export function whereSeen(
  { shown, states, vanishes, reaction }: FleetFault,
  { grids }: Pick<Fleet, "grids">,
): string[] {
  const there = grids.filter(({ coverage }) => coverage > 0).map(({ metric }) => metric);
  const groups = shown.filter((group) =>
    there.some((metric) =>
      group === "throughput" && reaction === "wait"
        ? THROUGHPUT_IN_HALTS.includes(metric)
        : catalogMetric(metric)?.group === group,
    ),
  );
  // A dead machine shows nothing else.
  if (vanishes === "machine") return ["absence"];
  return [
    ...groups,
    ...states.filter((state) => there.includes(state)),
    ...(vanishes === null ? [] : ["absence"]),
  ];
}
