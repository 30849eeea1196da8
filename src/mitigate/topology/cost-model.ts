/**
 * What an iteration takes when slots sit at given places (Greyhound §5.2, 1F1B). All formulas of the topology search
 * are in this file; the search only asks them faster.
 *
 *   pass of stage s        c_s = stageMs[s] · compute factor of its slot
 *   transfer s → s + 1     x_s = activationMs · way(slot at s, slot at s + 1)
 *   bottleneck             b = max of all c_s and x_s: what a further micro-batch costs once the pipeline is full
 *   replica                t = Σ c_s + 2 · Σ x_s + (micro-batches − 1) · b
 *   stage s of a replica   done at t − Σ_{j<s} (2/3 · c_j + x_j): the last backward pass reaches it before stage 0
 *   exchange of stage s    gradientMs[s] · worst way in its group, from when all its replicas are done
 *   iteration              max over stages of (done + exchange) + restMs
 *
 * A way between two slots is 1 on a healthy network. NICs (network factors) count only between machines.
 */
import type { PlacedJob } from "../../model/mitigation.ts";

/** NVLink moves 450 GB/s each way on an H100, its NIC 50 GB/s; of both about 370 and 45 GB/s reach a collective. */
export const NVLINK_SPEED = 8;

/** A backward pass computes two gradients (inputs, weights) where the forward pass computes one output. */
export const BACKWARD_SHARE = 2 / 3;

/**
 * Makespan of the replicas when micro-batches are shared out anew (S2): by replica the time of one micro-batch more, and
 * what it needs besides (fixed + micro-batches · time).
 */
export type Rebalance = (times: Float64Array, fixed: Float64Array) => number;

/** A placed job as columns. */
export interface JobTables {
  readonly replicas: number;
  readonly stages: number;
  readonly microBatches: Float64Array;
  readonly stageMs: Float64Array;
  readonly gradientMs: Float64Array;
  readonly activationMs: number;
  readonly restMs: number;
  /** By slot. */
  readonly compute: Float64Array;
  readonly network: Float64Array;
  readonly machine: Int32Array;
  readonly links: SlotLinks;
  /** Slots with slow NICs and ends of slow links: who else is in a group does not change its exchange. */
  readonly networkSlots: Int32Array;
  /** No stage can have all its replicas in one machine where this is below the number of replicas. */
  readonly slotsPerMachine: number;
}

export interface SlotLinks {
  readonly a: Int32Array;
  readonly b: Int32Array;
  readonly factor: Float64Array;
  /** Links of slot i: of[from[i]] to of[from[i + 1] − 1]. */
  readonly from: Int32Array;
  readonly of: Int32Array;
}

/** Columns of a replica's row: by stage how much earlier than stage 0 it is done, then bottleneck, then the rest of t. */
export const rowWidth = (stages: number): number => stages + 2;

/** How much slower than a healthy network two slots speak; below 1 within a machine. */
export function wayFactor(job: JobTables, a: number, b: number): number {
  const { links, network, machine } = job;
  let factor = 1;
  for (let i = links.from[a]!; i < links.from[a + 1]!; i++) {
    const link = links.of[i]!;
    if ((links.a[link] === b || links.b[link] === b) && links.factor[link]! > factor)
      factor = links.factor[link]!;
  }
  if (machine[a] === machine[b]) return factor / NVLINK_SPEED;
  return factor * Math.max(network[a]!, network[b]!);
}

/** Fills a replica's row, see `rowWidth`. */
export function timeReplica(
  job: JobTables,
  slotAt: Int32Array,
  replica: number,
  row: Float64Array,
  at: number,
): void {
  const { replicas, stages, stageMs, compute, activationMs } = job;
  let sum = 0;
  let bottleneck = 0;
  let earlier = 0;
  let slot = slotAt[replica]!;
  for (let stage = 0; stage < stages; stage++) {
    row[at + stage] = earlier;
    const pass = stageMs[stage]! * compute[slot]!;
    sum += pass;
    if (pass > bottleneck) bottleneck = pass;
    if (stage + 1 === stages) break;
    const next = slotAt[(stage + 1) * replicas + replica]!;
    const transfer = activationMs * wayFactor(job, slot, next);
    sum += 2 * transfer;
    if (transfer > bottleneck) bottleneck = transfer;
    earlier += BACKWARD_SHARE * pass + transfer;
    slot = next;
  }
  row[at + stages] = bottleneck;
  row[at + stages + 1] = sum - bottleneck;
}

/**
 * Gradient exchange of a stage. Any ring or tree of the group may pass any two of its members (§5.2), so its slowest way
 * counts. A single replica has nobody to exchange with.
 */
