/** Names that could not be joined: halves of a fleet, of which one has the GPUs' metrics and the other the hosts'. */
import type { Fleet } from "../../../model/fleet.ts";
import { exporterOf, podsOf, type Exporter } from "../absence.ts";
import { listed } from "../words.ts";

const LEAST_EACH = 3;

export interface Halves {
  readonly onlyGpu: readonly number[];
  readonly onlyHost: readonly number[];
}

/** Null where most machines have both, or one of the exporters is not there at all. */
export function halvesOf({ machines, grids }: Pick<Fleet, "machines" | "grids">): Halves | null {
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
  const only = (has: Uint8Array, lacks: Uint8Array): number[] =>
    [...machines.keys()].filter((m) => has[m] === 1 && lacks[m] === 0);
  const onlyGpu = only(gpu, host);
  const onlyHost = only(host, gpu);
  const both = machines.length - onlyGpu.length - onlyHost.length;
  const isHalved = Math.min(onlyGpu.length, onlyHost.length) >= Math.max(LEAST_EACH, both);
  return isHalved ? { onlyGpu, onlyHost } : null;
}

/** Sentences for the user: what was not joined, and how to join it. */
export function notJoinedWords(fleet: Fleet): string[] {
  const { machines, names } = fleet;
  const halves = halvesOf(fleet);
  const disputed = names?.disputed ?? [];
  const pods = podsOf(fleet);
  return [
    ...(halves
      ? [
          `the exporters call machines by different names (${machines[halves.onlyGpu[0]!]} for GPUs, ${machines[halves.onlyHost[0]!]} for hosts) and nothing tells who is who, so that ${halves.onlyGpu.length} machines have no host metrics and ${halves.onlyHost.length} no GPU metrics: give both the same label (hostname, node or instance), keep node_uname_info or kube_pod_info, or give machineNames in --job FILE`,
        ]
      : []),
    ...(pods.length > 0
      ? [
          `${listed(pods)} ${pods.length === 1 ? "is the pod of an exporter, and nothing tells which machine it runs" : "are pods of exporters, and nothing tells which machines they run"} on: kubectl get pod -o wide does; kube_pod_info or a node label in the metrics would`,
        ]
      : []),
    ...(disputed.length > 0 && halves
      ? [`${listed(disputed)} stand for several machines each and join none of them`]
      : []),
  ];
}
