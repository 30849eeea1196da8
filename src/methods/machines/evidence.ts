/** What speaks against a machine, whatever kind of observation it is: values unlike its peers', or no values at all. */
import type { Deviation } from "../../model/machine-report.ts";
import type { Silence, LostDevice } from "./absence.ts";
import type { Episode } from "./episodes.ts";
import { onsetOf } from "./onset.ts";
import { peersOf } from "./roles.ts";

/** Observations of one kind move together and count once. */
export type EvidenceKind =
  | "cpu"
  | "gpu-work"
  | "gpu-memory"
  | "thermal"
  | "memory"
  | "disk"
  | "tcp"
  | "network"
  | "congestion"
  | "link"
  | "state"
  | "absence"
  | "other";

const KIND_OF: Readonly<Record<string, EvidenceKind>> = {
  "cpu-usage": "cpu",
  "memory-usage": "memory",
  "disk-usage": "disk",
  "disk-busy": "disk",
  "blocked-processes": "disk",
  "tcp-throughput": "tcp",
  "tcp-rdma-throughput": "network",
  "pcie-bandwidth": "network",
  "pcie-usage": "network",
  "pfc-tx-packet-rate": "congestion",
  "port-transmit-wait": "congestion",
  "ecn-packet-rate": "congestion",
  "cnp-packet-rate": "congestion",
  // GPUs without work turn their links down: no state that would decide at once.
  "pcie-link-generation": "link",
  "pcie-link-width": "link",
  // Idle GPUs of some kinds lower it.
  "gpu-memory-clock": "link",
  "gpu-thermal-violation": "thermal",
  "gpu-power-violation": "thermal",
  "pfc-rx-packet-rate": "congestion",
  load: "cpu",
  "cpu-pressure": "cpu",
  "io-pressure": "disk",
  "memory-pressure": "memory",
  swapping: "memory",
  "gpu-memory-used": "gpu-memory",
  "gpu-temperature": "thermal",
  "gpu-clocks": "thermal",
  "gpu-duty-cycle": "gpu-work",
  "gpu-power-draw": "gpu-work",
  "gpu-power-for-activity": "gpu-work",
  "gpu-sm-activity": "gpu-work",
  "gpu-busier-than-siblings": "gpu-work",
  "gpu-tensor-core-activity": "gpu-work",
  "gpu-graphics-engine-activity": "gpu-work",
  "gpu-fp-engine-activity": "gpu-work",
  "gpu-memory-bandwidth": "gpu-work",
  "nvlink-bandwidth": "gpu-work",
};

export function kindOf(metric: string, group: string): EvidenceKind {
  return KIND_OF[metric] ?? (group === "state" ? "state" : "other");
}

/** What a machine that writes a checkpoint, or loads data, shows more of than others. */
const INPUT_OUTPUT: readonly EvidenceKind[] = ["cpu", "memory", "disk", "tcp"];

export interface Evidence {
  readonly machine: number;
  readonly kind: EvidenceKind;
  readonly fromS: number;
  readonly toS: number;
  readonly isOpen: boolean;
  /** How far beyond the limit: 1 is just unlike. */
  readonly strength: number;
  /** Whether it may accuse on its own. */
  readonly decides: boolean;
  /** More input and output than others have: the ordinary lot of whoever writes the checkpoint. */
  readonly isBusier: boolean;
  /** Whether the whole job slowed down, or halted, when it began: an observation of its own (job-pace.ts). */
  readonly isHeldUp?: boolean;
  readonly deviation: Deviation;
  /** Where it comes from, for those that look closer; null for absence. */
  readonly episode: Episode | null;
}

export function evidenceOf(episode: Episode): Evidence {
  const { view, machine, fromS, toS, isOpen, strength, sigmas } = episode;
  const { metric, side } = view;
  const kind = kindOf(metric.id, metric.group);
  return {
    machine,
    kind,
    fromS,
    toS,
    isOpen,
    strength,
    // More traffic slows nobody down.
    decides: metric.decides && !(kind === "tcp" && side === "high"),
    isBusier: side === "high" && INPUT_OUTPUT.includes(kind),
    deviation: {
      metric: metric.id,
      direction: side,
      device: null,
      fromS,
      toS,
      value: NaN,
      peers: NaN,
      sigmas,
    },
    episode,
  };
}

/** With figures, the device and the onset to the sample: dear, so only for what is shown. */
export function detailed(evidence: Evidence): Evidence {
  const { episode } = evidence;
  if (!episode) return evidence;
  const fromS = onsetOf(episode);
  const deviation = { ...evidence.deviation, ...figures(episode, fromS), fromS };
  return { ...evidence, fromS, deviation };
}

