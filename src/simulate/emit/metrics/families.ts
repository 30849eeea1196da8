/**
 * The metrics, by the names of their exporters, for each of Minder's 21 (Table 2; mapping in
 * shared/research/peers-metrics.md §1.3). Levels are those of an H100 node: 1,980 MHz, 700 W, 80 GB,
 * PCIe 5 x16, eight 400 Gbit/s RoCE NICs, 2 TiB of memory.
 */
import type { GpuEffect, MachineEffect } from "./effects.ts";
import type { GpuLevel } from "./levels.ts";

/** gauge: a level; counter: sums up; unknown: the same, as node_exporter's ethtool collector types it. */
export type MetricType = "gauge" | "counter" | "unknown";

interface Family {
  /** As a sample has it: a counter's ends in _total. */
  readonly name: string;
  readonly type: MetricType;
  readonly help: string;
  readonly decimals: number;
}

/** One series a GPU. `noise` is about ±1 and differs by sample, `bias` about ±1 and stays with the GPU. */
export interface GpuFamily extends Family {
  value(level: GpuLevel, noise: number, bias: number): number;
}

/** One series a NIC; a rate where it is a counter. */
export interface NicFamily extends Family {
  readonly source: "infiniband" | "ethtool";
  value(level: GpuLevel, noise: number, bias: number): number;
}

/** One series a machine and label set; a rate where it is a counter. */
export interface NodeFamily extends Family {
  readonly labels: readonly string[];
  value(
    effect: Readonly<MachineEffect>,
    noise: number,
    bias: number,
    label: number,
    second: number,
  ): number;
}

function gauge(name: string, help: string, decimals: number, value: GpuFamily["value"]): GpuFamily {
  return { name, type: "gauge", help, decimals, value };
}

const clamp = (value: number, least: number, most: number): number =>
  value < least ? least : value > most ? most : value;

const POWER_IDLE_W = 72;
const MEMORY_MIB = 81_559;

/** Collectives spin on a few SMs: the duty cycle stays at 100 % while power falls (peers-metrics, row 9). */
function powerW({ useful, communicate, effect }: GpuLevel, noise: number, bias: number): number {
  const busy = (560 * useful) / (effect.throttled ? Math.sqrt(effect.slow) : 1) + 95 * communicate;
  return clamp(POWER_IDLE_W + busy * (1 + 0.02 * noise) + 6 * bias, 60, 700);
}

