/** Exporters that call the same machines by different names: two halves of a fleet that cannot be joined. */
import type { Fleet } from "../../model/fleet.ts";
import { exporterOf, type Exporter } from "./absence.ts";

const LEAST_EACH = 3;

/** A sentence for the user; null where all is well. */
export function twoNames({ machines, grids }: Fleet): string | null {
  const seen = (exporter: Exporter): Uint8Array => {
    const has = new Uint8Array(machines.length);
    for (const grid of grids.filter((one) => exporterOf(one) === exporter)) {
      for (let m = 0; m < machines.length; m++) {
        for (let t = 0; t < grid.ticks && has[m] === 0; t++) {
          if (!Number.isNaN(grid.mean[m * grid.ticks + t]!)) has[m] = 1;
        }
      }
    }
    return has;
  };
  const gpu = seen("gpu");
  const host = seen("host");
  const only = (has: Uint8Array, lacks: Uint8Array): string[] =>
    machines.filter((_, m) => has[m] === 1 && lacks[m] === 0);
  const onlyGpu = only(gpu, host);
  const onlyHost = only(host, gpu);
  const both = machines.length - onlyGpu.length - onlyHost.length;
  if (Math.min(onlyGpu.length, onlyHost.length) < Math.max(LEAST_EACH, both)) return null;
  return `the exporters call machines by different names (${onlyGpu[0]} for GPUs, ${onlyHost[0]} for hosts), so that ${onlyGpu.length} machines have no host metrics and ${onlyHost.length} no GPU metrics: give both the same label (hostname, node or instance)`;
}
