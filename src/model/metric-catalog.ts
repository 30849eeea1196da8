/**
 * The metrics that machines are compared by: Minder's 21 (its Table 2) under the names that exporters give them, and a
 * few states that cost nothing and decide at once. Names move between versions, hence the alternatives: the first that
 * has samples is taken. Data, not code: a site's own exporter is one more line.
 */
import { getOrInsert } from "../base/group-by.ts";
import { HEALTH_COUNTERS, PSEUDO_FILESYSTEMS, VIRTUAL } from "./health-counters.ts";

/** Where a metric comes from. */
export interface MetricSource {
  /** Added up, device by device (TX + RX); of "used-share" the first is what is free, the second the whole. */
  readonly names: readonly string[];
  /**
   * level: as it is; rate: what a counter gains a second; level-or-rate: whichever its type says (dcgm-exporter's PCIe
   * bytes were a counter before 4.0.0); idle-rate: 1 minus the rate of a core; used-share: 1 - free / whole; gained: what
   * a counter gained since the first sample; news: a level other than the first; time-share: the share of time that a
   * counter of seconds, or of parts of them, counts; bits: 1 where any of `bits` is set; full: 1 where the used share is
   * (nearly) all.
   */
  readonly how:
    | "level"
    | "rate"
    | "level-or-rate"
    | "idle-rate"
    | "used-share"
    | "gained"
    | "news"
    | "time-share"
    | "bits"
    | "full";
  readonly bits?: number;
  /** Labels that a series must have; the value of others does not matter. */
  readonly match?: Readonly<Record<string, string>>;
  /** Labels that it must not have: patterns for the whole value. */
  readonly exclude?: Readonly<Record<string, RegExp>>;
  /** Factor on the value, to the catalog's unit. */
  readonly scale?: number;
}

/** Minder's Table 1 has these groups; "state" is ours. */
export type MetricGroup =
  | "cpu"
  | "gpu"
  | "pfc"
  | "throughput"
  | "disk"
  | "memory"
  | "state"
  | "other";

export interface CatalogMetric {
  /** "gpu-duty-cycle": the name in reports and JSON. */
  readonly id: string;
  readonly title: string;
  readonly unit: string;
  /** One of Minder's 21. */
  readonly isMinder: boolean;
  readonly group: MetricGroup;
  readonly sources: readonly MetricSource[];
  /** Other names in tables, lower case without punctuation ("gpuutil"). */
  readonly aliases: readonly string[];
  /** How a machine's devices become one number; min and max are kept beside it where devices are named. */
  readonly over: "mean" | "sum" | "max";
  /** Whether devices are compared one by one (GPUs, NICs) or are just parts of a sum (CPUs, disks). */
  readonly perDevice: boolean;
  /** Limits of Minder's min-max normalisation (§4.1), in `unit`; the upper one may be exceeded by rates. */
  readonly bounds: readonly [number, number];
  /** Deviations are ratios, taken of value + offset (so that nothing is far from nearly nothing); null: differences. */
  readonly offset: number | null;
  /** The least deviation that matters in practice: a ratio such as 1.3, or a difference in `unit`. */
  readonly material: number;
  /** Which side is a symptom. */
  readonly harm: "low" | "high" | "both";
  /** Whether it may accuse a machine on its own, or only support others (disks fill for many reasons). */
  readonly decides: boolean;
  /** Whether one machine that alone has it while the whole job is held up is accused by it, though it does not decide. */
  readonly decidesAlone: boolean;
  /** Whether a standing difference is nature, however large: a disk is as full as it is, the last Xid may be old. */
  readonly onlyChanges: boolean;
  /** The ratio by which sound machines may differ for good, where physics tells; without it their spread does. */
  readonly natural?: number;
}

const IB = "node_infiniband_";
/** No state is larger; counters of errors may be. */
const LARGEST = 1e12;

type Rest = Partial<Omit<CatalogMetric, "id" | "title" | "unit" | "group" | "sources">>;

