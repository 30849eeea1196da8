/** What to look at on a machine that is not unlike its peers, by what it is suspected of. */
import type { Cause } from "../../model/cause.ts";
import type { Suspect } from "../../model/verdict.ts";
import { isOfNetwork } from "../who.ts";

/** Of the catalog, and of a machine's devices the one that matters. */
export type PlainMetric = readonly [metric: string, device: "low" | "high"];

/** Whether it is hot, throttled or idle. */
const ANY: readonly PlainMetric[] = [
  ["gpu-temperature", "high"],
  ["gpu-power-draw", "low"],
  ["gpu-duty-cycle", "low"],
];
const GPU: readonly PlainMetric[] = [["gpu-clocks", "low"], ...ANY];
/** Exporters report only what is sent; a machine that sends too little is slow, and pauses and marks say why. */
const NETWORK: readonly PlainMetric[] = [
  ["tcp-rdma-throughput", "low"],
  ["tcp-throughput", "low"],
  ["pfc-tx-packet-rate", "high"],
  ["port-transmit-wait", "high"],
  ["ecn-packet-rate", "high"],
  ["cnp-packet-rate", "high"],
  ["infiniband-port-state", "low"],
];
const HOST: readonly PlainMetric[] = [
  ["cpu-usage", "high"],
  ["memory-usage", "high"],
  ["disk-usage", "high"],
];

const GPU_CAUSES: ReadonlySet<Cause> = new Set(["gpu-slow", "gpu-hang", "gpu-error", "gpu-memory"]);
const HOST_CAUSES: ReadonlySet<Cause> = new Set([
  "cpu-stall",
  "dataloader",
  "storage",
  "host-memory",
  "garbage-collection",
]);

export type Suspected = Pick<Suspect, "type" | "cause" | "machine">;

/** Of those that there are; where there are none of the suspicion's, what tells of any machine. */
export function plainMetrics(
  suspects: readonly Suspected[],
  there: ReadonlySet<string>,
): readonly PlainMetric[] {
  const had = (metrics: readonly PlainMetric[]): PlainMetric[] =>
    metrics.filter(([metric]) => there.has(metric));
  const wanted = [...new Set(suspects.map(metricsOf))].flatMap(had);
  const one = new Map(wanted.map((metric) => [metric[0], metric]));
  return one.size > 0 ? [...one.values()] : had(ANY);
}

function metricsOf(suspect: Suspected): readonly PlainMetric[] {
  const { type, cause } = suspect;
  if (isOfNetwork(suspect)) return NETWORK;
  if (type === "storage" || HOST_CAUSES.has(cause)) return HOST;
  return type === "gpu" || GPU_CAUSES.has(cause) ? GPU : ANY;
}
