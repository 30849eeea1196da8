/**
 * Transfers and collectives: how long they take over NVLink or through NICs and switches, and the slowest device on
 * their way. A NIC serves one after the other.
 */
import type { DeviceState } from "./faults.ts";
import type { LaneGroups, Lanes } from "./lanes.ts";
import { sharedGroup, wireBytes } from "./links.ts";
import { networkNoise } from "./noise.ts";
import { CP, DP, EP, TP, type StageProgram } from "./program.ts";
import type { ClusterSpec } from "./spec.ts";
import type { StageTimes } from "./times.ts";
import type { Topology } from "./topology.ts";

/** Effective bandwidths in bytes per nanosecond: NVLink 4 as NCCL's bus bandwidth, a 400 Gbit/s NIC. */
const NVLINK_BYTES_PER_NS = 360;
export const NIC_BYTES_PER_NS = 46;
const NVLINK_LATENCY_NS = 8_000;
export const NETWORK_LATENCY_NS = 20_000;

/** Groups of one role on all stages: stage · count + group, with what a transfer in them depends on. */
interface RoleGroups {
  readonly groups: LaneGroups;
  /** Whether all members sit in one machine. */
  readonly intra: Uint8Array;
  /** Slowest device on the way, recomputed when faults act. */
  readonly factor: Float64Array;
}

export class Network {
  readonly #spec: ClusterSpec;
  readonly #lanes: Lanes;
  readonly #roles: (RoleGroups | null)[] = [];
  #topology: Topology;
  #devices: DeviceState;
  /** Slowest NIC or switch of the job: what the operators of all ranks have to pass. */
  #slowestOfAll = 1;
  /** By rank: when its NIC is free, and since when it has been busy without a break. */
  readonly #nic: Float64Array;
  readonly #nicSince: Float64Array;

  constructor(spec: ClusterSpec, lanes: Lanes, topology: Topology, devices: DeviceState) {
    this.#spec = spec;
    this.#lanes = lanes;
    this.#topology = topology;
    this.#devices = devices;
    this.#nic = new Float64Array(spec.gpus);
    this.#nicSince = new Float64Array(spec.gpus);
    this.seat(topology);
  }

  /** Ranks sit elsewhere from now on. `equip` must follow. */
  seat(topology: Topology): void {
    this.#topology = topology;
    const { tp, cp, dp, ep } = this.#lanes;
    this.#roles[TP] = this.#roleGroups(tp);
    this.#roles[CP] = this.#roleGroups(cp);
    this.#roles[DP] = this.#roleGroups(dp);
    this.#roles[EP] = this.#roleGroups(ep);
  }

  /** Devices are in this state from now on. */
  equip(devices: DeviceState): void {
    this.#devices = devices;
    for (const role of this.#roles) if (role) this.#slowestOnTheWay(role);
    this.#slowestOfAll = 1;
    if (this.#topology.machines > 1) {
      const { nic, leaf, spine } = devices;
      for (const column of [nic, leaf, spine])
        for (const factor of column) this.#slowestOfAll = Math.max(this.#slowestOfAll, factor);
    }
  }

  #roleGroups(groups: LaneGroups): RoleGroups {
    const { stages } = this.#lanes;
    const intra = new Uint8Array(stages * groups.count).fill(1);
    for (let stage = 0; stage < stages; stage++) {
      for (let lane = 0; lane < this.#lanes.lanes; lane++) {
        const g = groups.groupOf[lane]!;
        const first = groups.members[g * groups.size]!;
        const base = stage * this.#lanes.lanes;
        if (this.#topology.machineOf(base + lane) !== this.#topology.machineOf(base + first)) {
          intra[stage * groups.count + g] = 0;
        }
      }
    }
    return { groups, intra, factor: new Float64Array(stages * groups.count).fill(1) };
  }

