/**
 * Which part of an unlike machine is meant. Where all that is unlike is what one NIC carries, the rest of the machine is
 * as good as its peers, and whoever replaces it replaces too much. Where the NICs of two machines fell together and as
 * far, the link between them did.
 */
import type { Cause } from "../../model/cause.ts";
import type { Accusation } from "../../model/finding.ts";
import type { Fleet } from "../../model/fleet.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { Deviation, FaultyMachine } from "../../model/machine-report.ts";
import { ranksByMachine } from "./job-fleet.ts";

export interface Component extends Pick<Accusation, "type" | "ranks" | "link"> {
  readonly name: string;
}

/** What a NIC's counters say, and what a GPU sends to its NIC over the bus. */
const OF_NIC = [
  "tcp-rdma-throughput",
  "pfc-tx-packet-rate",
  "port-transmit-wait",
  "ecn-packet-rate",
  "cnp-packet-rate",
];
const OF_BUS = ["pcie-bandwidth", "pcie-usage"];
/** Read at a moment of an iteration, so that by chance it differs for minutes: a part that is at fault shows more. */
const OF_A_MOMENT = ["gpu-power-draw"];

export function componentOf(job: Job, fleet: Fleet | null, faulty: FaultyMachine): Component {
  const { machine } = faulty;
  const deviations = faulty.deviations.filter(({ metric }) => !OF_A_MOMENT.includes(metric));
  const ranks = ranksByMachine(job, [machine]).get(machine)!;
  const whole: Component = { type: "machine", ranks, link: null, name: machine };
  const device = nicOf(deviations);
  // Without a job there is nobody behind the NIC to name, and the machine is what can be acted upon.
  if (device === null || ranks.length === 0) return whole;
  const served = new Set(deviations.map((one) => rankServed(job, fleet, ranks, one)));
  served.delete(null);
  if (served.size > 1) return whole;
  const [rank] = served;
  const own = rank === undefined ? null : (job.ranks.get(rank!)?.nic ?? null);
  return {
    type: "nic",
    ranks: rank === undefined ? ranks : [rank!],
    link: null,
    name: own ?? `${machine}/${device}`,
  };
}

/**
 * In a job that stands still: the rank whose GPU alone is unlike, where its NIC is the only one besides. What the whole
 * machine shows follows from that.
 */
export function haltedPart(job: Job, fleet: Fleet | null, faulty: FaultyMachine): Component {
  const { machine, deviations } = faulty;
  const ranks = ranksByMachine(job, [machine]).get(machine)!;
  const ofGpus = deviations.filter(({ metric }) => isOfGpu(metric));
  const others = deviations.filter(({ metric }) => OF_NIC.includes(metric));
  const [first] = ofGpus;
  if (first === undefined || ranks.length === 0) return componentOf(job, fleet, faulty);
  const whole: Component = { type: "machine", ranks, link: null, name: machine };
  const isOne = ofGpus.every(({ device }) => device !== null && device === first.device);
  const rank = isOne
    ? ranks.find((one) => `gpu${job.ranks.get(one)!.gpu}` === first.device)
    : undefined;
  if (rank === undefined) return whole;
  // All NICs at once are not this GPU's; where nothing says whose NIC it is, nothing speaks against it.
  const isItsOwn = others.every((one) => {
    if (one.device === null) return false;
    const served = rankServed(job, fleet, ranks, one);
    return served === null || served === rank;
  });
  return isItsOwn
    ? { type: "rank", ranks: [rank], link: null, name: `${machine}/${first.device}` }
    : whole;
}

const isOfGpu = (metric: string): boolean =>
  metric === "xid-errors" || OF_BUS.includes(metric) || metric.startsWith("gpu-");

/** The NIC, where nothing else is unlike; exporters may know it under two names, of which the first is taken. */
function nicOf(deviations: readonly Deviation[]): string | null {
  const isOnly = deviations.every(
    ({ metric, device }) => device !== null && (OF_NIC.includes(metric) || OF_BUS.includes(metric)),
  );
  const ofNic = deviations.filter(({ metric }) => OF_NIC.includes(metric));
  return isOnly ? (ofNic[0]?.device ?? null) : null;
}

/** The rank whose NIC a deviation speaks of; null where the job's file does not tell. */
function rankServed(
  job: Job,
  fleet: Fleet | null,
  ranks: readonly Rank[],
  { metric, device }: Deviation,
): Rank | null {
  const known = ranks.map((rank) => job.ranks.get(rank)!);
  const only = (found: readonly { readonly rank: Rank }[]): Rank | null =>
    found.length === 1 ? found[0]!.rank : null;
  if (OF_BUS.includes(metric)) return only(known.filter(({ gpu }) => `gpu${gpu}` === device));
  const names = [device!, ...otherNames(fleet, metric, device!)].map(withoutPort);
  return only(known.filter(({ nic }) => nic !== null && names.includes(nic.split("/").at(-1)!)));
}

const withoutPort = (device: string): string => device.replace(/\/\d+$/, "");

/**
 * A NIC is "ens3np0" to the network and "mlx5_3" to RDMA, and no exporter says that they are one. Both are numbered in
 * the order of the bus; where there are as many of the one kind as of the other, the third is the third.
 */
function otherNames(fleet: Fleet | null, metric: string, device: string): string[] {
  const inOrder = (devices: readonly string[]): string[] =>
    devices.toSorted((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const grids = fleet?.grids ?? [];
  const own = inOrder(grids.find((grid) => grid.metric === metric)?.devices ?? []);
  const place = own.indexOf(device);
  if (place < 0) return [];
  return grids
    .filter((grid) => OF_NIC.includes(grid.metric) && grid.devices.length === own.length)
    .map(({ devices }) => inOrder(devices)[place]!);
}

/** Seconds by which the ends of one link may be seen apart: samples of half a minute, two of them. */
const TOGETHER_S = 60;
/** What both ends of a link carry is the same; two NICs that are slow each for itself are not slow alike. */
const ALIKE = 1.15;

/** The link between two NICs, if these two and no others fell at the same time to the same throughput. */
export function linkBetween(
  faulty: readonly FaultyMachine[],
  accused: readonly { readonly component: Component; readonly cause: Cause }[],
): Component | null {
  const components = accused.map(({ component }) => component);
  if (faulty.length !== 2 || accused.some(({ cause }) => cause !== "network-slow")) return null;
  const [a, b] = components;
  if (components.some(({ type, ranks }) => type !== "nic" || ranks.length !== 1)) return null;
  const [fellA, fellB] = faulty.map(throughputLeft);
  if (Math.abs(faulty[0]!.sinceS - faulty[1]!.sinceS) > TOGETHER_S) return null;
  // Not to be told where either is unknown.
  if (!(Math.max(fellA! / fellB!, fellB! / fellA!) <= ALIKE)) return null;
  const ranks = [a!.ranks[0]!, b!.ranks[0]!].sort((one, other) => one - other);
  const name = [a!.name, b!.name].sort().join("–");
  return { type: "link", ranks, link: [`rank:${ranks[0]}`, `rank:${ranks[1]}`], name };
}

/** Share of the peers' throughput that is left. */
function throughputLeft({ deviations }: FaultyMachine): number {
  const fell = deviations.find(({ metric }) => metric === "tcp-rdma-throughput");
  return fell ? fell.value / fell.peers : NaN;
}
