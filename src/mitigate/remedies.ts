/** What can be done about a job's faults, S1 to S4 (Greyhound's Table 2), and what each would bring. */
import { UserError } from "../base/errors.ts";
import type { MicroBatchPlan, PlacedJob, Remedy, Swap, TopologyPlan } from "../model/mitigation.ts";
import { allocateMicroBatches } from "./microbatches.ts";
import {
  identity,
  iterationMs,
  jobTables,
  rowWidth,
  timeReplica,
  type JobTables,
  type Rebalance,
} from "./topology/cost-model.ts";
import { checkJob } from "./topology/check-job.ts";
import { planTopology } from "./topology/plan-topology.ts";

export interface Overheads {
  /** S2: the next iteration takes the new counts; what it costs is asking and telling. */
  readonly microBatchesMs: number;
  /** S3: pause, parameters to main memory, swap, go on (§5.2: about a minute, whatever the scale). */
  readonly topologyMs: number;
  /** S4: checkpoint, restart, and the work since the last checkpoint if none can be written. */
  readonly restartMs: number;
}

/** Orders of magnitude of §7.4 and §5.1; a site that has measured its own gives them. */
export const USUAL_OVERHEADS: Overheads = {
  microBatchesMs: 1_000,
  topologyMs: 60_000,
  restartMs: 30 * 60_000,
};

export interface RemedyOptions {
  readonly overheads?: Overheads;
  /** Counts of micro-batches are multiples of this. */
  readonly multipleOf?: number;
  /** False where replicas must take equal counts: expert parallelism across them, fully sharded parameters. */
  readonly mayBeUneven?: boolean;
  /** False where GPUs cannot change places. */
  readonly maySwap?: boolean;
  /** Machines that stand ready; without enough of them a restart goes on with fewer replicas. */
  readonly spares?: number;
}

export interface RemedyPlan extends Remedy {
  readonly microBatches?: MicroBatchPlan;
  readonly topology?: TopologyPlan;
  /** Machines that a restart leaves out. */
  readonly exclude?: readonly string[];
}

/** As things are, and everything that would be faster. */
interface Remedies {
  readonly nowMs: number;
  readonly healthyMs: number;
  readonly plans: readonly RemedyPlan[];
}

export function remediesOf(job: PlacedJob, options: RemedyOptions = {}): Remedies {
  const {
    overheads = USUAL_OVERHEADS,
    multipleOf = 1,
    mayBeUneven = true,
    maySwap = true,
  } = options;
  checkJob(job);
  const tables = jobTables(job);
  const here = identity(job.slots.length);
  const total = job.microBatches.reduce((sum, count) => sum + count, 0);
  const share: Rebalance = (timesMs, fixedMs) =>
    allocateMicroBatches({ timesMs, fixedMs, total, multipleOf }).makespan;
  const nowMs = iterationMs(tables, here);
  const healthy = healthyJob(job);
  const healthyMs = iterationMs(healthy, here);
  const plans: RemedyPlan[] = [];
  if (mayBeUneven && job.replicas > 1) {
    const microBatches = rebalanced(tables, here, total, multipleOf);
    const afterMs = iterationMs(withCounts(tables, microBatches), here);
    plans.push({
      strategy: "S2",
      overheadMs: overheads.microBatchesMs,
      iterationMs: afterMs,
      why: sharesInWords(microBatches.allocation),
      microBatches,
    });
  }
  // A slow NIC moves with its machine, and gradients, activations and the embedding's gradients all pass it: where it
  // costs least the model cannot tell (moving it made simulated jobs slower), so it is left where it is.
  if (maySwap && job.slots.every(({ network }) => network === 1)) {
    const topology = planTopology(job, mayBeUneven ? { rebalance: share } : {});
    const isBetween = ({ a, b }: Swap): boolean => job.slots[a]!.machine !== job.slots[b]!.machine;
    // Machines change places; a machine with itself changes nothing that an operator could do.
    if (topology.swaps.length > 0 && topology.swaps.every(isBetween))
      plans.push(swapped(job, topology, options, total));
  }
  plans.push(restarted(job, healthyMs, overheads, options.spares));
  return { nowMs, healthyMs, plans };
}

function swapped(
  job: PlacedJob,
  topology: TopologyPlan,
  { overheads = USUAL_OVERHEADS, multipleOf = 1, mayBeUneven = true }: RemedyOptions,
  total: number,
): RemedyPlan {
  const tables = jobTables(job);
  const remedy = { strategy: "S3" as const, overheadMs: overheads.topologyMs, why: topology.why };
  if (!mayBeUneven || job.replicas === 1)
    return { ...remedy, iterationMs: iterationMs(tables, topology.placeOf), topology };
  const microBatches = rebalanced(tables, topology.placeOf, total, multipleOf);
  const afterMs = iterationMs(withCounts(tables, microBatches), topology.placeOf);
  return { ...remedy, iterationMs: afterMs, topology, microBatches };
}

