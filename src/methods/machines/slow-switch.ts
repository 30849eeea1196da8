/**
 * "Which switch is slow?", asked of monitoring. A leaf switch serves one NIC of each of many machines (rails). If it is
 * slow no machine is unlike its peers, because all have the same trouble; but on each the same NIC, the one behind that
 * switch, became unlike the machine's other NICs.
 */
import { groupBy } from "../../base/group-by.ts";
import { count } from "../../base/text.ts";
import { median } from "../../maths/robust.ts";
import type { NewFinding } from "../../model/finding.ts";
import type { Fleet, MetricGrid } from "../../model/fleet.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { Method } from "../../model/method.ts";
import { jobFleet, ranksByMachine } from "./job-fleet.ts";

/** What a NIC carries, and what says that it is held up; pauses and marks of a healthy NIC come in bursts. */
const OF_NIC: readonly { readonly metric: string; readonly side: Side; readonly times: number }[] =
  [
    { metric: "tcp-rdma-throughput", side: "low", times: 1 / 1.35 },
    { metric: "pfc-tx-packet-rate", side: "high", times: 5 },
    { metric: "port-transmit-wait", side: "high", times: 5 },
    { metric: "ecn-packet-rate", side: "high", times: 5 },
    { metric: "cnp-packet-rate", side: "high", times: 5 },
  ];
type Side = "low" | "high";

/** Fewer machines may have the same habit by chance. */
const FEWEST_MACHINES = 3;
/** Shares of a switch's machines whose NIC behind it is the odd one: now, and before. */
const MOST = 0.7;
const FEW = 0.35;
/** How long it must have lasted (Minder's continuity), and the share of the time that is certainly before. */
const LASTS_S = 240;
const BEFORE = 0.25;
/** Ticks over whose median the beginning is looked for. */
const SMOOTH = 5;
/** Throughput and congestion together; one of them alone. */
const WEIGHT = 0.85;
const WEIGHT_ALONE = 0.6;

export const slowSwitch: Method = {
  id: "machines/switch",
  applies: (job) =>
    (job.metrics?.length ?? 0) > 0 && [...job.ranks.values()].some(({ leaf }) => leaf !== null),
  *run(job) {
    const fleet = jobFleet(job);
    if (fleet) yield* switchFindings(job, fleet);
  },
};

interface Port {
  readonly machine: number;
  readonly rank: Rank;
  readonly nic: string;
}

interface Rail {
  readonly leaf: string;
  readonly ports: readonly Port[];
}

interface Seen {
  readonly metric: string;
  readonly sinceS: number;
  readonly machines: number;
}

export function switchFindings(job: Job, fleet: Fleet): NewFinding[] {
  const slow = railsOf(job, fleet).flatMap((rail) => {
    const seen = OF_NIC.flatMap(({ metric, side, times }) => {
      const grid = fleet.grids.find((one) => one.metric === metric);
      return (grid && seenIn(grid, side, times, rail, fleet)) ?? [];
    });
    return seen.length > 0 ? [{ rail, seen }] : [];
  });
  return slow.map(({ rail, seen }) => findingOf(job, fleet, rail, seen));
}

/** Switches with one NIC of each of their machines; those that a machine has several NICs behind cannot be told so. */
function railsOf(job: Job, fleet: Fleet): Rail[] {
  const ports = [...ranksByMachine(job, fleet.machines)].flatMap(([name, ranks]) =>
    ranks.flatMap((rank) => {
      const { leaf, nic } = job.ranks.get(rank)!;
      const machine = fleet.machines.indexOf(name);
      return leaf === null || nic === null ? [] : [{ leaf, machine, rank, nic }];
    }),
  );
  return [...groupBy(ports, ({ leaf }) => leaf)].flatMap(([leaf, all]) => {
    const nics = new Map(all.map((port) => [port.nic, port]));
    const machines = new Set([...nics.values()].map(({ machine }) => machine));
    const isRail = machines.size >= FEWEST_MACHINES && machines.size === nics.size;
    return isRail ? [{ leaf, ports: [...nics.values()] }] : [];
  });
}