function metric(
  id: string,
  title: string,
  unit: string,
  group: MetricGroup,
  sources: readonly MetricSource[],
  rest: Rest,
): CatalogMetric {
  return {
    id,
    title,
    unit,
    group,
    sources,
    isMinder: true,
    aliases: [],
    over: "mean",
    perDevice: false,
    bounds: [0, 1],
    offset: null,
    material: 1,
    harm: "both",
    decides: true,
    decidesAlone: false,
    onlyChanges: false,
    ...rest,
  };
}

const level = (...names: string[]): MetricSource => ({ names, how: "level" });
const rate = (...names: string[]): MetricSource => ({ names, how: "rate" });
const scaled = (scale: number, name: string): MetricSource => ({
  names: [name],
  how: "level",
  scale,
});
const MIB = 1 << 20;

/** A GPU's share of busy time, 0 to 1. Exporters of before 2026 and after (DCGM's renaming of July 2026). */
function activity(
  id: string,
  title: string,
  names: readonly string[],
  aliases: readonly string[],
): CatalogMetric {
  return metric(
    id,
    title,
    "share",
    "gpu",
    names.map((name) => level(name)),
    { aliases, perDevice: true, offset: 0.02, material: 1.3, harm: "both" },
  );
}

const MINDER: readonly CatalogMetric[] = [
  metric(
    "cpu-usage",
    "CPU usage",
    "share",
    "cpu",
    [
      { names: ["node_cpu_seconds_total"], how: "idle-rate", match: { mode: "idle" } },
      level("instance:node_cpu_utilisation:rate5m"),
      level("instance:node_cpu_utilisation:rate1m"),
    ],
    { aliases: ["cpu", "cpuutil", "cpuutilization", "cpupercent"], offset: 0.02, material: 1.4 },
  ),
  metric(
    "pfc-tx-packet-rate",
    "PFC pauses sent",
    "1/s",
    "pfc",
    [
      rate("node_ethtool_transmitted_prio3_pause"),
      { names: ["rdma_roce_pfc_pause_frames_total"], how: "rate", match: { direction: "tx" } },
      rate("node_ethtool_transmitted_pause_ctrl_phy"),
    ],
    {
      aliases: ["pfc", "pfctx", "pfctxpackets", "pfctxrate", "pfcpacketrate"],
      over: "sum",
      perDevice: true,
      bounds: [0, 20_000],
      offset: 100,
      material: 4,
      harm: "high",
    },
  ),
  metric(
    "memory-usage",
    "memory usage",
    "share",
    "memory",
    [
      {
        names: ["node_memory_MemAvailable_bytes", "node_memory_MemTotal_bytes"],
        how: "used-share",
      },
    ],
    { aliases: ["memory", "mem", "memutil", "hostmemory"], offset: 0.02, material: 1.3 },
  ),
  metric(
    "disk-usage",
    "disk usage",
    "share",
    "disk",
    [
      {
        names: ["node_filesystem_avail_bytes", "node_filesystem_size_bytes"],
        how: "used-share",
        exclude: { fstype: PSEUDO_FILESYSTEMS },
      },
    ],
    {
      aliases: ["disk", "diskutil"],
      over: "max",
      material: 0.01,
      harm: "high",
      decides: false,
      onlyChanges: true,
    },
  ),
  metric(
    "tcp-throughput",
    "TCP throughput",
    "B/s",
    "throughput",
    [
      {
        names: ["node_network_transmit_bytes_total"],
        how: "rate",
        exclude: { device: VIRTUAL },
      },
    ],
    {
      aliases: ["tcp", "networktransmit", "nettx"],
      over: "sum",
      bounds: [0, 1.25e9],
      offset: 1e5,
      material: 4,
    },
  ),
  metric(
    "tcp-rdma-throughput",
    "TCP+RDMA throughput",
    "B/s",
    "throughput",
    [
      rate("node_ethtool_transmitted_bytes_phy"),
      rate(`${IB}port_data_transmitted_bytes_total`),
      // In words of four bytes (yuuki/rdma_exporter).
      { names: ["rdma_port_xmit_data_total"], how: "rate", scale: 4 },
    ],
    {
      aliases: ["rdma", "rdmathroughput", "nicthroughput", "throughput", "nictx", "rdmatx"],
      over: "sum",
      perDevice: true,
      bounds: [0, 4e11],
      offset: 1e7,
      material: 1.4,
      harm: "low",
    },
  ),
  metric(
    "gpu-memory-used",
    "GPU memory used",
    "MiB",
    "gpu",
    [
      level("DCGM_FI_DEV_FB_USED"),
      level("dcgm_fb_used"),
      scaled(1 / MIB, "nvidia_smi_memory_used_bytes"),
      scaled(1 / MIB, "nvidia_gpu_memory_used_bytes"),
      level("nvidia_smi_memory_used"),
    ],
    {
      aliases: ["gpumemory", "gpumemused", "fbused", "gpumem"],
      perDevice: true,
      bounds: [0, 200_000],
      offset: 1024,
      material: 1.2,
    },
  ),
  metric(
    "gpu-duty-cycle",
    "GPU duty cycle",
    "%",
    "gpu",
    [
      level("DCGM_FI_DEV_GPU_UTIL"),
      level("dcgm_gpu_utilization"),
      level("nvidia_gpu_duty_cycle"),
      scaled(100, "nvidia_smi_utilization_gpu_ratio"),
      level("nvidia_smi_utilization_gpu"),
    ],
    {
      aliases: ["gpuutil", "gpuutilization", "gpuusage", "dutycycle", "gpu"],
      perDevice: true,
      bounds: [0, 100],
      material: 15,
      harm: "low",
    },
  ),
  metric(
    "gpu-power-draw",
    "GPU power",
    "W",
    "gpu",
    [
      // The energy used since the last sample, not what it drew at the moment of it.
      { names: ["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"], how: "rate", scale: 1e-3 },
      level("DCGM_FI_DEV_POWER_USAGE"),
      { names: ["dcgm_total_energy_consumption"], how: "rate", scale: 1e-3 },
      level("dcgm_power_usage"),
      level("DCGM_FI_DEV_BOARD_POWER"),
      rate("nvidia_smi_energy_joules_total"),
      level("nvidia_smi_power_draw_watts"),
      level("nvidia_smi_power_draw_instant_watts"),
      level("nvidia_smi_power_draw"),
      scaled(1e-3, "nvidia_gpu_power_usage_milliwatts"),
    ],
    {
      aliases: ["gpupower", "power", "powerusage", "powerdraw"],
      perDevice: true,
      bounds: [0, 1000],
      offset: 30,
      material: 1.2,
    },
  ),
  metric(
    "gpu-temperature",
    "GPU temperature",
    "°C",
    "gpu",
    [
      level("DCGM_FI_DEV_GPU_TEMP"),
      level("dcgm_gpu_temp"),
      level("nvidia_smi_temperature_gpu"),
      level("nvidia_gpu_temperature_celsius"),
    ],
    {
      aliases: ["gputemp", "temperature", "temp"],
      over: "max",
      perDevice: true,
      bounds: [0, 100],
      material: 10,
      // A warm place harms nobody until clocks fall.
      decides: false,
    },
  ),
  activity(
    "gpu-sm-activity",
    "SM activity",
    ["DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_SM_UTIL_RATIO"],
    ["smactivity", "smactive", "sm"],
  ),
  metric(
    "gpu-clocks",
    "GPU clock",
    "MHz",
    "gpu",
    [
      level("DCGM_FI_DEV_SM_CLOCK"),
      level("dcgm_sm_clock"),
      scaled(1e-6, "nvidia_smi_clocks_current_sm_clock_hz"),
      scaled(1e-6, "nvidia_smi_clocks_sm_hz"),
      level("nvidia_smi_clocks_current_sm"),
    ],
    {
      aliases: ["gpuclock", "smclock", "clock", "clocks"],
      perDevice: true,
      bounds: [0, 3000],
      offset: 0,
      material: 1.1,
      harm: "low",
      // Chips of a kind, at their power limit, differ by a few percent.
      natural: 1.15,
    },
  ),
  activity(
    "gpu-tensor-core-activity",
    "tensor core activity",
    ["DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_TENSOR_UTIL_RATIO"],
    ["tensoractivity", "tensoractive", "tensorcore", "tensor"],
  ),
  activity(
    "gpu-graphics-engine-activity",
    "graphics engine activity",
    ["DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO"],
    ["grengineactive", "graphicsengine", "grengine"],
  ),
  activity(
    "gpu-fp-engine-activity",
    "FP engine activity",
    [
      "DCGM_FI_PROF_PIPE_FP16_ACTIVE",
      "DCGM_FI_PROF_PIPE_FP32_ACTIVE",
      "DCGM_FI_PROF_FP16_UTIL_RATIO",
    ],
    ["fpengine", "fpactivity", "fp16active"],
  ),
  activity(
    "gpu-memory-bandwidth",
    "GPU memory bandwidth",
    ["DCGM_FI_PROF_DRAM_ACTIVE", "DCGM_FI_PROF_DRAM_UTIL_RATIO"],
    ["dramactive", "membandwidth", "gpumemorybandwidthutilization", "memorybandwidth"],
  ),
  metric(
    "pcie-bandwidth",
    "PCIe bandwidth",
    "B/s",
    "gpu",
    [
      {
        names: ["DCGM_FI_PROF_PCIE_TX_BYTES", "DCGM_FI_PROF_PCIE_RX_BYTES"],
        how: "level-or-rate",
      },
    ],
    {
      aliases: ["pcie", "pciebytes"],
      over: "sum",
      perDevice: true,
      bounds: [0, 1e12],
      offset: 5e7,
      material: 1.5,
      harm: "low",
    },
  ),
  metric("pcie-usage", "PCIe usage", "share", "gpu", [], {
    aliases: ["pcieutil"],
    perDevice: true,
    offset: 0.005,
    material: 1.5,
    // Full on a link that fell back, and on any machine that is scraped while it communicates.
    harm: "high",
    decides: false,
  }),
  metric(
    "nvlink-bandwidth",
    "NVLink bandwidth",
    "B/s",
    "gpu",
    [
      {
        names: ["DCGM_FI_PROF_NVLINK_TX_BYTES", "DCGM_FI_PROF_NVLINK_RX_BYTES"],
        how: "level-or-rate",
      },
      { names: ["DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"], how: "level-or-rate" },
    ],
    {
      aliases: ["nvlink", "nvlinkbytes"],
      over: "sum",
      perDevice: true,
      bounds: [0, 7.2e12],
      offset: 1e8,
      material: 1.4,
      harm: "low",
    },
  ),
  metric(
    "ecn-packet-rate",
    "ECN marks",
    "1/s",
    "throughput",
    [rate(`${IB}np_ecn_marked_roce_packets_received_total`)],
    {
      aliases: ["ecn", "ecnpackets"],
      over: "sum",
      perDevice: true,
      bounds: [0, 200_000],
      offset: 1000,
      material: 4,
      harm: "high",
    },
  ),
  metric(
    "cnp-packet-rate",
    "CNP packets",
    "1/s",
    "throughput",
    [
      rate(`${IB}np_cnp_packets_sent_total`, `${IB}rp_cnp_packets_handled_total`),
      rate(`${IB}np_cnp_packets_sent_total`),
    ],
    {
      aliases: ["cnp", "cnppackets"],
      over: "sum",
      perDevice: true,
      bounds: [0, 200_000],
      offset: 1000,
      material: 4,
      harm: "high",
    },
  ),
];