/** Whether the figures that are shown differ by what matters, or nearly, and to the side that is claimed. */
export function differs({ episode, deviation }: Evidence): boolean {
  if (!episode) return true;
  const { scale, side } = episode.view;
  const off = scale.to(deviation.value) - scale.to(deviation.peers);
  return (side === "low" ? -off : off) >= scale.material / 2;
}

/**
 * The share of its own samples that are unlike the peers' middle. A burst of one sample makes every window that holds it
 * unlike, and so do samples that are now like the peers' and now far from them; neither is a state that lasts.
 */
export function unlikeShare({ episode, fromS, toS, machine }: Evidence): number {
  if (!episode) return 1;
  const { grid, values, side, scale, peers } = episode.view;
  const { ticks, startS, stepS } = grid;
  const first = Math.max(0, Math.floor((fromS - startS) / stepS));
  const last = Math.max(first, Math.min(ticks, Math.ceil((toS - startS) / stepS)));
  const others = peersOf(peers.role, machine, 40);
  let own = 0;
  let unlike = 0;
  // Tick by tick: where all of them change, the one that is scraped first would seem unlike for long.
  for (let t = first; t < last; t++) {
    const value = values[machine * ticks + t]!;
    const usual = middle(
      others.map((one) => values[one * ticks + t]!).filter((one) => one === one),
    );
    if (value !== value || usual !== usual) continue;
    own++;
    const off = scale.to(value) - scale.to(usual);
    if ((side === "low" ? -off : off) >= scale.material / 2) unlike++;
  }
  return unlike / Math.max(1, own);
}

/** The machine's mean, its peers' and the device that stands out, between two times. */
function figures(
  { view, machine, toS }: Episode,
  fromS: number,
): { value: number; peers: number; device: string | null } {
  const { grid, values, side, peers } = view;
  const { ticks, startS, stepS } = grid;
  const first = Math.max(0, Math.floor((fromS - startS) / stepS));
  const last = Math.min(ticks, Math.ceil((toS - startS) / stepS));
  const at = side === "low" ? grid.lowDevice : grid.highDevice;
  const votes = new Map<number, number>();
  const mine: number[] = [];
  const otherEnd: number[] = [];
  for (let t = first; t < last; t++) {
    const value = values[machine * ticks + t]!;
    if (value !== value) continue;
    mine.push(value);
    if (at) {
      otherEnd.push((side === "low" ? grid.high : grid.low)[machine * ticks + t]!);
      const device = at[machine * ticks + t]!;
      votes.set(device, (votes.get(device) ?? 0) + 1);
    }
  }
  const others: number[] = [];
  const members = peersOf(peers.role, machine, 40);
  const step = Math.max(1, Math.floor((last - first) / 30));
  for (const member of members) {
    for (let t = first; t < last; t += step) {
      const value = values[member * ticks + t]!;
      if (value === value) others.push(value);
    }
  }
  const [device, count] = [...votes].sort((a, b) => b[1] - a[1])[0] ?? [0, 0];
  // One device stands out only where it is nearly always the same, and the machine's others are not like it.
  const isAlone = otherEnd.length > 0 && differ(view, meanOf(mine), meanOf(otherEnd));
  const named = count >= 0.8 * mine.length && isAlone;
  return {
    value: meanOf(mine),
    peers: middle(others),
    device: named ? grid.devices[device]! : null,
  };
}

function differ({ scale }: Episode["view"], a: number, b: number): boolean {
  return Math.abs(scale.to(a) - scale.to(b)) >= scale.material / 2;
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function middle(values: number[]): number {
  values.sort((a, b) => a - b);
  return values[values.length >> 1] ?? NaN;
}

export function silenceEvidence({ machine, fromS, toS, exporter, isOpen }: Silence): Evidence {
  return {
    machine,
    kind: "absence",
    fromS,
    toS,
    isOpen,
    strength: 2,
    decides: exporter === null,
    isBusier: false,
    deviation: {
      metric: "reporting",
      direction: "absent",
      device: exporter,
      fromS,
      toS,
      value: 0,
      peers: 1,
      sigmas: Infinity,
    },
    episode: null,
  };
}

export function lossEvidence(loss: LostDevice, toS: number): Evidence {
  const { machine, fromS, had, has, what } = loss;
  return {
    machine,
    kind: "absence",
    fromS,
    toS,
    isOpen: true,
    // Less than a whole machine's silence: one device's samples are easier lost than a machine.
    strength: 1.5,
    decides: true,
    isBusier: false,
    deviation: {
      metric: what,
      direction: "absent",
      device: null,
      fromS,
      toS,
      value: has,
      peers: had,
      sigmas: Infinity,
    },
    episode: null,
  };
}
