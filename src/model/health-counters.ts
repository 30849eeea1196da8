/**
 * Counters and states that name a physical cause by themselves: what exporters call them, in which unit, what they mean, and
 * the sentence for people. The one place for it: a site's own counter is one more row. Names as of dcgm-exporter 3.3 to 4.5
 * (dcgm_fields.h), node_exporter 1.5 to 1.9 and nvml.h.
 */
import type { Cause } from "./cause.ts";

export interface HealthCounter {
  readonly id: string;
  readonly title: string;
  readonly unit: string;
  /** The first that has samples. */
  readonly names: readonly string[];
  /** gained: what a counter gained since the data begin; level: as it is; bits: whether any of `bits` is set. */
  readonly how: "gained" | "level" | "bits";
  readonly bits?: number;
  readonly match?: Readonly<Record<string, string>>;
  readonly exclude?: Readonly<Record<string, RegExp>>;
  readonly harm: "low" | "high";
  /** The least difference from the peers that means something. */
  readonly material: number;
  /** Whether it accuses on its own; the others confirm what slows a machine, for they count on sound ones as well. */
  readonly decides: boolean;
  readonly cause: Cause;
  /** `part`: "GPU 4", "mlx5_0", "" for the machine. Numbers as measured. */
  readonly says: (part: string, value: number, peers: number) => string;
}

const IB = "node_infiniband_";
/** Interfaces that are no hardware. */
export const VIRTUAL = /lo|veth.*|cali.*|docker.*|cni.*|flannel.*|br-.*|virbr.*|tun.*|tap.*|bond.*/;
export const PSEUDO_FILESYSTEMS =
  /tmpfs|overlay|squashfs|devtmpfs|ramfs|nsfs|proc|sysfs|fuse.*|nfs.*|lustre|autofs/;

const whole = (value: number): string => String(Math.round(value));
const gigabits = (bytesPerS: number): string => `${Math.round((8 * bytesPerS) / 1e9)} Gbit/s`;
const of = (part: string): string => (part === "" ? "" : ` of ${part}`);
const on = (part: string): string => (part === "" ? "" : ` on ${part}`);

const THROTTLE = ["DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"];

