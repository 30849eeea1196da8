/** What node_exporter shows of a NIC: its ethtool and infiniband collectors. */
import type { GpuEffect } from "./effects.ts";
import type { GpuFamily, GpuSight, MetricType } from "./families.ts";
import type { GpuLevel } from "./levels.ts";
import { NO_SPREAD, type Spread } from "./spread.ts";

const carries = ({ effect, nicPerS }: GpuLevel): number => (effect.linkDown ? 0 : nicPerS + 4e4);

/** A busy RoCE fabric always marks and pauses a little, in proportion to what it is asked to carry. */
const marks =
  (perGigabyte: number, factor: (effect: Readonly<GpuEffect>) => number): GpuFamily["level"] =>
  ({ effect, offeredPerS }) => {
    if (effect.linkDown) return 0;
    const strength = factor(effect);
    const traffic = Math.max(offeredPerS / 1e9, strength > 1 ? 0.5 : 0);
    return perGigabyte * strength * traffic;
  };

const BYTES: Spread = {
  unit: "relative",
  machine: 0.003,
  device: 0.005,
  slow: 0.015,
  fast: 0.03,
  common: 0.01,
};
/** Where a machine sits in the fabric decides how often its traffic collides (assumed). */
const MARKS: Spread = {
  unit: "logarithmic",
  machine: 0.15,
  device: 0.15,
  slow: 0.3,
  fast: 0.4,
  common: 0.15,
};

function nic(
  source: "infiniband" | "ethtool",
  type: MetricType,
  name: string,
  help: string,
  sees: GpuSight,
  spread: Spread,
  level: GpuFamily["level"],
): Omit<GpuFamily, "id"> {
  const scale = { decimals: 0, least: 0, most: Infinity, quantum: 0, lagS: 0 };
  return { source, type, name, help, sees, spread, level, ...scale };
}

const IB = "node_infiniband";
const DRAFTS = [
  nic(
    "ethtool",
    "unknown",
    "node_ethtool_transmitted_bytes_phy",
    "Network interface tx_bytes_phy",
    "traffic",
    BYTES,
    carries,
  ),
  nic(
    "ethtool",
    "unknown",
    "node_ethtool_transmitted_prio3_pause",
    "Network interface tx_prio3_pause",
    "pfc",
    MARKS,
    marks(3, ({ pfc }) => pfc),
  ),
  nic(
    "infiniband",
    "counter",
    `${IB}_port_data_transmitted_bytes_total`,
    "Number of data octets transmitted on all links",
    "traffic",
    BYTES,
    carries,
  ),
  nic(
    "infiniband",
    "counter",
    `${IB}_np_ecn_marked_roce_packets_received_total`,
    "Number of RoCEv2 packets received by the notification point which were marked for experiencing the congestion",
    "congestion",
    MARKS,
    marks(40, ({ congestion }) => congestion),
  ),
  nic(
    "infiniband",
    "counter",
    `${IB}_np_cnp_packets_sent_total`,
    "Number of CNP packets sent by the notification point",
    "congestion",
    MARKS,
    marks(12, ({ congestion }) => congestion),
  ),
  nic(
    "infiniband",
    "counter",
    `${IB}_rp_cnp_packets_handled_total`,
    "Number of CNP packets handled by the reaction point",
    "congestion",
    MARKS,
    marks(12, ({ congestion }) => congestion),
  ),
  nic(
    "infiniband",
    "gauge",
    `${IB}_state_id`,
    "State of the InfiniBand port (0: no change, 1: down, 2: init, 3: armed, 4: active, 5: act defer)",
    "state",
    NO_SPREAD,
    ({ effect }) => (effect.linkDown ? 1 : 4),
  ),
];

const FIRST_ID = 100;
export const NIC_FAMILIES: readonly GpuFamily[] = DRAFTS.map((draft, n) => ({
  ...draft,
  id: FIRST_ID + n,
}));
