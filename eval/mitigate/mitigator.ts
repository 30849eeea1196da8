/**
 * Lives with a job's faults (Greyhound §5.1): told what is wrong with which GPUs and ways, and how long each iteration
 * took, it says what to do before the next one. Knows nothing of how faults are found, nor of how orders are carried
 * out. The closed loop in the simulator drives it (closed-loop.ts); no running job is driven by it.
 */
import type { PlacedJob, Slot, SlowLink, Strategy } from "../../src/model/mitigation.ts";
import { allocateMicroBatches } from "../../src/mitigate/microbatches.ts";
import {
  remediesOf,
  USUAL_OVERHEADS,
  type RemedyOptions,
  type RemedyPlan,
} from "../../src/mitigate/remedies.ts";
import { skiRental, type SkiRental } from "./ski-rental.ts";
import { identity, iterationMs } from "../../src/mitigate/topology/cost-model.ts";
import { swapList } from "../../src/mitigate/topology/shorten.ts";

/** What is wrong now, by slot (as they sat when the job began). All that is known, not only what is new. */
export interface Trouble {
  /** Factors on kernels and on NICs of slots that are slow. */
  readonly compute: ReadonlyMap<number, number>;
  readonly network: ReadonlyMap<number, number>;
  readonly links: readonly SlowLink[];
}

/** Before the next iteration. */
export interface Order {
  readonly strategy: Strategy;
  /** By replica: micro-batches to take from now on. */
  readonly microBatches: readonly number[];
  /** By place: the slot that sits there from now on. */
  readonly slotAt: Int32Array;
  readonly exclude: readonly string[];
  /** What carrying it out costs. */
  readonly pauseMs: number;
  readonly why: string;
}

export interface Mitigator {
  /** A diagnosis, or the end of a fault (empty maps). Returns what to do at once, if anything. */
  diagnosed(trouble: Trouble): Order | null;
  /** An iteration ended. */
  observe(iterationMs: number): Order | null;
  /** Times the loss of the best choice in hindsight, at most, for the trouble at hand. */
  readonly bound: number;
  /** What an iteration is expected to take as things are known now. */
  readonly expectedMs: number;
}

export const NO_TROUBLE: Trouble = { compute: new Map(), network: new Map(), links: [] };

/** `job`: healthy devices, each slot at its place. */
export function makeMitigator(job: PlacedJob, options: RemedyOptions = {}): Mitigator {
  const even = job.microBatches;
  let microBatches = even;
  let slotAt: Int32Array = Int32Array.from(job.slots, (_, i) => i);
  let rental: SkiRental<RemedyPlan> | null = null;
  const healthyMs = iterationMs(job, identity(job.slots.length));
  let expectedMs = healthyMs;

  const carryOut = (plan: RemedyPlan): Order => {
    microBatches = plan.microBatches?.allocation ?? microBatches;
    if (plan.topology) slotAt = moved(slotAt, plan.topology.placeOf);
    if (plan.strategy === "S4") microBatches = even;
    expectedMs = plan.iterationMs;
    const { strategy, why, overheadMs: pauseMs, exclude = [] } = plan;
    return { strategy, microBatches, slotAt: slotAt.slice(), exclude, pauseMs, why };
  };

  return {
    get bound() {
      return rental?.bound ?? 1;
    },
    get expectedMs() {
      return expectedMs;
    },
    diagnosed(trouble) {
      const isOver = trouble.compute.size + trouble.network.size + trouble.links.length === 0;
      const wasUneven = microBatches.some((count, i) => count !== even[i]);
      if (isOver) microBatches = even;
      const now = troubled(job, slotAt, microBatches, trouble);
      const found = remediesOf(now, options);
      expectedMs = found.nowMs;
      // A restart that leaves nobody out changes nothing.
      let plans = found.plans.filter(
        ({ strategy, exclude }) => strategy !== "S4" || exclude!.length > 0,
      );
      if (isOver) plans = backPlan(slotAt, found.nowMs, healthyMs, options);
      rental = skiRental(plans, found.nowMs, isOver ? undefined : rental?.saved);
      // Taking counts back costs next to nothing.
      if (isOver && wasUneven) {
        const why = "the fault is over: equal counts again";
        const pauseMs = 0;
        return { strategy: "S2", microBatches, slotAt: slotAt.slice(), exclude: [], pauseMs, why };
      }
      return null;
    },
    observe(iterationMs) {
      const due = rental?.observe(iterationMs) ?? null;
      return due ? carryOut(due) : null;
    },
  };
}

/** Places stay as they are when a fault is over, unless that is slower: then going back is rented like all else. */
function backPlan(
  slotAt: Int32Array,
  nowMs: number,
  healthyMs: number,
  { overheads = USUAL_OVERHEADS }: RemedyOptions,
): RemedyPlan[] {
  const placeOf = slotAt.slice();
  const topology = {
    swaps: swapList(placeOf, []),
    placeOf,
    beforeMs: nowMs,
    afterMs: healthyMs,
    healthyMs,
    why: "the fault is over: back to the places of before",
  };
  const { why } = topology;
  const overheadMs = overheads.topologyMs;
  return [{ strategy: "S3", overheadMs, iterationMs: healthyMs, why, topology }];
}

/** The job as its slots sit now, with what is wrong; slots are numbered by place. */
function troubled(
  job: PlacedJob,
  slotAt: Int32Array,
  microBatches: readonly number[],
  { compute, network, links }: Trouble,
): PlacedJob {
  const placeOf = new Int32Array(slotAt.length);
  slotAt.forEach((slot, place) => (placeOf[slot] = place));
  const slots = Array.from(slotAt, (slot): Slot => {
    const { name, machine } = job.slots[slot]!;
    return {
      name,
      machine,
      compute: Math.max(1, compute.get(slot) ?? 1),
      network: Math.max(1, network.get(slot) ?? 1),
    };
  });
  const moves = links.map(({ a, b, factor }) => ({
    a: placeOf[a]!,
    b: placeOf[b]!,
    factor: Math.max(1, factor),
  }));
  return { ...job, microBatches, slots, links: moves };
}

function moved(slotAt: Int32Array, placeOf: Int32Array): Int32Array {
  const after = new Int32Array(slotAt.length);
  slotAt.forEach((slot, place) => (after[placeOf[place]!] = slot));
  return after;
}

/** Counts as even as they can be, in multiples. */
export function evenCounts(replicas: number, total: number, multipleOf = 1): readonly number[] {
  return allocateMicroBatches({ timesMs: new Float64Array(replicas).fill(1), total, multipleOf })
    .allocation;
}