/** What a machine waits for that cannot read, write or send: not Minder's, but every node_exporter has them. */
const WAITING: readonly CatalogMetric[] = [
  metric(
    "port-transmit-wait",
    "InfiniBand port's wait for credits (PortXmitWait)",
    "ticks/s",
    "throughput",
    [rate(`${IB}port_transmit_wait_total`), rate("rdma_port_xmit_wait_total")],
    {
      // Back-pressure: ticks of the port's clock in which it had data to send and the other side gave no credits. PFC
      // pauses are sent by who cannot receive; this is counted by who cannot send, so that the two are two metrics.
      isMinder: false,
      aliases: ["portxmitwait", "xmitwait", "porttransmitwait", "transmitwait"],
      over: "sum",
      perDevice: true,
      bounds: [0, LARGEST],
      offset: 100,
      material: 4,
      harm: "high",
    },
  ),
  metric(
    "disk-busy",
    "time that its disk was busy",
    "share",
    "disk",
    [
      {
        names: ["node_disk_io_time_seconds_total"],
        how: "rate",
        exclude: { device: /loop.*|ram.*|sr\d+|zram.*/ },
      },
    ],
    {
      isMinder: false,
      aliases: ["diskbusy", "diskioutil", "diskioutilization"],
      over: "max",
      material: 0.4,
      harm: "high",
    },
  ),
  metric(
    "blocked-processes",
    "processes that wait for disks",
    "",
    "disk",
    [level("node_procs_blocked")],
    {
      isMinder: false,
      aliases: ["procsblocked", "nodeprocsblocked"],
      over: "max",
      bounds: [0, LARGEST],
      material: 4,
      harm: "high",
    },
  ),
];

