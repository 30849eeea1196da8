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
const NVLINK_SPEED = 8;

/** A backward pass computes two gradients (inputs, weights) where the forward pass computes one output. */
const BACKWARD_SHARE = 2 / 3;

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

interface SlotLinks {
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
function wayFactor(job: JobTables, a: number, b: number): number {
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

/** From the stage of a place to the next; 0 from the last one. */
export function transferMs(job: JobTables, slotAt: Int32Array, place: number): number {
  const next = place + job.replicas;
  return next < slotAt.length
    ? job.activationMs * wayFactor(job, slotAt[place]!, slotAt[next]!)
    : 0;
}

/** Fills a replica's row, see `rowWidth`. Transfers are by place where they are known. */
export function timeReplica(
  job: JobTables,
  slotAt: Int32Array,
  replica: number,
  row: Float64Array,
  at: number,
  transfers?: Float64Array,
): void {
  const { replicas, stages, stageMs, compute } = job;
  let sum = 0;
  let bottleneck = 0;
  let earlier = 0;
  for (let stage = 0, place = replica; stage < stages; stage++, place += replicas) {
    row[at + stage] = earlier;
    const pass = stageMs[stage]! * compute[slotAt[place]!]!;
    if (pass > bottleneck) bottleneck = pass;
    const transfer = transfers ? transfers[place]! : transferMs(job, slotAt, place);
    if (transfer > bottleneck) bottleneck = transfer;
    sum += pass + 2 * transfer;
    earlier += BACKWARD_SHARE * pass + transfer;
  }
  row[at + stages] = bottleneck;
  row[at + stages + 1] = sum - bottleneck;
}

/**
 * Gradient exchange of a stage. Any ring or tree of the group may pass any two of its members (§5.2), so its slowest way
 * counts. A single replica has nobody to exchange with.
 */
function exchangeMs(
  job: JobTables,
  placeOf: Int32Array,
  slotAt: Int32Array,
  stage: number,
): number {
  return job.gradientMs[stage]! * groupFactor(job, placeOf, slotAt, stage);
}

/** The slowest way in a stage's group, with one of its slots left out where it is given; 0 for a single replica. */
export function groupFactor(
  job: JobTables,
  placeOf: Int32Array,
  slotAt: Int32Array,
  stage: number,
  leftOut = -1,
): number {
  const { replicas, networkSlots } = job;
  if (replicas === 1) return 0;
  const first = stage * replicas;
  const oneMachine = inOneMachine(job, slotAt, first, first + replicas);
  let worst = oneMachine ? 1 / NVLINK_SPEED : 1;
  // Of the two lists that hold everybody who matters, the shorter.
  const few = networkSlots.length < replicas;
  const end = few ? networkSlots.length : replicas;
  const group = { oneMachine, leftOut };
  for (let i = 0; i < end; i++) {
    const slot = few ? networkSlots[i]! : slotAt[first + i]!;
    // A place below `first` becomes a large number: one comparison instead of two.
    if (slot === leftOut || (placeOf[slot]! - first) >>> 0 >= replicas) continue;
    const own = memberFactor(job, placeOf, slot, first, group);
    if (own > worst) worst = own;
  }
  return worst;
}

interface Group {
  /** Then no NIC is passed. */
  readonly oneMachine: boolean;
  readonly leftOut: number;
}

const WHOLE_GROUP: Group = { oneMachine: false, leftOut: -1 };

/** The slowest way from a slot to the group at the places from `first` on, whether it sits among them or not. */
export function memberFactor(
  job: JobTables,
  placeOf: Int32Array,
  slot: number,
  first: number,
  { oneMachine, leftOut }: Group = WHOLE_GROUP,
): number {
  const { replicas, network, machine, links } = job;
  let worst = oneMachine ? 0 : network[slot]!;
  for (let i = links.from[slot]!; i < links.from[slot + 1]!; i++) {
    const link = links.of[i]!;
    const factor = links.factor[link]!;
    const other = links.a[link] === slot ? links.b[link]! : links.a[link]!;
    if (factor === 1 || other === leftOut || (placeOf[other]! - first) >>> 0 >= replicas) continue;
    const way =
      machine[slot] === machine[other]
        ? factor / NVLINK_SPEED
        : factor * Math.max(network[slot]!, network[other]!);
    if (way > worst) worst = way;
  }
  return worst;
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
