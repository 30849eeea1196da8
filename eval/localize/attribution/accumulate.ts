/**
 * From irregularities to devices (Holmes §4.4, appendix D): each device gathers the rates of the irregularities that
 * use it, as a posterior under a Beta prior from what broke in production, or as a plain sum; switches are discounted,
 * since more lies above them.
 */
import type { Rank } from "../../../src/model/ids.ts";
import type { Device, DeviceKind, Devices } from "./devices.ts";

export type Irregularity =
  | {
      readonly cause: "compute";
      readonly ranks: readonly Rank[];
      /** R(x), in [0, 1]. */
      readonly rate: number;
      /** Null where CPU and GPU cannot be distinguished: then both are used, and the prior decides. */
      readonly side: "gpu" | "cpu" | null;
    }
  | {
      readonly cause: "network";
      /** Members of the group in its order, or both ends of a transfer. */
      readonly ranks: readonly Rank[];
      readonly rate: number;
    };

/** By kind of device, shares of what broke. */
type Prior = Readonly<Record<DeviceKind, number>>;

/** Table 1 (appendix A): 74, 23, 12, 6 and 4 of 126 anomalous devices; the other 7 are of no kind. */
export const TABLE_1: Prior = { gpu: 0.587, nic: 0.183, link: 0.095, switch: 0.048, cpu: 0.032 };

export interface AccumulateOptions {
  /** Null for the naive linear sum of appendix E. */
  readonly prior: Prior | null;
  /** α, in irregularities: how many of rate 1 the prior weighs. The paper does not say; at 1 two outvote it. */
  readonly alpha: number;
  /** Topology-aware decay H(d). */
  readonly decay: boolean;
}

const ACCUMULATE_DEFAULTS: AccumulateOptions = { prior: TABLE_1, alpha: 1, decay: true };

export interface DeviceScore {
  readonly device: Device;
  /** I(d): in (0, 1) with a prior, a sum of rates without. */
  readonly score: number;
  /** Irregularities that use it. */
  readonly irregularities: number;
}

/**
 * H(d) for C(d) NICs below. The paper prints ln(C + ε − 1) / C with ε = 1e−6, which is −13.8 for one NIC and 0 for two,
 * so that a device would be the less suspect the more speaks against it. With Euler's e it is 1 for one NIC and falls
 * from there, which is what the text asks for; e was surely meant.
 */
export function topologyDecay(nicsBelow: number): number {
  const connections = Math.max(1, nicsBelow);
  return Math.log(connections + Math.E - 1) / connections;
}

/** The network's devices only: "for a network device d with connections C(d) to downside NICs". */
function decayOf({ kind, nicsBelow }: Device): number {
  return kind === "switch" ? topologyDecay(nicsBelow) : 1;
}

/**
 * Devices that at least one irregularity uses, the most suspect first; equal ones in the order in which irregularities
 * name them. All others have the prior alone, which says nothing of this job.
 */
export function accumulate(
  irregularities: readonly Irregularity[],
  devices: Devices,
  options: Partial<AccumulateOptions> = {},
): readonly DeviceScore[] {
  const { prior, alpha, decay } = { ...ACCUMULATE_DEFAULTS, ...options };
  const sums = new Map<Device, { rates: number; count: number }>();
  let total = 0;
  for (const irregularity of irregularities) {
    const rate = Number.isFinite(irregularity.rate) ? Math.max(0, irregularity.rate) : 0;
    if (rate === 0) continue;
    for (const device of used(irregularity, devices)) {
      const share = rate * (decay ? decayOf(device) : 1);
      const known = sums.get(device);
      if (known) {
        known.rates += share;
        known.count++;
      } else sums.set(device, { rates: share, count: 1 });
      total += share;
    }
  }
  // Beta(a, b) with a = α·p and b = α·(1 − p): a + b = α for every device. "Σ_d Σ_x R + a(d) + b(d)" is read with the
  // sum over R alone; read the other way, the same number stands below every device, too, and the order stays.
  const posterior = (rates: number, kind: DeviceKind): number =>
    prior === null ? rates : (rates + alpha * prior[kind]) / (total + alpha);
  const scores = [...sums].map(([device, { rates, count }]) => ({
    device,
    score: posterior(rates, device.kind),
    irregularities: count,
  }));
  return scores.sort((a, b) => b.score - a.score);
}

function used(irregularity: Irregularity, devices: Devices): readonly Device[] {
  if (irregularity.cause === "network") return devices.among(irregularity.ranks);
  const { ranks, side } = irregularity;
  return [
    ...new Set([
      ...(side === "cpu" ? [] : ranks.map((rank) => devices.gpuOf(rank))),
      ...(side === "gpu" ? [] : ranks.map((rank) => devices.cpuOf(rank))),
    ]),
  ];
}