/** What holds a machine up without being its work: confirms, and accuses where one machine alone has it. */
function hindrance(
  id: string,
  title: string,
  unit: string,
  group: MetricGroup,
  sources: readonly MetricSource[],
  rest: Rest,
): CatalogMetric {
  return metric(id, title, unit, group, sources, {
    isMinder: false,
    over: "max",
    harm: "high",
    decides: false,
    decidesAlone: true,
    ...rest,
  });
}

const timeShare = (...names: string[]): MetricSource => ({ names, how: "time-share" });

const HINDRANCES: readonly CatalogMetric[] = [
  // Computed (methods/machines/power-for-activity.ts).
  metric("gpu-power-for-activity", "GPU power for what its SMs do", "W", "gpu", [], {
    isMinder: false,
    bounds: [0, LARGEST],
    offset: 0,
    material: 1.12,
    harm: "low",
  }),
  // Computed (methods/machines/busier-than-siblings.ts).
  metric(
    "gpu-busier-than-siblings",
    "SM activity of one GPU above the machine's other GPUs",
    "share",
    "gpu",
    [],
    {
      isMinder: false,
      perDevice: true,
      material: 0.06,
      harm: "high",
    },
  ),
  metric(
    "gpu-memory-clock",
    "GPU memory clock",
    "MHz",
    "gpu",
    [
      level("DCGM_FI_DEV_MEM_CLOCK"),
      level("dcgm_memory_clock"),
      scaled(1e-6, "nvidia_smi_clocks_current_memory_clock_hz"),
      scaled(1e-6, "nvidia_smi_clocks_mem_hz"),
      level("nvidia_smi_clocks_current_memory"),
    ],
    {
      isMinder: false,
      aliases: ["memclock", "memoryclock", "gpumemclock"],
      perDevice: true,
      bounds: [0, 20_000],
      offset: 0,
      material: 1.08,
      harm: "low",
      // GPUs of a kind have the same few steps.
      natural: 1.04,
    },
  ),
  hindrance(
    "gpu-thermal-violation",
    "time that heat slowed a GPU down",
    "share",
    "gpu",
    [timeShare("DCGM_FI_DEV_THERMAL_VIOLATION"), timeShare("dcgm_thermal_violation")],
    { perDevice: true, material: 0.1 },
  ),
  hindrance(
    "gpu-power-violation",
    "time that the power limit slowed a GPU down",
    "share",
    "gpu",
    [timeShare("DCGM_FI_DEV_POWER_VIOLATION"), timeShare("dcgm_power_violation")],
    { perDevice: true, material: 0.25 },
  ),
  hindrance(
    "pfc-rx-packet-rate",
    "PFC pauses received",
    "1/s",
    "pfc",
    [
      rate("node_ethtool_received_prio3_pause"),
      { names: ["rdma_roce_pfc_pause_frames_total"], how: "rate", match: { direction: "rx" } },
      rate("node_ethtool_received_pause_ctrl_phy"),
    ],
    { over: "sum", perDevice: true, bounds: [0, 20_000], offset: 100, material: 4 },
  ),
  hindrance(
    "load",
    "load",
    "",
    "cpu",
    [level("node_load1"), level("node_procs_running"), level("node_load5")],
    { aliases: ["load1", "loadaverage"], bounds: [0, LARGEST], offset: 4, material: 2 },
  ),
  hindrance(
    "cpu-pressure",
    "time that processes waited for a CPU",
    "share",
    "cpu",
    [timeShare("node_pressure_cpu_waiting_seconds_total")],
    { material: 0.2 },
  ),
  hindrance(
    "io-pressure",
    "time that processes waited for disks",
    "share",
    "disk",
    [
      timeShare("node_pressure_io_stalled_seconds_total"),
      timeShare("node_pressure_io_waiting_seconds_total"),
    ],
    { material: 0.2 },
  ),
  hindrance(
    "memory-pressure",
    "time that processes waited for memory",
    "share",
    "memory",
    [
      timeShare("node_pressure_memory_stalled_seconds_total"),
      timeShare("node_pressure_memory_waiting_seconds_total"),
    ],
    { material: 0.1 },
  ),
  hindrance(
    "swapping",
    "pages swapped in and out",
    "1/s",
    "memory",
    [rate("node_vmstat_pswpin", "node_vmstat_pswpout")],
    { bounds: [0, LARGEST], offset: 100, material: 4 },
  ),
];

