/**
 * Counters and states that name a physical cause by themselves: what exporters call them, in which unit, what they mean, and
 * the sentence for people. The one place for it: a site's own counter is one more row. Names as of dcgm-exporter 3.3 to 4.5
 * (dcgm_fields.h), node_exporter 1.5 to 1.9 and nvml.h.
 *
 * Documented: what each counter counts, the bits of the clock reasons, PCIe replays (DCGM's health check: 8 a minute), NVLink CRC
 * and replay errors (the same check: 100, and any), symbol errors (InfiniBand's bit error rate). Written from memory of those
 * documents, not compared with them again. Judgement: every `material`, which rows decide, and the limit of retransmissions.
 */
import type { Cause } from "./cause.ts";

export interface HealthCounter {
  readonly id: string;
  readonly title: string;
  readonly unit: string;
  /** The first that has samples. */
  readonly names: readonly string[];
  /** Sums of several names, where `names` has none. */
  readonly sums?: readonly (readonly string[])[];
  /**
   * gained: what a counter gained since the data begin; rate: a second; level: as it is; news: a level other than the
   * first that was seen; bits: whether any of `bits` is set; full: whether nothing is free (the first of two names) of the
   * whole (the second).
   */
  readonly how: "gained" | "rate" | "level" | "news" | "bits" | "full";
  readonly bits?: number;
  readonly match?: Readonly<Record<string, string>>;
  readonly exclude?: Readonly<Record<string, RegExp>>;
  readonly harm: "low" | "high";
  /** The least difference from the peers that means something. */
  readonly material: number;
  /** Whether it accuses on its own; the others confirm what slows a machine, for they count on sound ones as well. */
  readonly decides: boolean;
  /**
   * Of errors that sound machines count now and then: so many an hour, on one machine alone, are a fault though the job
   * goes on: ten times what the makers' own checks allow, where there is such a check (each row says which), or judgement.
   */
  readonly alarmPerHour?: number;
  /** Whether what was so from the first sample on is nature. */
  readonly onlyChanges?: boolean;
  readonly cause: Cause;
  /** `part`: "GPU 4", "mlx5_0", "" for the machine. Numbers as measured. */
  readonly says: (part: string, value: number, peers: number) => string;
}

const IB = "node_infiniband_";
/** Interfaces that are no hardware. */
export const VIRTUAL = /lo|veth.*|cali.*|docker.*|cni.*|flannel.*|br-.*|virbr.*|tun.*|tap.*|bond.*/;
export const PSEUDO_FILESYSTEMS =
  /tmpfs|overlay|squashfs|devtmpfs|ramfs|nsfs|proc|sysfs|fuse.*|nfs.*|lustre|autofs/;

const some = (value: number): string => (value < 10 ? value.toFixed(1) : whole(value));
const whole = (value: number): string => String(Math.round(value));
const gigabits = (bytesPerS: number): string => `${Math.round((8 * bytesPerS) / 1e9)} Gbit/s`;
const of = (part: string): string => (part === "" ? "" : ` of ${part}`);
const on = (part: string): string => (part === "" ? "" : ` on ${part}`);

const THROTTLE = [
  "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS",
  "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
  "nvidia_smi_clocks_throttle_reasons_active",
  "nvidia_smi_clocks_event_reasons_active",
];
/** nvidia_gpu_exporter has a metric for each reason: 1 where it holds. */
const reasons = (...which: string[]): string[][] =>
  ["throttle", "event"].map((word) =>
    which.map((reason) => `nvidia_smi_clocks_${word}_reasons_${reason}`),
  );

