/** Deviations in words. */
import { amount } from "../../base/amount.ts";
import { catalogMetric, unknownMetric } from "../../model/metric-catalog.ts";
import { healthCounter, partWords } from "../../model/health-counters.ts";
import { SHARED_GPU } from "./stray-process.ts";
import type { Deviation } from "../../model/machine-report.ts";

/** "gpu3's GPU power 71 W, peers 512 W". */
export function deviationWords(deviation: Deviation): string {
  const { metric, device, value, peers, direction } = deviation;
  const health = healthCounter(metric);
  if (health && direction === health.harm) {
    const since = new Date(Math.round(1000 * deviation.fromS)).toISOString().slice(11, 16);
    return `${health.says(partWords(device), value, peers)} since ${since}`;
  }
  if (metric === "reporting") {
    return device === null
      ? "stopped reporting"
      : `its ${device === "gpu" ? "GPU" : "host"} exporter stopped reporting`;
  }
  if (metric === "gpus" || metric === "nics") {
    const what = metric === "gpus" ? "GPUs" : "NICs";
    return `reports ${value} ${what} where it had ${peers}`;
  }
  if (metric === SHARED_GPU) {
    const whose = device === null ? "a GPU" : partWords(device);
    return `${whose} works on at ${amount(value, "share")} of its power before while its peers wait (${amount(peers, "share")}): another process shares it`;
  }
  const { title, unit } = catalogMetric(metric) ?? unknownMetric(metric);
  const whose = device === null ? "" : `${device}: `;
  const frozen = direction === "frozen" ? " frozen at" : "";
  return `${whose}${title}${frozen} ${amount(value, unit)}, peers ${amount(peers, unit)}`;
}
