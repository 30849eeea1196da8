/** What dcgm-exporter shows of a GPU. */
import type { GpuFamily, GpuSight } from "./families.ts";
import type { GpuLevel } from "./levels.ts";
import { NO_SPREAD, type Scale, type Spread } from "./spread.ts";

const MEMORY_MIB = 81_559;
const POWER_IDLE_W = 72;
const SHARE: Scale = { least: 0, most: 1, quantum: 0 };
const ANY: Scale = { least: 0, most: Infinity, quantum: 0 };
const WHOLE: Scale = { least: 0, most: Infinity, quantum: 1 };

const relative = (
  machine: number,
  device: number,
  slow: number,
  fast: number,
  common: number,
): Spread => ({ unit: "relative", machine, device, slow, fast, common });
const absolute = (
  machine: number,
  device: number,
  slow: number,
  fast: number,
  common: number,
): Spread => ({ unit: "absolute", machine, device, slow, fast, common });

interface Rest {
  readonly sees?: GpuSight;
  readonly lagS?: number;
}
type Draft = Omit<GpuFamily, "id">;

function gauge(
  name: string,
  help: string,
  decimals: number,
  scale: Scale,
  spread: Spread,
  level: GpuFamily["level"],
  { sees = "activity", lagS = 0 }: Rest = {},
): Draft {
  const type = "gauge";
  return { name, type, help, decimals, ...scale, spread, level, sees, lagS, source: "dcgm" };
}

/** Collectives spin on a few SMs: the duty cycle stays at 100 % while power falls. */
function powerW({ useful, compute, communicate, effect }: GpuLevel): number {
  // A kernel that never ends keeps the clock up, and what it holds spins (judgement: as much as collectives do).
  const held = effect.stuck > 0 ? 20 + 75 * Math.min(1, compute) : 0;
  const busy = (560 * useful) / Math.sqrt(clockFactor(effect)) + 95 * communicate + held;
  return POWER_IDLE_W + busy;
}

/** By what its clock is lowered. */
function clockFactor({ throttled, slow, slowClock }: GpuLevel["effect"]): number {
  return (throttled ? slow : 1) * slowClock;
}

/** Bits of DCGM_FI_DEV_CLOCK_THROTTLE_REASONS (nvml.h: nvmlClocksEventReasons). */
const IDLE = 0x1;
const POWER_CAP = 0x4;
const HW_SLOWDOWN = 0x8;
const HW_THERMAL = 0x40;

/** x16, one way, by generation. */
const PCIE_BYTES_PER_S: Readonly<Record<number, number>> = {
  1: 4e9,
  2: 8e9,
  3: 16e9,
  4: 32e9,
  5: 63e9,
};