  #slowestOnTheWay({ groups, intra, factor }: RoleGroups): void {
    const { nic, nvlink, leaf, spine, pair } = this.#devices;
    const { lanes, stages } = this.#lanes;
    for (let at = 0; at < stages * groups.count; at++) {
      const base = Math.floor(at / groups.count) * lanes;
      const first = (at % groups.count) * groups.size;
      let worst = 1;
      let previous = base + groups.members[first + groups.size - 1]!;
      for (let m = 0; m < groups.size; m++) {
        const rank = base + groups.members[first + m]!;
        if (intra[at]) worst = Math.max(worst, nvlink[rank]!);
        else {
          const here = this.#topology.leafOf(rank);
          const via = this.#topology.spineOf(this.#topology.leafOf(previous), here, at);
          worst = Math.max(worst, nic[rank]!, leaf[here]!, via >= 0 ? spine[via]! : 1);
        }
        previous = rank;
      }
      factor[at] = worst;
    }
    // A link between two members is on some ring or tree of their group.
    for (const [key, severity] of pair) {
      const [a, b] = [Math.floor(key / this.#spec.gpus), key % this.#spec.gpus];
      const at = sharedGroup(this.#lanes, groups, a, b);
      if (at >= 0) factor[at] = Math.max(factor[at]!, severity);
    }
  }

  /** End of a transfer between two ranks that can begin at `readyNs`. */
  transfer(from: number, to: number, readyNs: number, bytes: number, noise: number): number {
    const { nic, nvlink, leaf, spine, pair } = this.#devices;
    const link = pair.size > 0 ? (pair.get(from * this.#spec.gpus + to) ?? 1) : 1;
    if (this.#topology.machineOf(from) === this.#topology.machineOf(to)) {
      const factor = Math.max(nvlink[from]!, nvlink[to]!, link);
      return readyNs + (NVLINK_LATENCY_NS + (bytes / NVLINK_BYTES_PER_NS) * noise) * factor;
    }
    const a = this.#topology.leafOf(from);
    const b = this.#topology.leafOf(to);
    const via = this.#topology.spineOf(a, b, from);
    const factor = Math.max(
      nic[from]!,
      nic[to]!,
      leaf[a]!,
      leaf[b]!,
      via >= 0 ? spine[via]! : 1,
      link,
    );
    const begin = this.#afterNic(to, readyNs, this.#afterNic(from, readyNs, readyNs));
    const end = begin + (NETWORK_LATENCY_NS + (bytes / NIC_BYTES_PER_NS) * noise) * factor;
    if (end !== Infinity) {
      this.#occupyNic(from, begin, end);
      this.#occupyNic(to, begin, end);
    }
    return end;
  }

  /**
   * A NIC serves one transfer after the other. Stages are worked off one after the other too, so what
   * holds a NIC may lie later in time than what asks for it: then there is nothing to wait for.
   */
  #afterNic(rank: number, readyNs: number, begin: number): number {
    const free = this.#nic[rank]!;
    return this.#nicSince[rank]! <= readyNs && free > begin ? free : begin;
  }

  #occupyNic(rank: number, begin: number, end: number): void {
    if (begin > this.#nic[rank]!) this.#nicSince[rank] = begin;
    if (end > this.#nic[rank]!) this.#nic[rank] = end;
  }

  /** An operator within a stage, on all groups of its role; `clock` is the stream that it runs on, by rank. */
  collective(
    program: StageProgram,
    op: number,
    iteration: number,
    { startNs, endNs }: StageTimes,
    clock: Float64Array,
  ): void {
    const { groups, intra, factor } = this.#roles[program.role[op]!]!;
    const { lanes } = this.#lanes;
    const { size, count, members } = groups;
    const { stage } = program;
    const base = stage * lanes;
    const at = op * lanes;
    const wire = wireBytes(program.kind[op]!, program.bytes[op]!, size);
    const nic = this.#nic;
    const nicSince = this.#nicSince;
    for (let g = 0; g < count; g++) {
      const first = g * size;
      // Members share their replica's micro-batches: where one leaves the operator out, all do.
      if (Number.isNaN(startNs[at + members[first]!]!)) continue;
      let latest = 0;
      for (let m = first; m < first + size; m++) {
        const start = startNs[at + members[m]!]!;
        if (start > latest) latest = start;
      }
      const where = stage * count + g;
      const noise = networkNoise(this.#spec.seed, where, op, iteration, this.#spec.noise);
      let end: number;
      if (intra[where]) {
        end = latest + (NVLINK_LATENCY_NS + (wire / NVLINK_BYTES_PER_NS) * noise) * factor[where]!;
      } else {
        // As in transfer, written out: a call a member would cost as much as all the rest.
        let begin = latest;
        for (let m = first; m < first + size; m++) {
          const rank = base + members[m]!;
          if (nic[rank]! > begin && nicSince[rank]! <= latest) begin = nic[rank]!;
        }
        end = begin + (NETWORK_LATENCY_NS + (wire / NIC_BYTES_PER_NS) * noise) * factor[where]!;
        for (let m = first; m < first + size && end !== Infinity; m++) {
          const rank = base + members[m]!;
          if (begin > nic[rank]!) nicSince[rank] = begin;
          if (end > nic[rank]!) nic[rank] = end;
        }
      }
      for (let m = first; m < first + size; m++) {
        endNs[at + members[m]!] = end;
        clock[base + members[m]!] = end;
      }
    }
  }

  /** End of an operator of the whole job whose last member is there at `latestNs`. */
  everybody(latestNs: number, wire: number): number {
    return (
      latestNs +
      (2 * NETWORK_LATENCY_NS * Math.ceil(Math.log2(this.#spec.gpus + 1)) +
        wire / NIC_BYTES_PER_NS) *
        this.#slowestOfAll
    );
  }
}