/** §5.1: restarting on healthy machines ends every fail-slow. Without spares the others take the work on. */
function restarted(
  job: PlacedJob,
  healthyMs: number,
  { restartMs }: Overheads,
  spares = Infinity,
): RemedyPlan {
  const exclude = badMachines(job);
  const machines = new Set(job.slots.map(({ machine }) => machine)).size;
  const lacking = Math.max(0, exclude.length - spares);
  const left = machines - lacking;
  return {
    strategy: "S4",
    overheadMs: restartMs,
    iterationMs: lacking === 0 ? healthyMs : withoutReplicas(job, left / machines),
    why:
      exclude.length === 0
        ? "no machine is known to be at fault"
        : `restart without ${exclude.join(", ")}${lacking > 0 ? `, with ${left} machines instead of ${machines}` : ""}`,
    exclude,
  };
}

/** A machine less is a replica less: those that are left take its micro-batches, too. */
function withoutReplicas(job: PlacedJob, share: number): number {
  const replicas = Math.floor(job.replicas * share);
  const total = job.microBatches.reduce((sum, count) => sum + count, 0);
  if (replicas === 0) return Infinity;
  const healthy = healthyJob({
    ...job,
    replicas,
    microBatches: Array.from({ length: replicas }, (_, i) => (i === 0 ? total - replicas + 1 : 1)),
    slots: job.slots.slice(0, replicas * job.stages),
  });
  return iterationMs(healthy, identity(replicas * job.stages));
}

/** Whose GPUs or NICs are slow; of a slow way, the end that most of them share, or both. */
export function badMachines(job: PlacedJob): string[] {
  const bad = new Set(
    job.slots.filter(({ compute, network }) => compute > 1 || network > 1).map((s) => s.machine),
  );
  const ends = job.links
    .filter(({ factor }) => factor > 1)
    .map(({ a, b }) => [job.slots[a]!.machine, job.slots[b]!.machine] as const)
    .filter((pair) => !pair.some((machine) => bad.has(machine)));
  const degree = new Map<string, number>();
  for (const machine of new Set(ends.map((pair) => [...pair].sort().join("\n"))))
    for (const end of machine.split("\n")) degree.set(end, (degree.get(end) ?? 0) + 1);
  for (const [a, b] of ends) {
    if (bad.has(a) || bad.has(b)) continue;
    bad.add(degree.get(b)! > degree.get(a)! ? b : a);
  }
  return [...bad].sort();
}

function rebalanced(
  tables: JobTables,
  placeOf: Int32Array,
  total: number,
  multipleOf: number,
): MicroBatchPlan {
  const { timesMs, fixedMs } = replicaTimes(tables, placeOf);
  return allocateMicroBatches({ timesMs, fixedMs, total, multipleOf });
}

/** By replica: what one micro-batch more takes, and what the pipeline takes besides. */
function replicaTimes(
  tables: JobTables,
  placeOf: Int32Array,
): { readonly timesMs: Float64Array; readonly fixedMs: Float64Array } {
  const { replicas, stages } = tables;
  const slotAt = new Int32Array(placeOf.length);
  placeOf.forEach((place, slot) => (slotAt[place] = slot));
  const row = new Float64Array(rowWidth(stages));
  const timesMs = new Float64Array(replicas);
  const fixedMs = new Float64Array(replicas);
  for (let replica = 0; replica < replicas; replica++) {
    timeReplica(tables, slotAt, replica, row, 0);
    timesMs[replica] = row[stages]!;
    fixedMs[replica] = row[stages + 1]!;
  }
  return { timesMs, fixedMs };
}

function withCounts(tables: JobTables, { allocation }: MicroBatchPlan): JobTables {
  return { ...tables, microBatches: Float64Array.from(allocation) };
}

/** The same job with nothing wrong and counts as even as they can be. */
function healthyJob(job: PlacedJob): PlacedJob {
  const total = job.microBatches.reduce((sum, count) => sum + count, 0);
  if (total < job.replicas)
    throw new UserError(
      `${total} micro-batches are too few for ${job.replicas} replicas`,
      `give at least ${job.replicas}`,
      2,
    );
  return {
    ...job,
    microBatches: job.microBatches.map(
      (_, i) => Math.floor(total / job.replicas) + (i < total % job.replicas ? 1 : 0),
    ),
    slots: job.slots.map((slot) => ({ ...slot, compute: 1, network: 1 })),
    links: [],
  };
}

function sharesInWords(allocation: readonly number[]): string {
  let [least, most] = [Infinity, 0];
  for (const count of allocation) {
    least = Math.min(least, count);
    most = Math.max(most, count);
  }
  if (most - least <= 1) return `replicas take equal counts again, ${most} micro-batches`;
  return `slow replicas take down to ${least} micro-batches, the others up to ${most}`;
}