export const HEALTH_COUNTERS: readonly HealthCounter[] = [
  {
    id: "pcie-link-generation",
    title: "PCIe link generation",
    unit: "",
    names: ["DCGM_FI_DEV_PCIE_LINK_GEN"],
    how: "level",
    harm: "low",
    material: 1,
    decides: true,
    cause: "network-slow",
    says: (part, value, peers) =>
      `PCIe link${of(part)} runs at generation ${whole(value)} instead of ${whole(peers)}`,
  },
  {
    id: "pcie-link-width",
    title: "PCIe link width",
    unit: "lanes",
    names: ["DCGM_FI_DEV_PCIE_LINK_WIDTH", "node_pcidevice_current_link_width"],
    how: "level",
    harm: "low",
    material: 1,
    decides: true,
    cause: "network-slow",
    says: (part, value, peers) =>
      `PCIe link${of(part)} runs at x${whole(value)} instead of x${whole(peers)}`,
  },
  {
    id: "infiniband-port-state",
    title: "RDMA port state",
    unit: "",
    names: [`${IB}state_id`],
    how: "level",
    harm: "low",
    material: 1,
    decides: true,
    cause: "network-hang",
    says: (part) => `RDMA port${part === "" ? "" : ` ${part}`} is down`,
  },
  {
    id: "link-rate",
    title: "RDMA port rate",
    unit: "B/s",
    names: [`${IB}rate_bytes_per_second`],
    how: "level",
    harm: "low",
    material: 1e9,
    decides: true,
    cause: "network-slow",
    says: (part, value, peers) =>
      `RDMA port${part === "" ? "" : ` ${part}`} runs at ${gigabits(value)} instead of ${gigabits(peers)}`,
  },
  {
    id: "link-downed",
    title: "times that an RDMA link went down",
    unit: "",
    names: [`${IB}link_downed_total`],
    how: "gained",
    harm: "high",
    material: 1,
    decides: true,
    cause: "network-hang",
    says: (part, value) => `link${of(part)} went down (${whole(value)} times)`,
  },
  {
    id: "symbol-errors",
    title: "symbol errors of an RDMA link",
    unit: "",
    names: [`${IB}symbol_error_total`],
    how: "gained",
    harm: "high",
    material: 50,
    decides: false,
    cause: "network-slow",
    says: (part, value) =>
      `${whole(value)} symbol errors on the link${of(part)}: a bad cable or plug`,
  },
  {
    id: "nvlink-crc-errors",
    title: "NVLink CRC errors",
    unit: "",
    names: [
      "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
      "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
    ],
    how: "gained",
    harm: "high",
    material: 50,
    decides: false,
    cause: "network-slow",
    says: (part, value) => `${whole(value)} CRC errors on NVLink${of(part)}`,
  },
  {
    id: "nvlink-replays",
    title: "NVLink replays and recoveries",
    unit: "",
    names: [
      "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
      "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
    ],
    how: "gained",
    harm: "high",
    material: 10,
    decides: false,
    cause: "network-slow",
    says: (part, value) => `NVLink${of(part)} sent ${whole(value)} times anew`,
  },
  {
    id: "pcie-replays",
    title: "PCIe replays",
    unit: "",
    names: ["DCGM_FI_DEV_PCIE_REPLAY_COUNTER"],
    how: "gained",
    harm: "high",
    material: 50,
    decides: false,
    cause: "network-slow",
    says: (part, value) => `PCIe link${of(part)} sent ${whole(value)} packets anew`,
  },
  {
    id: "xid-errors",
    title: "last Xid error",
    unit: "",
    names: ["DCGM_FI_DEV_XID_ERRORS"],
    how: "level",
    harm: "high",
    material: 1,
    decides: true,
    cause: "gpu-error",
    says: (part, value) => `Xid ${whole(value)}${on(part)}`,
  },
  {
    id: "row-remap-failure",
    title: "failed row remapping",
    unit: "",
    names: ["DCGM_FI_DEV_ROW_REMAP_FAILURE"],
    how: "level",
    harm: "high",
    material: 1,
    decides: true,
    cause: "gpu-error",
    says: (part) => `memory rows${of(part)} could not be remapped: the GPU must be replaced`,
  },
  {
    id: "uncorrectable-remapped-rows",
    title: "rows remapped after uncorrectable errors",
    unit: "",
    names: ["DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"],
    how: "gained",
    harm: "high",
    material: 1,
    decides: true,
    cause: "gpu-error",
    says: (part, value) =>
      `${whole(value)} memory rows${of(part)} remapped after uncorrectable errors`,
  },
  {
    id: "ecc-double-bit-errors",
    title: "uncorrectable ECC errors",
    unit: "",
    names: ["DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL"],
    how: "gained",
    harm: "high",
    material: 1,
    decides: true,
    cause: "gpu-error",
    says: (part, value) => `${whole(value)} uncorrectable ECC errors in the memory${of(part)}`,
  },
  {
    id: "gpu-thermal-throttle",
    title: "slowed down by heat",
    unit: "share",
    names: THROTTLE,
    how: "bits",
    // nvmlClocksEventReasonSwThermalSlowdown, HwThermalSlowdown.
    bits: 0x20 | 0x40,
    harm: "high",
    material: 0.5,
    decides: true,
    cause: "gpu-slow",
    says: (part) => `${part === "" ? "its GPUs are" : `${part} is`} slowed down by heat`,
  },
  {
    id: "gpu-power-brake",
    title: "slowed down by the power brake",
    unit: "share",
    names: THROTTLE,
    how: "bits",
    // nvmlClocksEventReasonHwPowerBrakeSlowdown.
    bits: 0x80,
    harm: "high",
    material: 0.5,
    decides: true,
    cause: "gpu-slow",
    says: (part) =>
      `${part === "" ? "its GPUs are" : `${part} is`} slowed down by the power brake of its machine`,
  },
  {
    id: "memory-uncorrectable-errors",
    title: "uncorrectable memory errors",
    unit: "",
    names: ["node_edac_uncorrectable_errors_total"],
    how: "gained",
    harm: "high",
    material: 1,
    decides: true,
    cause: "host-memory",
    says: (_, value) => `${whole(value)} uncorrectable errors in the host's memory`,
  },
  {
    id: "memory-correctable-errors",
    title: "correctable memory errors",
    unit: "",
    names: ["node_edac_correctable_errors_total"],
    how: "gained",
    harm: "high",
    material: 50,
    decides: false,
    cause: "host-memory",
    says: (_, value) => `${whole(value)} corrected errors in the host's memory`,
  },
  {
    id: "oom-kills",
    title: "processes killed for memory",
    unit: "",
    names: ["node_vmstat_oom_kill"],
    how: "gained",
    harm: "high",
    material: 1,
    decides: false,
    cause: "host-memory",
    says: (_, value) => `the kernel killed ${whole(value)} processes for memory`,
  },
  {
    id: "raid-failed-disks",
    title: "failed disks of a RAID",
    unit: "",
    names: ["node_md_disks"],
    match: { state: "failed" },
    how: "level",
    harm: "high",
    material: 1,
    decides: false,
    cause: "storage",
    says: (part, value) => `${whole(value)} disks${of(part)} have failed`,
  },
  {
    id: "filesystem-read-only",
    title: "file system read only",
    unit: "",
    names: ["node_filesystem_readonly"],
    exclude: { fstype: PSEUDO_FILESYSTEMS },
    how: "level",
    harm: "high",
    material: 1,
    decides: false,
    cause: "storage",
    says: (part) => `file system ${part} became read only`,
  },
  {
    id: "clock-offset",
    title: "offset of the clock",
    unit: "s",
    names: ["node_timex_offset_seconds"],
    how: "level",
    harm: "high",
    material: 0.05,
    decides: false,
    cause: "platform",
    says: (_, value) => `its clock is ${value.toFixed(2)} s off`,
  },
];

const BY_ID = new Map(HEALTH_COUNTERS.map((counter) => [counter.id, counter]));

export function healthCounter(id: string): HealthCounter | null {
  return BY_ID.get(id) ?? null;
}

/** "gpu4" → "GPU 4". */
export function partWords(device: string | null): string {
  return device === null ? "" : device.replace(/^gpu(\d+)$/, "GPU $1");
}
