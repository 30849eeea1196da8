/**
 * Works off one iteration at a time, in max-plus arithmetic: an operator starts on a rank when its
 * kernels before it have run and its CPU has issued it; a collective ends for all members at the latest
 * start plus the transfer, so that waiting shows as a long operator on the innocent; a receive ends at
 * the later of both starts plus the transfer. A device that never ends contributes Infinity, and a hang
 * comes out by itself.
 *
 * All lanes of a stage do the same, so the inner loops run over lanes, on typed arrays, without an
 * object or a branch on the kind of operator: 8,192 GPUs × 4,000 operators in seconds.
 */
import { assert } from "../../base/errors.ts";
import { devicesAt, NEVER, placedDevices, type DeviceState } from "./faults.ts";
import { hostSites } from "./host-sites.ts";
import { makeLanes, type LaneGroups, type Lanes } from "./lanes.ts";
import {
  COMPUTE_JITTER,
  commonDrift,
  expertFactor,
  fetchNs,
  gcPause,
  hash,
  hiccup,
  imageFactor,
  lookupNs,
  networkNoise,
  sequenceFactor,
  STREAM,
} from "./noise.ts";
import { partsNs } from "./parts.ts";
import { executionOrder, type ExecutionOrder } from "./order.ts";
import {
  ALL_REDUCE,
  CP,
  DP,
  EMBEDDING,
  EP,
  makePrograms,
  NO_GROUP,
  RECV,
  SEND,
  TP,
  WORLD,
  type StageProgram,
} from "./program.ts";
import { checkLinksAreUsed, sharedGroup, wireBytes } from "./links.ts";
import type { ClusterSpec } from "./spec.ts";
import type { IterationTimes, Simulation, StageTimes } from "./times.ts";
import { makeTopology, type Topology } from "./topology.ts";
import { checkFaults } from "./faults.ts";

/** Effective bandwidths in bytes per nanosecond: NVLink 4 as NCCL's bus bandwidth, a 400 Gbit/s NIC. */
const NVLINK_BYTES_PER_NS = 360;
const NIC_BYTES_PER_NS = 46;
const NVLINK_LATENCY_NS = 8_000;
const NETWORK_LATENCY_NS = 20_000;
/** From the end of an iteration to the CPU's first call of the next: logging, the Python loop. */
const HOST_GAP_NS = 1_000_000;

export function simulate(spec: ClusterSpec): Simulation {
  const topology = makeTopology(spec);
  checkFaults(spec, topology);
  const lanes = makeLanes(spec);
  checkLinksAreUsed(spec, lanes);
  const programs = makePrograms(spec);
  return {
    spec,
    lanes,
    topology,
    programs,
    iterations: () => new Engine(spec, topology, lanes, programs).run(),
  };
}

/** Groups of one role on all stages: stage · count + group, with what a transfer in them depends on. */
interface RoleGroups {
  readonly groups: LaneGroups;
  /** Whether all members sit in one machine. */
  readonly intra: Uint8Array;
  /** Slowest device on the way, recomputed when faults act. */
  readonly factor: Float64Array;
}

class Engine {
  readonly #spec: ClusterSpec;
  readonly #topology: Topology;
  readonly #lanes: Lanes;
  readonly #programs: readonly StageProgram[];
  readonly #order: ExecutionOrder;
  /** By stage: GPU time of its kernels in an iteration. */
  readonly #workNs: readonly number[];
  readonly #times: StageTimes[];
  readonly #roles: (RoleGroups | null)[];
  #healthy: DeviceState;
  #devices: DeviceState;
  /** Slowest NIC or switch of the job: what the operators of all ranks have to pass. */
  #slowestOfAll = 1;
  /** By rank: when the compute stream, the gradient stream, the CPU and the NIC are free. */
  readonly #gpu: Float64Array;
  readonly #stream: Float64Array;
  readonly #cpu: Float64Array;
  readonly #nic: Float64Array;
  /** By rank: since when the NIC has been busy without a break. */
  readonly #nicSince: Float64Array;
  readonly #gcOp: Int32Array;
  readonly #gcNs: Float64Array;