export const GPU_FAMILIES: readonly GpuFamily[] = [
  gauge("DCGM_FI_DEV_SM_CLOCK", "SM clock frequency (in MHz).", 0, (level, noise, bias) => {
    if (level.idle > 0.9) return 345;
    const { throttled, slow } = level.effect;
    const clock = 1980 - 230 * level.useful + 6 * noise + 8 * bias;
    return clamp(15 * Math.round((throttled ? clock / slow : clock) / 15), 210, 1980);
  }),
  gauge("DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C).", 0, (level, noise, bias) => {
    if (level.effect.throttled) return 87 + 1.5 * bias + noise;
    return 29 + 0.055 * powerW(level, 0, bias) + 3 * bias + 0.4 * noise;
  }),
  gauge("DCGM_FI_DEV_POWER_USAGE", "Power draw (in W).", 3, powerW),
  gauge("DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).", 0, ({ idle }, noise) =>
    idle > 0.95 ? 0 : clamp(100 * (1 - idle) + 0.6 * noise, 0, 100),
  ),
  gauge(
    "DCGM_FI_DEV_FB_USED",
    "Framebuffer memory used (in MiB).",
    0,
    ({ effect }, noise, bias) => {
      if (effect.memory === "freed") return 4;
      if (effect.memory === "full") return MEMORY_MIB - 140 + 20 * noise;
      return 0.76 * MEMORY_MIB + 180 * bias + 6 * noise;
    },
  ),
  gauge(
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "Ratio of time the graphics engine is active.",
    6,
    ({ idle }, noise) => clamp(1 - idle + 0.004 * noise, 0, 1),
  ),
  gauge(
    "DCGM_FI_PROF_SM_ACTIVE",
    "The ratio of cycles an SM has at least 1 warp assigned.",
    6,
    ({ compute, communicate }, noise, bias) =>
      clamp((0.92 * compute + 0.16 * communicate) * (1 + 0.015 * noise + 0.01 * bias), 0, 1),
  ),
  gauge(
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "Ratio of cycles the tensor (HMMA) pipe is active.",
    6,
    // Kernels of a slowed GPU also stall more, so that it stays a little behind its peers.
    ({ useful, effect }, noise, bias) =>
      clamp(((0.46 * useful) / effect.slow ** 0.3) * (1 + 0.02 * noise + 0.01 * bias), 0, 1),
  ),
  gauge(
    "DCGM_FI_PROF_PIPE_FP32_ACTIVE",
    "Ratio of cycles the fp32 pipes are active.",
    6,
    ({ useful, communicate }, noise, bias) =>
      clamp((0.11 * useful + 0.004 * communicate) * (1 + 0.02 * noise + 0.01 * bias), 0, 1),
  ),
  gauge(
    "DCGM_FI_PROF_PIPE_FP16_ACTIVE",
    "Ratio of cycles the fp16 pipes are active.",
    6,
    ({ useful }, noise, bias) => clamp(0.05 * useful * (1 + 0.02 * noise + 0.01 * bias), 0, 1),
  ),
  gauge(
    "DCGM_FI_PROF_DRAM_ACTIVE",
    "Ratio of cycles the device memory interface is active sending or receiving data.",
    6,
    ({ useful, communicate }, noise, bias) =>
      clamp((0.36 * useful + 0.04 * communicate) * (1 + 0.02 * noise + 0.01 * bias), 0, 1),
  ),
  // Bytes a second since dcgm-exporter 4.0.0; a counter before.
  ...(["TX", "RX"] as const).map((way) =>
    gauge(
      `DCGM_FI_PROF_PCIE_${way}_BYTES`,
      `The rate of data ${way === "TX" ? "transmitted" : "received"} over the PCIe bus, both header and payload, in bytes per second.`,
      0,
      ({ nicPerS, idle, effect }, noise, bias) => {
        const wanted = (nicPerS + 3e7 * (1 - idle)) * (1 + 0.03 * noise + 0.01 * bias) + 2e5;
        return Math.min(wanted, PCIE_BYTES_PER_S[effect.linkGen]!);
      },
    ),
  ),
  gauge(
    "DCGM_FI_DEV_PCIE_LINK_GEN",
    "PCIe current link generation.",
    0,
    ({ effect }) => effect.linkGen,
  ),
  gauge("DCGM_FI_DEV_PCIE_LINK_WIDTH", "PCIe current link width.", 0, () => 16),
  ...(["TX", "RX"] as const).map((way) =>
    gauge(
      `DCGM_FI_PROF_NVLINK_${way}_BYTES`,
      `The rate of data ${way === "TX" ? "transmitted" : "received"} over NVLink, not including protocol headers, in bytes per second.`,
      0,
      ({ nvlinkPerS }, noise, bias) => nvlinkPerS * (1 + 0.02 * noise + 0.01 * bias) + 1000,
    ),
  ),
  gauge(
    "DCGM_FI_DEV_XID_ERRORS",
    "Value of the last XID error encountered.",
    0,
    ({ effect }) => effect.xid,
  ),
];

/** x16, one way, by generation. */
const PCIE_BYTES_PER_S: Readonly<Record<number, number>> = {
  1: 4e9,
  2: 8e9,
  3: 16e9,
  4: 32e9,
  5: 63e9,
};

const carries = (level: GpuLevel, noise: number, bias: number): number =>
  level.effect.linkDown ? 0 : (level.nicPerS + 4e4) * (1 + 0.03 * noise + 0.005 * bias);

/** A busy RoCE fabric always marks and pauses a little, in proportion to what it carries. */
const marks =
  (perGigabyte: number, factor: (effect: Readonly<GpuEffect>) => number): NicFamily["value"] =>
  (level, noise, bias) => {
    const strength = factor(level.effect);
    const traffic = Math.max(level.nicPerS / 1e9, strength > 1 ? 0.5 : 0);
    if (level.effect.linkDown) return 0;
    return Math.max(0, perGigabyte * strength * traffic * (1 + 0.4 * noise + 0.1 * bias));
  };

function nic(
  source: NicFamily["source"],
  type: MetricType,
  name: string,
  help: string,
  value: NicFamily["value"],
): NicFamily {
  return { source, type, name, help, decimals: 0, value };
}

const IB = "node_infiniband";