export const HEALTH_COUNTERS: readonly HealthCounter[] = [
  {
    id: "pcie-link-generation",
    title: "PCIe link generation",
    unit: "",
    names: [
      "DCGM_FI_DEV_PCIE_LINK_GEN",
      "nvidia_smi_pcie_link_gen_gpucurrent",
      "nvidia_smi_pcie_link_gen_current",
    ],
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
    names: [
      "DCGM_FI_DEV_PCIE_LINK_WIDTH",
      "nvidia_smi_pcie_link_width_current",
      "node_pcidevice_current_link_width",
    ],
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
    // A bit error rate of 1e-12, which the InfiniBand specification allows, makes 120.
    alarmPerHour: 1200,
    cause: "network-slow",
    says: (part, value) =>
      `${whole(value)} symbol errors on the link${of(part)}: a bad cable or plug`,
  },
  {
    id: "link-error-recoveries",
    title: "recoveries of an RDMA link from errors",
    unit: "",
    names: [`${IB}link_error_recovery_total`],
    how: "gained",
    harm: "high",
    material: 2,
    decides: false,
    cause: "network-slow",
    says: (part, value) => `link${of(part)} recovered ${whole(value)} times from errors`,
  },
  {
    id: "rdma-port-errors",
    title: "errors and discards of an RDMA port",
    unit: "1/s",
    names: [],
    sums: [
      [`${IB}port_errors_received_total`, `${IB}port_discards_transmitted_total`],
      ["rdma_port_rcv_errors_total", "rdma_port_xmit_discards_total"],
    ],
    how: "rate",
    harm: "high",
    material: 1,
    decides: false,
    cause: "network-slow",
    says: (part, value) =>
      `RDMA port${part === "" ? "" : ` ${part}`} loses ${some(value)} packets/s`,
  },
  {
    id: "rdma-retransmissions",
    title: "retransmissions over RDMA",
    unit: "1/s",
    names: [],
    sums: [
      [
        "rdma_out_of_sequence_total",
        "rdma_packet_seq_err_total",
        "rdma_local_ack_timeout_err_total",
      ],
      [`${IB}out_of_sequence_total`, `${IB}local_ack_timeout_err_total`],
      [
        `${IB}out_of_sequence_packets_received_total`,
        `${IB}packet_sequence_errors_total`,
        `${IB}local_ack_timeout_errors_total`,
      ],
      [`${IB}roce_adp_retrans_total`],
    ],
    how: "rate",
    harm: "high",
    material: 5,
    decides: false,
    // Judgement: 10 a second. A lossless fabric has next to none; adaptive routing reorders packets on all machines alike.
    alarmPerHour: 36_000,
    cause: "network-slow",
    says: (part, value) => `${some(value)} packets/s are sent anew${on(part)}`,
  },
  {
    id: "network-drops",
    title: "packets that a network interface lost",
    unit: "1/s",
    names: [],
    sums: [
      [
        "node_network_receive_drop_total",
        "node_network_transmit_drop_total",
        "node_network_receive_errs_total",
        "node_network_transmit_errs_total",
      ],
      ["node_ethtool_received_discards_phy", "node_ethtool_received_crc_errors_phy"],
    ],
    exclude: { device: VIRTUAL },
    how: "rate",
    harm: "high",
    material: 5,
    decides: false,
    cause: "network-slow",
    says: (part, value) => `${some(value)} packets/s are lost${on(part)}`,
  },
  {
    id: "carrier-changes",
    title: "times that a network interface lost or found its carrier",
    unit: "",
    names: ["node_network_carrier_changes_total"],
    exclude: { device: VIRTUAL },
    how: "gained",
    harm: "high",
    material: 2,
    decides: false,
    cause: "network-slow",
    says: (part, value) => `the carrier${of(part)} changed ${whole(value)} times`,
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
    // DCGM's health check warns at 100.
    alarmPerHour: 1000,
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
    // Judgement: DCGM's health check warns at the first, but a link that trains again has some.
    alarmPerHour: 100,
    cause: "network-slow",
    says: (part, value) => `NVLink${of(part)} sent ${whole(value)} times anew`,
  },
  {
    id: "pcie-replays",
    title: "PCIe replays",
    unit: "",
    names: ["DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "dcgm_pcie_replay_counter"],
    how: "gained",
    harm: "high",
    material: 50,
    decides: false,
    // DCGM's health check allows 8 a minute.
    alarmPerHour: 4800,
    cause: "network-slow",
    says: (part, value) => `PCIe link${of(part)} sent ${whole(value)} packets anew`,
  },
  {
    id: "xid-errors",
    title: "last Xid error",
    unit: "",
    names: ["DCGM_FI_DEV_XID_ERRORS", "dcgm_xid_errors"],
    // DCGM shows the last Xid for ever: the one that was there at first is old.
    how: "news",
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
    names: ["DCGM_FI_DEV_ROW_REMAP_FAILURE", "nvidia_smi_remapped_rows_failure"],
    how: "news",
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
    names: ["DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "nvidia_smi_remapped_rows_uncorrectable"],
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
    names: [
      "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
      "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL",
      "dcgm_ecc_dbe_volatile_total",
      "nvidia_smi_ecc_errors_uncorrected_volatile_total",
      "nvidia_smi_ecc_errors_uncorrected_aggregate_total",
    ],
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
    sums: reasons("hw_thermal_slowdown", "sw_thermal_slowdown"),
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
    sums: reasons("hw_power_brake_slowdown"),
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
    id: "filesystem-full",
    title: "full file systems",
    unit: "",
    names: [],
    sums: [["node_filesystem_avail_bytes", "node_filesystem_size_bytes"]],
    exclude: { fstype: PSEUDO_FILESYSTEMS },
    how: "full",
    harm: "high",
    material: 1,
    decides: true,
    onlyChanges: true,
    cause: "storage",
    says: (part) => `file system${part === "" ? "" : ` ${part}`} is full`,
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

/** "gpu4" → "GPU 4"; "gpu#2" → "GPU no. 2 by UUID". */
export function partWords(device: string | null): string {
  if (device === null) return "";
  return device.replace(/^gpu(\d+)$/, "GPU $1").replace(/^gpu#(\d+)$/, "GPU no. $1 by UUID");
}
