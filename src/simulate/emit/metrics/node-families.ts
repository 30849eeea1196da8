/** What node_exporter shows of a machine as a whole. */
import type { NodeFamily } from "./families.ts";
import { NO_SPREAD, type Spread } from "./spread.ts";

const MEMORY_BYTES = 2 * 1024 ** 4;
const DISK_BYTES = 1.75 * 1024 ** 4;
const ROOT = 'device="/dev/nvme0n1p2",fstype="ext4",mountpoint="/"';
const MODES = ["idle", "iowait", "system", "user"] as const;
/** Of the kernel, caches that cannot be given back and daemons. */
const MEMORY_OF_SYSTEM = 0.03;
const none = (): number => 0;
const clamp = (value: number, least: number, most: number): number =>
  value < least ? least : value > most ? most : value;

const spread = (machine: number, slow: number, fast: number, common: number): Spread => ({
  unit: "relative",
  machine,
  device: 0,
  slow,
  fast,
  common,
});

type Draft = Omit<NodeFamily, "id">;
const ANY = { least: 0, most: Infinity, quantum: 0 };
const CONSTANT = { ...ANY, spread: NO_SPREAD, sees: "" as const, extra: none };
const asIs = (level: number): number => level;

const DRAFTS: readonly Draft[] = [
  {
    name: "node_cpu_seconds_total",
    type: "counter",
    help: "Seconds the CPUs spent in each mode.",
    decimals: 2,
    // Two logical CPUs stand for the machine's 192: the average over them is what is asked for.
    labels: ["0", "1"].flatMap((cpu) => MODES.map((mode) => `cpu="${cpu}",mode="${mode}"`)),
    ...ANY,
    least: 0.004,
    most: 0.985,
    // ±15 % of machine by machine: other daemons, other pinning (assumed).
    spread: spread(0.05, 0.04, 0.05, 0.02),
    sees: "cpu",
    level: ({ cpu, contention }) => clamp(0.17 * cpu + contention + 0.005, 0.004, 0.985),
    extra: ({ iowait }) => 0.002 + iowait,
    show(usage, iowait, label) {
      const waits = Math.min(1 - usage, iowait);
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
    ...ANY,
    most: 0.95,
    // ±10 % of machine by machine: pinned caches, leaks of daemons (assumed).
    spread: spread(0.035, 0.01, 0.002, 0.004),
    sees: "memory",
    level: ({ memory }) => 0.29 * memory,
    extra: none,
    show: (used) => MEMORY_BYTES * (1 - MEMORY_OF_SYSTEM - used),
  },
  {
    name: "node_memory_MemTotal_bytes",
    type: "gauge",
    help: "Memory information field MemTotal_bytes.",
    decimals: 0,
    labels: [""],
    ...CONSTANT,
    level: () => MEMORY_BYTES,
    show: asIs,
  },
  {
    name: "node_filesystem_avail_bytes",
    type: "gauge",
    help: "Filesystem space available to non-root users in bytes.",
    decimals: 0,
    labels: [ROOT],
    least: 0.02,
    most: 1,
    quantum: 0,
    // What earlier jobs left: anything from 10 to 90 %.
    spread: {
      unit: "absolute",
      machine: 0.4,
      device: 0,
      slow: 0.0002,
      fast: 1e-6,
      common: 0,
      isUniform: true,
    },
    sees: "diskBytes",
    level: () => 0.5,
    // Logs grow by a few kilobytes a second.
    extra: ({ diskBytes }, second) => diskBytes + 4000 * second,
    show: (free, written) => Math.max(0, DISK_BYTES * free - written),
  },
  {
    name: "node_filesystem_size_bytes",
    type: "gauge",
    help: "Filesystem size in bytes.",
    decimals: 0,
    labels: [ROOT],
    ...CONSTANT,
    level: () => DISK_BYTES,
    show: asIs,
  },
  {
    name: "node_network_transmit_bytes_total",
    type: "counter",
    help: "Network device statistic transmit_bytes.",
    decimals: 0,
    labels: ['device="eth0"'],
    ...ANY,
    spread: { ...spread(0.12, 0.2, 0.3, 0.1), unit: "logarithmic" },
    sees: "tcp",
    // Storage, logs and heartbeats: the kernel's path, which RDMA goes around.
    level: ({ tcp }) => 2.4e6 * tcp,
    extra: none,
    show: asIs,
  },
];

const FIRST_ID = 200;
export const NODE_FAMILIES: readonly NodeFamily[] = DRAFTS.map((draft, n) => ({
  ...draft,
  id: FIRST_ID + n,
}));