/** States: any difference from the peers that lasts is a fault, however small. */
const STATES: readonly CatalogMetric[] = HEALTH_COUNTERS.map((row) => {
  const { id, title, unit, names, sums = [], how, bits, match, exclude } = row;
  const { harm, material, decides, onlyChanges = false } = row;
  const labels = { ...(match ? { match } : {}), ...(exclude ? { exclude } : {}) };
  const sources = [
    ...names.map((name): MetricSource => ({
      names: [name],
      how,
      ...(bits ? { bits } : {}),
      ...labels,
    })),
    // Of states that have names of their own, one each.
    ...sums.map((sum): MetricSource => ({
      names: sum,
      how: how === "bits" ? "level" : how,
      ...labels,
    })),
  ];
  return metric(id, title, unit, "state", sources, {
    isMinder: false,
    perDevice: true,
    over: harm === "high" ? "max" : "mean",
    bounds: [0, LARGEST],
    material,
    harm,
    decides,
    onlyChanges,
    decidesAlone: how === "gained" || how === "rate",
  });
});
export const CATALOG: readonly CatalogMetric[] = [...MINDER, ...WAITING, ...HINDRANCES, ...STATES];

/** "GPU Duty-Cycle" → "gpudutycycle". */
export function plainName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, "");
}

const BY_NAME = new Map<
  string,
  { readonly metric: CatalogMetric; readonly source: MetricSource }[]