const DRAFTS: readonly Draft[] = [
  gauge(
    "DCGM_FI_DEV_SM_CLOCK",
    "SM clock frequency (in MHz).",
    0,
    { least: 210, most: 1980, quantum: 15 },
    absolute(4, 8, 4, 6, 3),
    ({ idle, useful, effect }) => {
      if (idle > 0.9) return 345;
      return (1980 - 230 * useful) / clockFactor(effect);
    },
  ),
  gauge(
    "DCGM_FI_DEV_GPU_TEMP",
    "GPU temperature (in C).",
    0,
    { least: 15, most: 110, quantum: 1 },
    // A rack's position and a chip's place in the airflow: ±8 °C over a fleet (assumed).
    absolute(2.5, 1.5, 0.4, 0.3, 0.4),
    (level) => (level.effect.throttled ? 87 : 29 + 0.055 * powerW(level)),
    { lagS: 10 },
  ),
  gauge(
    "DCGM_FI_DEV_POWER_USAGE",
    "Power draw (in W).",
    3,
    { least: 60, most: 700, quantum: 0 },
    relative(0.01, 0.015, 0.01, 0.02, 0.005),
    powerW,
  ),
  gauge(
    "DCGM_FI_DEV_GPU_UTIL",
    "GPU utilization (in %).",
    0,
    { least: 0, most: 100, quantum: 1 },
    absolute(0, 0.2, 0.4, 0.6, 0.2),
    ({ idle }) => (idle > 0.95 ? 0 : 100 * (1 - idle)),
  ),
  gauge(
    "DCGM_FI_DEV_FB_USED",
    "Framebuffer memory used (in MiB).",
    0,
    { least: 0, most: MEMORY_MIB, quantum: 1 },
    relative(0.001, 0.002, 0.0005, 0.0001, 0),
    ({ memoryMib, effect }) =>
      effect.memory === "freed" ? 4 : effect.memory === "full" ? MEMORY_MIB - 140 : memoryMib,
    { sees: "memory" },
  ),
  gauge(
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "Ratio of time the graphics engine is active.",
    6,
    SHARE,
    relative(0, 0.001, 0.002, 0.004, 0.001),
    ({ idle }) => 1 - idle,
  ),
  gauge(
    "DCGM_FI_PROF_SM_ACTIVE",
    "The ratio of cycles an SM has at least 1 warp assigned.",
    6,
    SHARE,
    relative(0.004, 0.006, 0.01, 0.015, 0.005),
    ({ compute, communicate }) => 0.92 * compute + 0.16 * communicate,
  ),
  gauge(
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "Ratio of cycles the tensor (HMMA) pipe is active.",
    6,
    SHARE,
    relative(0.004, 0.006, 0.012, 0.02, 0.008),
    // A share of cycles: at half the clock the same work takes twice the share. A GPU that is slow for another reason
    // stalls more, so that it stays a little behind its peers.
    ({ useful, effect }) => {
      const stalls = effect.throttled ? 1 : effect.slow ** 0.3;
      return Math.min(0.95, (0.46 * useful * clockFactor(effect)) / stalls);
    },
  ),
  gauge(
    "DCGM_FI_PROF_PIPE_FP32_ACTIVE",
    "Ratio of cycles the fp32 pipes are active.",
    6,
    SHARE,
    relative(0.004, 0.006, 0.012, 0.02, 0.008),
    ({ useful, communicate }) => 0.11 * useful + 0.004 * communicate,
  ),
  gauge(
    "DCGM_FI_PROF_PIPE_FP16_ACTIVE",
    "Ratio of cycles the fp16 pipes are active.",
    6,
    SHARE,
    relative(0.004, 0.006, 0.012, 0.02, 0.008),
    ({ useful }) => 0.05 * useful,
  ),
  gauge(
    "DCGM_FI_PROF_DRAM_ACTIVE",
    "Ratio of cycles the device memory interface is active sending or receiving data.",
    6,
    SHARE,
    relative(0.004, 0.006, 0.012, 0.02, 0.008),
    ({ useful, communicate }) => 0.36 * useful + 0.04 * communicate,
  ),
  // Bytes a second since dcgm-exporter 4.0.0; a counter before.
  ...(["TX", "RX"] as const).map((way) =>
    gauge(
      `DCGM_FI_PROF_PCIE_${way}_BYTES`,
      `The rate of data ${way === "TX" ? "transmitted" : "received"} over the PCIe bus, both header and payload, in bytes per second.`,
      0,
      ANY,
      relative(0.006, 0.01, 0.02, 0.03, 0.01),
      ({ pciePerS, idle, effect }) =>
        Math.min(pciePerS + 3e7 * (1 - idle) + 2e5, PCIE_BYTES_PER_S[effect.linkGen]!),
    ),
  ),
  gauge(
    "DCGM_FI_DEV_PCIE_LINK_GEN",
    "PCIe current link generation.",
    0,
    WHOLE,
    NO_SPREAD,
    ({ effect }) => effect.linkGen,
    { sees: "state" },
  ),
  gauge(
    "DCGM_FI_DEV_PCIE_LINK_WIDTH",
    "PCIe current link width.",
    0,
    WHOLE,
    NO_SPREAD,
    ({ effect }) => effect.linkWidth,
    { sees: "state" },
  ),
  ...(["TX", "RX"] as const).map((way) =>
    gauge(
      `DCGM_FI_PROF_NVLINK_${way}_BYTES`,
      `The rate of data ${way === "TX" ? "transmitted" : "received"} over NVLink, not including protocol headers, in bytes per second.`,
      0,
      ANY,
      relative(0.004, 0.006, 0.012, 0.02, 0.008),
      ({ nvlinkPerS }) => nvlinkPerS + 1000,
    ),
  ),
  gauge(
    "DCGM_FI_DEV_XID_ERRORS",
    "Value of the last XID error encountered.",
    0,
    WHOLE,
    NO_SPREAD,
    ({ effect }) => effect.xid,
    { sees: "state" },
  ),
  {
    ...gauge(
      "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
      "Total energy consumption since boot (in mJ).",
      0,
      ANY,
      relative(0.01, 0.015, 0.01, 0.004, 0.005),
      (level) => 1000 * powerW(level),
    ),
    // As dcgm-exporter names it, without _total, it is no counter of OpenMetrics.
    type: "unknown",
  },
  {
    ...gauge(
      "DCGM_FI_DEV_THERMAL_VIOLATION",
      "Throttling duration due to thermal constraints (in us).",
      0,
      ANY,
      relative(0, 0, 0, 0.1, 0),
      ({ effect }) => (effect.throttled ? 7e5 : 0),
    ),
    // As dcgm-exporter names it, without _total, it is no counter of OpenMetrics.
    type: "unknown",
  },
  gauge(
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS",
    "Current clock throttle reasons (bitmask).",
    0,
    WHOLE,
    NO_SPREAD,
    ({ idle, useful, effect }) =>
      idle > 0.9
        ? IDLE
        : effect.throttled
          ? HW_SLOWDOWN + HW_THERMAL
          : useful > 0.6
            ? POWER_CAP
            : 0,
  ),
];

export const GPU_FAMILIES: readonly GpuFamily[] = DRAFTS.map((draft, id) => ({ ...draft, id }));