  constructor(
    spec: ClusterSpec,
    topology: Topology,
    lanes: Lanes,
    programs: readonly StageProgram[],
  ) {
    this.#spec = spec;
    this.#topology = topology;
    this.#lanes = lanes;
    this.#programs = programs;
    this.#order = executionOrder(programs);
    this.#workNs = programs.map(({ computeNs }) => computeNs.reduce((sum, ns) => sum + ns, 0));
    this.#times = programs.map(({ count }) => ({
      issueNs: new Float64Array(count * lanes.lanes),
      startNs: new Float64Array(count * lanes.lanes),
      endNs: new Float64Array(count * lanes.lanes),
    }));
    this.#roles = [];
    this.#roles[TP] = this.#roleGroups(lanes.tp);
    this.#roles[CP] = this.#roleGroups(lanes.cp);
    this.#roles[DP] = this.#roleGroups(lanes.dp);
    this.#roles[EP] = this.#roleGroups(lanes.ep);
    this.#healthy = {
      ...placedDevices(spec, topology),
      sites: [],
    };
    this.#devices = this.#healthy;
    this.#gpu = new Float64Array(spec.gpus);
    this.#stream = new Float64Array(spec.gpus);
    this.#cpu = new Float64Array(spec.gpus);
    this.#nic = new Float64Array(spec.gpus);
    this.#nicSince = new Float64Array(spec.gpus);
    this.#gcOp = new Int32Array(spec.gpus);
    this.#gcNs = new Float64Array(spec.gpus);
  }

  *run(): Generator<IterationTimes> {
    let startNs = 0;
    for (let iteration = 1; iteration <= this.#spec.iterations; iteration++) {
      this.#prepare(iteration);
      const { stage, op, meetings } = this.#order;
      for (let step = 0; step < stage.length; step++) {
        if (stage[step]! >= 0) this.#execute(stage[step]!, op[step]!, iteration);
        else {
          const meeting = meetings.get(step)!;
          this.#meet(meeting.stages, meeting.ops, iteration);
        }
      }
      const rankEndNs = this.#gpu.slice();
      let endNs = 0;
      for (const end of rankEndNs) if (end > endNs) endNs = end;
      yield { iteration, startNs, endNs, rankEndNs, stages: this.#times, devices: this.#devices };
      if (endNs === Infinity) return;
      // The CPU waits for the GPU at the end of an iteration.
      for (let rank = 0; rank < this.#spec.gpus; rank++)
        this.#cpu[rank] = this.#gpu[rank]! + HOST_GAP_NS;
      startNs = endNs;
    }
  }

  #prepare(iteration: number): void {
    const spec = this.#spec;
    const programOf = (rank: number): StageProgram => this.#programOf(rank);
    const opsOf = (rank: number): number => programOf(rank).count;
    const workNsOf = (rank: number): number => this.#workNs[Math.floor(rank / this.#lanes.lanes)]!;
    const sites = hostSites(spec, [], { of: programOf, iteration });
    if (sites.length > 0) this.#healthy = { ...this.#healthy, sites };
    const acting = devicesAt(spec, this.#topology, iteration, opsOf, workNsOf, programOf);
    if (acting !== null || this.#devices !== this.#healthy || iteration === 1) {
      this.#devices = acting ?? this.#healthy;
      for (const role of this.#roles) if (role) this.#slowestOnTheWay(role);
      this.#slowestOfAll = 1;
      if (this.#topology.machines > 1) {
        const { nic, leaf, spine } = this.#devices;
        for (const column of [nic, leaf, spine])
          for (const factor of column) this.#slowestOfAll = Math.max(this.#slowestOfAll, factor);
      }
    }
    for (let rank = 0; rank < spec.gpus; rank++) {
      const pause = gcPause(spec.seed, rank, iteration, opsOf(rank), spec.noise);
      this.#gcOp[rank] = pause?.op ?? NEVER;
      this.#gcNs[rank] = pause?.ns ?? 0;
    }
    const extra = hiccup(spec.seed, iteration, spec.noise);
    if (extra > 0) {
      const rank = hash(spec.seed ^ STREAM.hiccup, iteration, 3, 0) % spec.gpus;
      this.#gcOp[rank] = hash(spec.seed ^ STREAM.hiccup, iteration, 4, 0) % opsOf(rank);
      // The usual time of an iteration: the stage's own work, stretched by the pipeline's fill and drain.
      this.#gcNs[rank] = extra * workNsOf(rank) * (1 + (spec.pp - 1) / spec.microBatches);
    }
  }

  #programOf(rank: number): StageProgram {
    return this.#programs[Math.floor(rank / this.#lanes.lanes)]!;
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

  /** The local part: CPU, kernels, and when the rank's side of the operator begins. */
  #begin(stage: number, op: number, iteration: number): void {
    const program = this.#programs[stage]!;
    const { lanes } = this.#lanes;
    const { issueNs, startNs, endNs } = this.#times[stage]!;
    const { seed, noise, imbalance, launchQueue } = this.#spec;
    const {
      gpu: gpuFactor,
      cpu: cpuFactor,
      pauseNs,
      stallNs,
      sync,
      gpuEnds,
      cpuEnds,
      parts,
      sites,
    } = this.#devices;
    const base = stage * lanes;
    const at = op * lanes;
    // Sends have a stream of their own: they wait for no gradients.
    const gradientStream =
      (program.async[op] === 1 && program.kind[op] !== SEND) ||
      program.role[op] === WORLD ||
      program.role[op] === EMBEDDING;
    const jitter = noise * COMPUTE_JITTER * 3.46;
    const drift = commonDriftCached(seed, iteration, noise);
    const computeNs = program.computeNs[op]! * drift;
    const waitsFor = program.waitsFor[op]!;
    // A full queue holds the CPU at its launch until the GPU has begun what is that far behind.
    const queued = launchQueue > 0 && op >= launchQueue ? at - launchQueue * lanes : -1;
    const streamSeed = seed ^ STREAM.compute;
    const isExpert = program.role[op] === EP;
    const microBatch = program.microBatch[op]!;
    const replicaSize = this.#spec.tp * this.#spec.cp;
    if (program.loads[op]) this.#load(stage, microBatch, iteration);
    for (let lane = 0; lane < lanes; lane++) {
      const rank = base + lane;
      let cpu = this.#cpu[rank]!;
      if (queued >= 0 && startNs[queued + lane]! > cpu) cpu = startNs[queued + lane]!;
      // First the wait, then the issuing: meanwhile the GPU has nothing to do (FLARE §5.2.2, ④-2).
      if (sync[rank] && this.#gpu[rank]! > cpu) cpu = this.#gpu[rank]!;
      if (sites.length > 0) cpu = this.#atSites(rank, op, cpu);
      cpu = cpu + this.#spec.issueNs * cpuFactor[rank]! + pauseNs[rank]! + stallNs[rank]!;
      if (this.#gcOp[rank] === op) cpu += this.#gcNs[rank]!;
      if (op >= cpuEnds[rank]!) cpu = Infinity;
      this.#cpu[rank] = cpu;
      issueNs[at + lane] = cpu;
      let work = 0;
      if (computeNs > 0) {
        const u = hash(streamSeed, rank, op, iteration) / 4294967296;
        const own = computeNs + (parts === null ? 0 : partsNs(program, op, parts, rank) * drift);
        work = own * gpuFactor[rank]! * (1 + jitter * (u - 0.5));
        if (microBatch >= 0 && imbalance > 0) {
          const replica = Math.floor(lane / replicaSize);
          work *= imageFactor(seed, replica, microBatch, iteration, imbalance);
        }
        if (microBatch >= 0 && noise > 0) {
          work *= sequenceFactor(
            seed,
            Math.floor(lane / replicaSize),
            microBatch,
            iteration,
            noise,
          );
        }
        if (isExpert) work *= expertFactor(seed, rank, program.layer[op]!, iteration, noise);
      }
      if (op >= gpuEnds[rank]!) work = Infinity;
      let free = this.#gpu[rank]!;
      if (waitsFor >= 0 && endNs[waitsFor * lanes + lane]! > free)
        free = endNs[waitsFor * lanes + lane]!;
      let ready = (cpu > free ? cpu : free) + work;
      this.#gpu[rank] = ready;
      if (gradientStream && this.#stream[rank]! > ready) ready = this.#stream[rank]!;
      startNs[at + lane] = ready;
    }
  }

  /** When the CPU is done with what it does before this operator only. */
  #atSites(rank: number, op: number, cpu: number): number {
    for (const site of this.#devices.sites) {
      const ns = site.ns(rank, op);
      if (ns < 0) continue;
      if (site.drains) cpu = Math.max(cpu, this.#gpu[rank]!, this.#stream[rank]!);
      cpu += ns;
    }
    return cpu;
  }

  #load(stage: number, microBatch: number, iteration: number): void {
    const { lanes } = this.#lanes;
    const { loadNs } = this.#devices;
    const { seed, noise, embeddingNs } = this.#spec;
    for (let rank = stage * lanes; rank < (stage + 1) * lanes; rank++) {
      this.#cpu[rank]! +=
        fetchNs(seed, rank, microBatch, iteration, noise) +
        loadNs[rank]! +
        lookupNs(seed, rank, microBatch, iteration, embeddingNs);
    }
  }

  #execute(stage: number, op: number, iteration: number): void {
    this.#begin(stage, op, iteration);
    const program = this.#programs[stage]!;
    const role = program.role[op]!;
    if (role === NO_GROUP || program.kind[op] === SEND) this.#alone(stage, op);
    else if (program.kind[op] === RECV) this.#receive(stage, op, iteration);
    else this.#collective(stage, op, this.#roles[role]!, iteration);
  }

  /** A send is known to have ended only when it is received; until then it counts as under way. */
  #alone(stage: number, op: number): void {
    const { startNs, endNs } = this.#times[stage]!;
    const at = op * this.#lanes.lanes;
    const isSend = this.#programs[stage]!.kind[op] === SEND;
    for (let i = at; i < at + this.#lanes.lanes; i++) endNs[i] = isSend ? Infinity : startNs[i]!;
  }

  #receive(stage: number, op: number, iteration: number): void {
    const program = this.#programs[stage]!;
    const { lanes } = this.#lanes;
    const { startNs, endNs } = this.#times[stage]!;
    const from = program.peerStage[op]!;
    const sendOp = program.peerOp[op]!;
    const sender = this.#times[from]!;
    const bytes = program.bytes[op]!;
    for (let lane = 0; lane < lanes; lane++) {
      const rank = stage * lanes + lane;
      const peer = from * lanes + lane;
      const sent = sender.startNs[sendOp * lanes + lane]!;
      const posted = startNs[op * lanes + lane]!;
      const noise = networkNoise(this.#spec.seed, peer, op, iteration, this.#spec.noise);
      const end = this.#transfer(peer, rank, sent > posted ? sent : posted, bytes, noise);
      endNs[op * lanes + lane] = end;
      sender.endNs[sendOp * lanes + lane] = end;
      this.#gpu[rank] = end;
    }
  }

  /** End of a transfer between two ranks that can begin at `readyNs`. */
  #transfer(from: number, to: number, readyNs: number, bytes: number, noise: number): number {
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

  #collective(
    stage: number,
    op: number,
    { groups, intra, factor }: RoleGroups,
    iteration: number,
  ): void {
    const program = this.#programs[stage]!;
    const { lanes } = this.#lanes;
    const { startNs, endNs } = this.#times[stage]!;
    const { size, count, members } = groups;
    const base = stage * lanes;
    const at = op * lanes;
    const wire = wireBytes(program.kind[op]!, program.bytes[op]!, size);
    const async = program.async[op] === 1;
    const clock = async ? this.#stream : this.#gpu;
    const nic = this.#nic;
    const nicSince = this.#nicSince;
    for (let g = 0; g < count; g++) {
      const first = g * size;
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
        // As in #transfer, written out: a call a member would cost as much as all the rest.
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

  /** Operators across stages: the whole job, or lane by lane first and last stage. */
  #meet(stages: readonly number[], ops: readonly number[], iteration: number): void {
    const { lanes } = this.#lanes;
    stages.forEach((stage, i) => this.#begin(stage, ops[i]!, iteration));
    const isWorld = this.#programs[stages[0]!]!.role[ops[0]!] === WORLD;
    const bytes = this.#programs[stages[0]!]!.bytes[ops[0]!]!;
    const wire = wireBytes(ALL_REDUCE, bytes, isWorld ? this.#spec.gpus : 2);
    const settle = (lane: number, end: number): void => {
      stages.forEach((stage, i) => {
        this.#times[stage]!.endNs[ops[i]! * lanes + lane] = end;
        this.#gpu[stage * lanes + lane] = end;
      });
    };
    if (isWorld) {
      let latest = 0;
      stages.forEach((stage, i) => {
        const { startNs } = this.#times[stage]!;
        for (let lane = 0; lane < lanes; lane++)
          latest = Math.max(latest, startNs[ops[i]! * lanes + lane]!);
      });
      const end =
        latest +
        (2 * NETWORK_LATENCY_NS * Math.ceil(Math.log2(this.#spec.gpus + 1)) +
          wire / NIC_BYTES_PER_NS) *
          this.#slowestOfAll;
      for (let lane = 0; lane < lanes; lane++) settle(lane, end);
      return;
    }
    assert(stages.length === 2, "an embedding has two ends");
    for (let lane = 0; lane < lanes; lane++) {
      const [a, b] = stages as [number, number];
      const start = Math.max(
        this.#times[a]!.startNs[ops[0]! * lanes + lane]!,
        this.#times[b]!.startNs[ops[1]! * lanes + lane]!,
      );
      const noise = networkNoise(this.#spec.seed, lane, ops[0]!, iteration, this.#spec.noise);
      settle(lane, this.#transfer(a * lanes + lane, b * lanes + lane, start, wire, noise));
    }
  }
}

let driftKey = "";
let driftValue = 1;
/** One iteration asks thousands of times for the same number. */
function commonDriftCached(seed: number, iteration: number, noise: number): number {
  const key = `${seed}/${iteration}/${noise}`;
  if (key !== driftKey) {
    driftKey = key;
    driftValue = commonDrift(seed, iteration, noise);
  }
  return driftValue;
}
