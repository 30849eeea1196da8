/**
 * Works off one iteration at a time, in max-plus arithmetic: an operator starts on a rank when its
 * kernels before it have run and its CPU has issued it; a collective ends for all members at the latest
 * start plus the transfer, so that waiting shows as a long operator on the innocent; a receive ends at
 * the later of both starts plus the transfer. A device that never ends contributes Infinity, and a hang
 * comes out by itself.
 *
 * All lanes of a stage do the same (but for micro-batches that a replica leaves out: shares.ts), so the inner loops run over lanes, on typed arrays, without an
 * object or a branch on the kind of operator: 8,192 GPUs × 4,000 operators in seconds.
 */
import { assert } from "../../base/errors.ts";
import { checkFaults } from "./check-faults.ts";
import { devicesAt, NEVER, placedDevices, type DeviceState } from "./faults.ts";
import { hostSites } from "./host-sites.ts";
import { makeLanes, type Lanes } from "./lanes.ts";
import { checkLinksAreUsed, wireBytes } from "./links.ts";
import { Network } from "./network.ts";
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
import { executionOrder, type ExecutionOrder } from "./order.ts";
import { partsNs } from "./parts.ts";
import {
  ALL_REDUCE,
  EMBEDDING,
  EP,
  makePrograms,
  NO_GROUP,
  RECV,
  SEND,
  WORLD,
  type StageProgram,
} from "./program.ts";
import { rankWork, usualWork, type RankWork, type UsualWork } from "./rank-work.ts";
import { checkMost, checkShares, evenShares, runOf, sharesOf, type Shares } from "./shares.ts";
import type { ClusterSpec } from "./spec.ts";
import { checkPause, checkSeats, type Steer, type Steering } from "./steering.ts";
import type { IterationTimes, Simulation, StageTimes } from "./times.ts";
import { makeTopology, seatedTopology, type Topology } from "./topology.ts";

/** From the end of an iteration to the CPU's first call of the next: logging, the Python loop. */
const HOST_GAP_NS = 1_000_000;

export interface SimulateOptions {
  /**
   * As many micro-batches as a replica may be given between two iterations; spec.microBatches by default. Programs
   * have that size from the start, so that they stay the same all the time.
   */
  readonly mostMicroBatches?: number;
}

export function simulate(spec: ClusterSpec, options: SimulateOptions = {}): Simulation {
  const { mostMicroBatches = spec.microBatches } = options;
  checkMost(spec, mostMicroBatches);
  const topology = makeTopology(spec);
  checkFaults(spec, topology);
  const lanes = makeLanes(spec);
  checkLinksAreUsed(spec, lanes, topology);
  const programs = makePrograms(spec, mostMicroBatches);
  return {
    spec,
    lanes,
    topology,
    programs,
    iterations: (steer = () => null) =>
      new Engine(spec, topology, lanes, programs, mostMicroBatches).run(steer),
  };
}

class Engine {
  /** Its faults may be others from one iteration to the next. */
  #spec: ClusterSpec;
  readonly #unmoved: Topology;
  readonly #lanes: Lanes;
  readonly #programs: readonly StageProgram[];
  readonly #mostMicroBatches: number;
  readonly #order: ExecutionOrder;
  readonly #usual: UsualWork;
  readonly #times: StageTimes[];
  readonly #network: Network;
  #topology: Topology;
  #shares: Shares;
  #work: RankWork;
  #healthy: DeviceState;
  #devices: DeviceState;
  /** By rank: when the compute stream, the gradient stream and the CPU are free. */
  readonly #gpu: Float64Array;
  readonly #stream: Float64Array;
  readonly #cpu: Float64Array;
  readonly #gcOp: Int32Array;
  readonly #gcNs: Float64Array;