export function exchangeMs(
  job: JobTables,
  placeOf: Int32Array,
  slotAt: Int32Array,
  stage: number,
): number {
  const { replicas, network, links, networkSlots } = job;
  if (replicas === 1) return 0;
  const first = stage * replicas;
  const end = first + replicas;
  const oneMachine = inOneMachine(job, slotAt, first, end);
  let worst = oneMachine ? 1 / NVLINK_SPEED : 1;
  if (oneMachine) {
    // No NIC is passed.
  } else if (networkSlots.length < replicas) {
    // A place below `first` becomes a large number: one comparison instead of two.
    for (let i = 0; i < networkSlots.length; i++) {
      const slot = networkSlots[i]!;
      if ((placeOf[slot]! - first) >>> 0 < replicas && network[slot]! > worst)
        worst = network[slot]!;
    }
  } else {
    for (let place = first; place < end; place++)
      if (network[slotAt[place]!]! > worst) worst = network[slotAt[place]!]!;
  }
  for (let link = 0; link < links.factor.length; link++) {
    const a = links.a[link]!;
    const b = links.b[link]!;
    if ((placeOf[a]! - first) >>> 0 >= replicas || (placeOf[b]! - first) >>> 0 >= replicas)
      continue;
    if (links.factor[link]! > 1) worst = Math.max(worst, wayFactor(job, a, b));
  }
  return job.gradientMs[stage]! * worst;
}

function inOneMachine(job: JobTables, slotAt: Int32Array, first: number, end: number): boolean {
  if (job.slotsPerMachine < end - first) return false;
  const machine = job.machine[slotAt[first]!];
  for (let place = first + 1; place < end; place++)
    if (job.machine[slotAt[place]!] !== machine) return false;
  return true;
}

/**
 * Expected time of an iteration. With `rebalance` micro-batches are shared out for these places: replicas then end
 * together, at its makespan, which is taken for all of them (a replica that rounding lets end earlier helps nobody).
 */
export function iterationMs(
  job: PlacedJob | JobTables,
  placeOf: Int32Array,
  rebalance?: Rebalance,
): number {
  const tables = "slots" in job ? jobTables(job) : job;
  const { replicas, stages } = tables;
  const slotAt = inverse(placeOf);
  const row = new Float64Array(rowWidth(stages));
  const times = new Float64Array(replicas);
  const fixed = new Float64Array(replicas);
  /** By stage: the latest replica's end, or with redistribution how far before the makespan the last one is done. */
  const done = new Float64Array(stages).fill(-Infinity);
  for (let replica = 0; replica < replicas; replica++) {
    timeReplica(tables, slotAt, replica, row, 0);
    times[replica] = row[stages]!;
    fixed[replica] = row[stages + 1]!;
    const end = rebalance ? 0 : fixed[replica]! + tables.microBatches[replica]! * times[replica]!;
    for (let s = 0; s < stages; s++) done[s] = Math.max(done[s]!, end - row[s]!);
  }
  const makespan = rebalance ? rebalance(times, fixed) : 0;
  let latest = 0;
  for (let s = 0; s < stages; s++)
    latest = Math.max(latest, makespan + done[s]! + exchangeMs(tables, placeOf, slotAt, s));
  return latest + tables.restMs;
}

export function inverse(placeOf: Int32Array): Int32Array {
  const slotAt = new Int32Array(placeOf.length);
  for (let slot = 0; slot < placeOf.length; slot++) slotAt[placeOf[slot]!] = slot;
  return slotAt;
}

export const identity = (size: number): Int32Array =>
  Int32Array.from({ length: size }, (_, i) => i);

export function jobTables(job: PlacedJob): JobTables {
  const machines = new Map<string, number>();
  const machine = Int32Array.from(job.slots, (slot) => {
    if (!machines.has(slot.machine)) machines.set(slot.machine, machines.size);
    return machines.get(slot.machine)!;
  });
  const inMachine = new Int32Array(machines.size);
  for (const m of machine) inMachine[m]!++;
  const links = linkTable(job);
  const isEnd = (slot: number): boolean => links.from[slot + 1]! > links.from[slot]!;
  return {
    replicas: job.replicas,
    stages: job.stages,
    microBatches: Float64Array.from(job.microBatches),
    stageMs: Float64Array.from(job.stageMs),
    gradientMs: Float64Array.from(job.gradientMs),
    activationMs: job.activationMs,
    restMs: job.restMs,
    compute: Float64Array.from(job.slots, (slot) => slot.compute),
    network: Float64Array.from(job.slots, (slot) => slot.network),
    machine,
    links,
    networkSlots: identity(job.slots.length).filter(
      (slot) => job.slots[slot]!.network > 1 || isEnd(slot),
    ),
    slotsPerMachine: inMachine.reduce((most, n) => Math.max(most, n), 0),
  };
}

function linkTable(job: PlacedJob): SlotLinks {
  const slow = job.links.filter((link) => link.factor > 1);
  const from = new Int32Array(job.slots.length + 1);
  for (const { a, b } of slow) {
    from[a + 1]!++;
    from[b + 1]!++;
  }
  for (let slot = 0; slot < job.slots.length; slot++) from[slot + 1]! += from[slot]!;
  const of = new Int32Array(2 * slow.length);
  const filled = from.slice();
  for (const [i, { a, b }] of slow.entries()) {
    of[filled[a]!++] = i;
    of[filled[b]!++] = i;
  }
  return {
    a: Int32Array.from(slow, (link) => link.a),
    b: Int32Array.from(slow, (link) => link.b),
    factor: Float64Array.from(slow, (link) => link.factor),
    from,
    of,
  };
}

/** The same job with nothing wrong. */
export function healthyTables(job: JobTables): JobTables {
  return {
    ...job,
    compute: new Float64Array(job.compute.length).fill(1),
    network: new Float64Array(job.network.length).fill(1),
    links: { ...job.links, factor: new Float64Array(job.links.factor.length).fill(1) },
  };
}