>();
const BY_PLAIN_NAME = new Map<string, CatalogMetric>();
for (const entry of CATALOG) {
  for (const source of entry.sources) {
    for (const name of source.names) {
      getOrInsert(BY_NAME, name, () => []).push({ metric: entry, source });
    }
  }
  for (const name of [entry.id, entry.title, ...entry.aliases]) {
    if (!BY_PLAIN_NAME.has(plainName(name))) BY_PLAIN_NAME.set(plainName(name), entry);
  }
}

/** What an exporter's metric serves; empty where it serves nothing. */
export function servedBy(
  name: string,
): readonly { readonly metric: CatalogMetric; readonly source: MetricSource }[] {
  return BY_NAME.get(name) ?? [];
}

/** A column of a table by the catalog's words ("GPU Duty Cycle", "gpu_util"); null for words of its own. */
export function catalogMetric(name: string): CatalogMetric | null {
  return BY_PLAIN_NAME.get(plainName(name)) ?? null;
}

/**
 * What machines are compared by where a table has words of its own: any lasting difference of a quarter. Of a counter,
 * what it gains; that confirms, but does not accuse alone, for nobody knows what it counts.
 */
export function unknownMetric(name: string): CatalogMetric {
  const counts = isCounterName(name);
  return metric(name, name, "", "other", counts ? [rate(name)] : [], {
    isMinder: false,
    perDevice: true,
    material: 1.25,
    offset: 0,
    decides: !counts,
  });
}

/** Exporters' names that say that a value only ever rises: what it was before the data is old news. */
export function isCounterName(name: string): boolean {
  return COUNTER_NAME.test(name);
}

const COUNTER_NAME =
  /_total$|^DCGM_FI_\w+_(?:COUNT|COUNTER|VIOLATION|REMAPPED_ROWS|RETIRED_\w+|CONSUMPTION)$/i;
