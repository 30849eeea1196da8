/**
 * Sites as they are: the label sets and metrics that charts ship, samples of 15 to 60 s, faults that slow a job for minutes
 * and then halt it beside Minder's, other tenants, exporters that restart. Shares are assumed, and said here.
 */
import { Draw } from "./draw.ts";
import { DEPLOYMENTS, type Deployment } from "./deployments.ts";
import { drawTask, FAULT_MIX } from "./draw-task.ts";
import { SLOW_FACTOR, type FaultType, type GivenFault, type SlowType } from "./faults.ts";
import type { FleetTaskOptions } from "./fleet-task.ts";

/** What dcgm-exporter's default-counters.csv and node_exporter without flags have of what is simulated. */
const DEFAULT_METRICS: readonly string[] = [
  "DCGM_FI_DEV_SM_CLOCK",
  "DCGM_FI_DEV_GPU_TEMP",
  "DCGM_FI_DEV_POWER_USAGE",
  "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
  "DCGM_FI_DEV_GPU_UTIL",
  "DCGM_FI_DEV_FB_USED",
  "DCGM_FI_DEV_XID_ERRORS",
  "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
  "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
  "DCGM_FI_PROF_DRAM_ACTIVE",
  "DCGM_FI_PROF_PCIE_TX_BYTES",
  "DCGM_FI_PROF_PCIE_RX_BYTES",
  "node_cpu_seconds_total",
  "node_memory_MemAvailable_bytes",
  "node_memory_MemTotal_bytes",
  "node_filesystem_avail_bytes",
  "node_filesystem_size_bytes",
  "node_network_transmit_bytes_total",
  "node_infiniband_port_data_transmitted_bytes_total",
  "node_infiniband_state_id",
];
const DEFAULT_SHARE = 0.5;
/** Half of the faults slow the job, half are Minder's. */
const SLOW_SHARE = 0.5;
const TENANT_SHARE = 0.3;

export interface SiteTask {
  readonly task: FleetTaskOptions;
  readonly deployment: Deployment;
  /** null: all that there is. */
  readonly names: ReadonlySet<string> | null;
  /** Another job on machines of the same cluster; null: none. */
  readonly tenant: FleetTaskOptions | null;
  readonly restarts: number;
  readonly late: number;
}

export interface SiteChoice {
  readonly stepS?: number;
  readonly deployment?: Deployment;
  /** No more machines than this. */
  readonly most?: number;
  /** Nobody gives the job's file. */
  readonly untold?: boolean;
}

export function drawSite(seed: number, isFaulty: boolean, choice: SiteChoice = {}): SiteTask {
  const draw = new Draw(seed, "site");
  const drawn = drawTask(seed, isFaulty);
  const machines = Math.round(draw.magnitude(0, 4, Math.min(256, choice.most ?? 256)));
  const stepS = choice.stepS ?? draw.pick(1, [1, 5, 10, 15, 15, 30, 30, 60]);
  // Nobody keeps less than twenty minutes, and at a minute between samples nobody asks about a quarter of an hour.
  const seconds = Math.round(draw.within(2, 1200, 1800) * (stepS >= 60 ? 1.5 : 1));
  const isDefault = draw.chance(3, DEFAULT_SHARE);
  const stages = [1, 2, 4].filter((pp) => pp * 4 <= machines);
  const task: FleetTaskOptions = {
    ...drawn,
    machines,
    stepS,
    seconds,
    pp: draw.pick(4, stages),
    fault: isFaulty ? drawSiteFault(draw, machines, seconds, isDefault) : null,
  };
  const tenants = Math.max(2, Math.round(machines * draw.within(6, 0.25, 1)));
  return {
    task,
    deployment: choice.deployment ?? draw.pick(5, DEPLOYMENTS),
    names: isDefault ? new Set(DEFAULT_METRICS) : null,
    tenant: draw.chance(7, TENANT_SHARE)
      ? { ...drawTask(seed ^ 0x7e4a47, false), machines: tenants, pp: 1, stepS, seconds }
      : null,
    restarts: 0.5,
    late: draw.within(8, 0, 0.06),
  };
}

function drawSiteFault(
  draw: Draw,
  machines: number,
  seconds: number,
  isDefault: boolean,
): GivenFault {
  const onsetS = Math.round(draw.within(10, 0.3, 0.6) * seconds);
  const lastsS = draw.within(11, 300, 480);
  // A narrow link shows in nothing that the default metrics have.
  const slow = (Object.keys(SLOW_FACTOR) as SlowType[]).filter(
    (type) => !isDefault || type !== "pcie-width",
  );
  const type: FaultType = draw.chance(12, SLOW_SHARE)
    ? draw.pick(13, slow)
    : draw.weighted(14, FAULT_MIX);
  const endS = Math.round(onsetS + lastsS);
  return {
    type,
    machines: [draw.whole(15, machines)],
    onsetS,
    untilS: endS < seconds ? endS : null,
  };
}
