/** What a metric that is unlike the peers' says, in words. */
import { amount } from "../base/amount.ts";
import { healthCounter, partWords } from "./health-counters.ts";
import type { Deviation } from "./machine-report.ts";
import { catalogMetric, unknownMetric } from "./metric-catalog.ts";

export type Measured = Pick<Deviation, "metric" | "direction" | "device" | "value" | "peers">;

/** What deviates where another process shares a GPU (methods/machines/stray-process.ts). */
export const SHARED_GPU = "shared-gpu";
/** What deviates where a process came onto a GPU (methods/machines/memory-step.ts). */
export const STRAY_MEMORY = "stray-memory";

/** Whether a counter names the physical cause by itself; then its sentence says since when, too. */
export function isHealthCounter({ metric, direction }: Measured): boolean {
  return healthCounter(metric)?.harm === direction;
}

/** "gpu3: GPU power 71 W, peers 512 W". */
export function measuredWords(measured: Measured): string {
  const { metric, device, value, peers, direction } = measured;
  const health = healthCounter(metric);
  if (health && direction === health.harm) return health.says(partWords(device), value, peers);
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
  if (metric === STRAY_MEMORY) {
    const whose = device === null ? "its GPUs" : partWords(device);
    return `the memory in use on ${whose} rose by ${amount(value, "MiB")} at once, on no other machine: another process came onto it`;
  }
  const whose = device === null ? "" : `${device}: `;
  return `${whose}${figureWords(measured)}`;
}

/** Without the device: "GPU clock 645 MHz, peers 1,890 MHz". */
function figureWords({ metric, direction, value, peers }: Measured): string {
  const { title, unit } = catalogMetric(metric) ?? unknownMetric(metric);
  const frozen = direction === "frozen" ? " frozen at" : "";
  return `${title}${frozen} ${amount(value, unit)}, peers ${amount(peers, unit)}`;
}

export interface Physical {
  readonly what: string;
  readonly device: string | null;
  readonly isThrottled: boolean;
}

const MOST_FIGURES = 2;
/** What a GPU does when it waits, whoever is at fault: no reader learns the cause by it. */
const SYMPTOMS: ReadonlySet<string> = new Set(["gpu-duty-cycle", "gpu-power-draw"]);

/**
 * What is physically wrong, as a predicate: "is throttled: GPU clock 645 MHz, peers 1,890 MHz; 90 °C". null where the
 * metrics show nothing of the device. `device`: "gpu5", where one device is meant; metrics of others do not count.
 */
export function physicalWords(
  metrics: readonly Measured[],
  device: string | null,
): Physical | null {
  const own = metrics.filter(
    (one) => device === null || one.device === null || one.device === device,
  );
  // A GPU that failed idles: its clock is low because nobody uses it.
  const isFailed = own.some(({ metric }) => metric === "xid-errors");
  const clock = own.find(({ metric, direction }) => metric === "gpu-clocks" && direction === "low");
  if (clock && !isFailed) {
    const heat = own.find((one) => one.metric === "gpu-temperature" && one.value > one.peers);
    const hot = heat ? ` at ${amount(heat.value, "°C")}` : "";
    const { value, peers } = clock;
    return {
      what: `is throttled: ${amount(value, "MHz")}${hot}, peers ${amount(peers, "MHz")}`,
      device: clock.device,
      isThrottled: true,
    };
  }
  const telling = own.filter(({ metric }) => !SYMPTOMS.has(metric));
  const named = telling.filter(isHealthCounter);
  const shown = (named.length > 0 ? named : telling).slice(0, MOST_FIGURES);
  if (shown.length === 0) return null;
  const what = `stands out: ${shown.map(measuredWords).join("; ")}`;
  return { what, device: shown[0]!.device, isThrottled: false };
}