  constructor(
    spec: ClusterSpec,
    topology: Topology,
    lanes: Lanes,
    programs: readonly StageProgram[],
    mostMicroBatches: number,
  ) {
    this.#spec = spec;
    this.#unmoved = this.#topology = topology;
    this.#lanes = lanes;
    this.#programs = programs;
    this.#mostMicroBatches = mostMicroBatches;
    this.#order = executionOrder(programs);
    this.#usual = usualWork(programs, mostMicroBatches - spec.microBatches);
    this.#times = programs.map(({ count }) => ({
      issueNs: new Float64Array(count * lanes.lanes),
      startNs: new Float64Array(count * lanes.lanes),
      endNs: new Float64Array(count * lanes.lanes),
    }));
    this.#shares = evenShares(spec, mostMicroBatches);
    this.#work = rankWork(programs, lanes, this.#usual, this.#shares);
    this.#healthy = this.#devices = placedDevices(spec, topology);
    this.#network = new Network(spec, lanes, topology, this.#healthy);
    this.#gpu = new Float64Array(spec.gpus);
    this.#stream = new Float64Array(spec.gpus);
    this.#cpu = new Float64Array(spec.gpus);
    this.#gcOp = new Int32Array(spec.gpus);
    this.#gcNs = new Float64Array(spec.gpus);
  }

  *run(steer: Steer): Generator<IterationTimes> {
    let startNs = 0;
    for (let iteration = 1; iteration <= this.#spec.iterations; iteration++) {
      const steering = steer(iteration);
      if (steering !== null) this.#apply(steering);
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
      yield {
        iteration,
        startNs,
        endNs,
        rankEndNs,
        stages: this.#times,
        shares: this.#shares,
        topology: this.#topology,
        devices: this.#devices,
      };
      if (endNs === Infinity) return;
      // The CPU waits for the GPU at the end of an iteration.
      for (let rank = 0; rank < this.#spec.gpus; rank++)
        this.#cpu[rank] = this.#gpu[rank]! + HOST_GAP_NS;
      startNs = endNs;
    }
  }

  #apply({ microBatches, seats, pauseNs, faults }: Steering): void {
    if (faults !== undefined) {
      const spec = { ...this.#spec, faults };
      checkFaults(spec, this.#unmoved);
      checkLinksAreUsed(spec, this.#lanes, this.#unmoved);
      this.#spec = spec;
    }
    if (microBatches !== undefined) {
      checkShares(this.#spec, this.#lanes, this.#mostMicroBatches, microBatches);
      this.#shares = sharesOf(this.#spec, this.#mostMicroBatches, microBatches);
      this.#work = rankWork(this.#programs, this.#lanes, this.#usual, this.#shares);
    }
    if (seats !== undefined) {
      checkSeats(seats, this.#spec.gpus);
      this.#topology = seatedTopology(this.#unmoved, seats.slice());
      this.#network.seat(this.#topology);
      this.#healthy = placedDevices(this.#spec, this.#topology);
    }
    if (pauseNs !== undefined) {
      checkPause(pauseNs);
      for (let rank = 0; rank < this.#spec.gpus; rank++) this.#cpu[rank]! += pauseNs;
    }
  }

  #prepare(iteration: number): void {
    const spec = this.#spec;
    const work = this.#work;
    const sites = hostSites(spec, [], work, iteration);
    if (sites.length > 0) this.#healthy = { ...this.#healthy, sites };
    const acting = devicesAt(spec, this.#topology, iteration, work);
    if (acting !== null || this.#devices !== this.#healthy || iteration === 1) {
      this.#devices = acting ?? this.#healthy;
      this.#network.equip(this.#devices);
    }
    for (let rank = 0; rank < spec.gpus; rank++) {
      const pause = gcPause(spec.seed, rank, iteration, work.counts[rank]!, spec.noise);
      this.#gcOp[rank] = pause === null ? NEVER : work.opAt(rank, pause.op);
      this.#gcNs[rank] = pause?.ns ?? 0;
    }
    const extra = hiccup(spec.seed, iteration, spec.noise);
    if (extra > 0) {
      const rank = hash(spec.seed ^ STREAM.hiccup, iteration, 3, 0) % spec.gpus;
      const place = hash(spec.seed ^ STREAM.hiccup, iteration, 4, 0) % work.counts[rank]!;
      this.#gcOp[rank] = work.opAt(rank, place);
      // The usual time of an iteration: the stage's own work, stretched by the pipeline's fill and drain.
      this.#gcNs[rank] = extra * work.workNs(rank) * (1 + (spec.pp - 1) / spec.microBatches);
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
    const hasQueue = launchQueue > 0 && op >= launchQueue;
    const skipsAny = this.#shares.mostSkipped > 0;
    let queued = hasQueue ? at - launchQueue * lanes : -1;
    const streamSeed = seed ^ STREAM.compute;
    const isExpert = program.role[op] === EP;
    const microBatch = program.microBatch[op]!;
    const replicaSize = this.#spec.tp * this.#spec.cp;
    const skipped =
      microBatch >= 0 && microBatch < this.#shares.mostSkipped ? this.#shares.skipped : null;
    if (program.loads[op]) this.#load(stage, microBatch, iteration);
    for (let lane = 0; lane < lanes; lane++) {
      if (skipped !== null && microBatch < skipped[lane]!) {
        issueNs[at + lane] = startNs[at + lane] = endNs[at + lane] = NaN;
        continue;
      }
      const rank = base + lane;
      let cpu = this.#cpu[rank]!;
      if (hasQueue && skipsAny) queued = this.#queued(program, op, lane);
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

  /** Where the times of the operator stand that is a queue's length behind, of those that the lane runs; -1 for none. */
  #queued(program: StageProgram, op: number, lane: number): number {
    const { ops, before } = runOf(program, this.#shares.skipped[lane]!);
    const place = before[op]! - this.#spec.launchQueue;
    return place < 0 ? -1 : ops[place]! * this.#lanes.lanes;
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
    const { skipped } = this.#shares;
    for (let rank = stage * lanes; rank < (stage + 1) * lanes; rank++) {
      if (microBatch < skipped[rank - stage * lanes]!) continue;
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
    else {
      const clock = program.async[op] === 1 ? this.#stream : this.#gpu;
      this.#network.collective(program, op, iteration, this.#times[stage]!, clock);
    }
  }

  /** A send is known to have ended only when it is received; until then it counts as under way. */
  #alone(stage: number, op: number): void {
    const { startNs, endNs } = this.#times[stage]!;
    const at = op * this.#lanes.lanes;
    const isSend = this.#programs[stage]!.kind[op] === SEND;
    for (let i = at; i < at + this.#lanes.lanes; i++)
      endNs[i] = isSend && !Number.isNaN(startNs[i]!) ? Infinity : startNs[i]!;
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
      if (Number.isNaN(posted)) continue;
      const noise = networkNoise(this.#spec.seed, peer, op, iteration, this.#spec.noise);
      const end = this.#network.transfer(peer, rank, sent > posted ? sent : posted, bytes, noise);
      endNs[op * lanes + lane] = end;
      sender.endNs[sendOp * lanes + lane] = end;
      this.#gpu[rank] = end;
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
      const end = this.#network.everybody(latest, wire);
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
      settle(lane, this.#network.transfer(a * lanes + lane, b * lanes + lane, start, wire, noise));
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