function seenIn(
  grid: MetricGrid,
  side: Side,
  times: number,
  { ports }: Rail,
  fleet: Fleet,
): Seen | null {
  const behind = ports.flatMap((port) => {
    const device = deviceOf(fleet, grid, port.nic);
    return device < 0 ? [] : [{ machine: port.machine, device }];
  });
  if (behind.length < FEWEST_MACHINES) return null;
  // By tick: the share of the machines whose NIC behind this switch is the odd one out.
  const share = new Float64Array(grid.ticks);
  for (let t = 0; t < grid.ticks; t++) {
    let known = 0;
    let odd = 0;
    for (const { machine, device } of behind) {
      const is = oddOne(grid, machine * grid.ticks + t, side, times);
      if (is === null) continue;
      known++;
      if (is === device) odd++;
    }
    share[t] = known >= FEWEST_MACHINES ? odd / known : NaN;
  }
  const now = Math.ceil(LASTS_S / grid.stepS);
  const known = [...share.keys()].filter((t) => !Number.isNaN(share[t]!));
  const before = known.slice(0, Math.floor(BEFORE * known.length));
  if (known.length < 2 * now || before.length === 0) return null;
  const mean = (ticks: readonly number[]): number =>
    ticks.reduce((sum, t) => sum + share[t]!, 0) / ticks.length;
  if (mean(known.slice(-now)) < MOST || mean(before) > FEW) return null;
  let first = known.length - 1;
  while (
    first > 0 &&
    median(known.slice(Math.max(0, first - SMOOTH), first).map((t) => share[t]!)) >= MOST
  )
    first--;
  const sinceS = grid.startS + known[first]! * grid.stepS;
  return { metric: grid.metric, sinceS, machines: behind.length };
}

/** The device that is far from the mean of the others; -1 where none is, null where it cannot be told. */
function oddOne(grid: MetricGrid, at: number, side: Side, times: number): number | null {
  const { mean: total, lowDevice, highDevice, reporting } = grid;
  const devices = reporting?.[at] ?? 0;
  const extreme = side === "low" ? grid.low[at]! : grid.high[at]!;
  const which = (side === "low" ? lowDevice : highDevice)?.[at];
  if (devices < 2 || which === undefined || Number.isNaN(extreme)) return null;
  // Counters of NICs are summed over the machine (model/metric-catalog.ts).
  const others = (total[at]! - extreme) / (devices - 1);
  if (!(others > 0)) return side === "high" && extreme > 0 ? which : null;
  const isFar = side === "low" ? extreme <= times * others : extreme >= times * others;
  return isFar ? which : -1;
}

/** Index among the grid's devices; exporters know a NIC under two names, numbered in the same order. */
function deviceOf(fleet: Fleet, grid: MetricGrid, nic: string): number {
  const own = nic.split("/").at(-1)!;
  const direct = grid.devices.findIndex((name) => plain(name) === own);
  if (direct >= 0) return direct;
  for (const { metric } of OF_NIC) {
    const other = fleet.grids.find((one) => one.metric === metric);
    if (!other || other.devices.length !== grid.devices.length) continue;
    const place = inOrder(other.devices).findIndex((name) => plain(name) === own);
    if (place >= 0) return grid.devices.indexOf(inOrder(grid.devices)[place]!);
  }
  return -1;
}

const plain = (device: string): string => device.replace(/\/\d+$/, "");

function inOrder(devices: readonly string[]): string[] {
  return devices.toSorted((a, b) => a.localeCompare(b, "en", { numeric: true }));
}

function findingOf(
  job: Job,
  fleet: Fleet,
  { leaf, ports }: Rail,
  seen: readonly Seen[],
): NewFinding {
  const ranks = [...job.ranks.values()].filter((one) => one.leaf === leaf).map(({ rank }) => rank);
  const kinds = new Set(seen.map(({ metric }) => metric === "tcp-rdma-throughput"));
  const weight = kinds.size > 1 ? WEIGHT : WEIGHT_ALONE;
  const since = new Date(1000 * Math.min(...seen.map(({ sinceS }) => sinceS))).toISOString();
  const metrics = seen.map(({ metric }) => metric);
  const machines = Math.max(...seen.map((one) => one.machines));
  const says = `on ${count(machines, "machine")} of ${fleet.machines.length} the NIC behind ${leaf} became unlike the machine's other NICs (${metrics.join(", ")}): the switch, which is what they share`;
  return {
    says,
    weight,
    at: [],
    data: { fact: "slow-switch", switch: leaf, since, until: null, metrics, ports: ports.length },
    accuses: [
      {
        kind: "faulty-machine",
        type: "switch",
        ranks,
        link: null,
        name: leaf,
        cause: "network-slow",
        weight,
        why: says,
      },
    ],
    clears: [],
  };
}