export const NIC_FAMILIES: readonly NicFamily[] = [
  nic(
    "ethtool",
    "unknown",
    "node_ethtool_transmitted_bytes_phy",
    "Network interface tx_bytes_phy",
    carries,
  ),
  nic(
    "ethtool",
    "unknown",
    "node_ethtool_transmitted_prio3_pause",
    "Network interface tx_prio3_pause",
    marks(3, ({ pfc }) => pfc),
  ),
  nic(
    "infiniband",
    "counter",
    `${IB}_port_data_transmitted_bytes_total`,
    "Number of data octets transmitted on all links",
    carries,
  ),
  nic(
    "infiniband",
    "counter",
    `${IB}_np_ecn_marked_roce_packets_received_total`,
    "Number of RoCEv2 packets received by the notification point which were marked for experiencing the congestion",
    marks(40, ({ congestion }) => congestion),
  ),
  nic(
    "infiniband",
    "counter",
    `${IB}_np_cnp_packets_sent_total`,
    "Number of CNP packets sent by the notification point",
    marks(12, ({ congestion }) => congestion),
  ),
  nic(
    "infiniband",
    "counter",
    `${IB}_rp_cnp_packets_handled_total`,
    "Number of CNP packets handled by the reaction point",
    marks(12, ({ congestion }) => congestion),
  ),
  nic(
    "infiniband",
    "gauge",
    `${IB}_state_id`,
    "State of the InfiniBand port (0: no change, 1: down, 2: init, 3: armed, 4: active, 5: act defer)",
    ({ effect }) => (effect.linkDown ? 1 : 4),
  ),
];

const MEMORY_BYTES = 2 * 1024 ** 4;
const DISK_BYTES = 1.75 * 1024 ** 4;
const ROOT = 'device="/dev/nvme0n1p2",fstype="ext4",mountpoint="/"';
const MODES = ["idle", "iowait", "system", "user"] as const;

/** Two logical CPUs stand for the machine's 192: the average over them is what is asked for. */
export const NODE_FAMILIES: readonly NodeFamily[] = [
  {
    name: "node_cpu_seconds_total",
    type: "counter",
    help: "Seconds the CPUs spent in each mode.",
    decimals: 2,
    labels: ["0", "1"].flatMap((cpu) => MODES.map((mode) => `cpu="${cpu}",mode="${mode}"`)),
    value({ cpu, contention, iowait }, noise, bias, label) {
      const job = 0.17 * cpu * (1 + 0.05 * noise + 0.04 * bias);
      const usage = clamp(job + contention * (1 + 0.05 * noise) + 0.005, 0.004, 0.985);
      const waits = Math.min(1 - usage, 0.002 + iowait);
      switch (MODES[label % MODES.length]!) {
        case "idle":
          return Math.max(0, 1 - usage - waits);
        case "iowait":
          return waits;
        case "system":
          return 0.2 * usage;
        case "user":
          return 0.8 * usage;
      }
    },
  },
  {
    name: "node_memory_MemAvailable_bytes",
    type: "gauge",
    help: "Memory information field MemAvailable_bytes.",
    decimals: 0,
    labels: [""],
    value: ({ memory }, noise, bias) =>
      MEMORY_BYTES * (1 - 0.03 - 0.29 * memory * (1 + 0.002 * noise + 0.01 * bias)),
  },
  {
    name: "node_memory_MemTotal_bytes",
    type: "gauge",
    help: "Memory information field MemTotal_bytes.",
    decimals: 0,
    labels: [""],
    value: () => MEMORY_BYTES,
  },
  {
    name: "node_filesystem_avail_bytes",
    type: "gauge",
    help: "Filesystem space available to non-root users in bytes.",
    decimals: 0,
    labels: [ROOT],
    // Logs grow by a few kilobytes a second.
    value: ({ diskBytes }, noise, bias, _label, second) =>
      DISK_BYTES * (0.62 + 0.03 * bias) - diskBytes - 4000 * second + 1e5 * noise,
  },
  {
    name: "node_filesystem_size_bytes",
    type: "gauge",
    help: "Filesystem size in bytes.",
    decimals: 0,
    labels: [ROOT],
    value: () => DISK_BYTES,
  },
  {
    name: "node_network_transmit_bytes_total",
    type: "counter",
    help: "Network device statistic transmit_bytes.",
    decimals: 0,
    labels: ['device="eth0"'],
    // Storage, logs and heartbeats: the kernel's path, which RDMA goes around.
    value: ({ tcp }, noise, bias) => Math.max(0, 2.4e6 * tcp * (1 + 0.25 * noise + 0.1 * bias)),
  },
];
