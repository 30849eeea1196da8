/**
 * Machines of other jobs, where no job file tells: monitoring knows a cluster, not a job. What a job decides (how much
 * memory it takes, how much it sends, how busy it keeps GPUs) differs there on the whole machine from the first sample on.
 * Faults begin, or are one part's, or show in what no job decides: clocks, links, counters of errors, silence.
 */
import { median } from "../../maths/robust.ts";
import type { Fleet, MetricGrid } from "../../model/fleet.ts";
import type { Phase } from "../../model/machine-report.ts";
import { detailed, type Evidence, type EvidenceKind } from "./evidence.ts";
import { peersOf } from "./roles.ts";
import type { View } from "./views.ts";

const OF_ITS_JOB: readonly EvidenceKind[] = ["gpu-memory", "network", "gpu-work"];
const DECIDED_BY_JOBS: readonly EvidenceKind[] = [
  ...OF_ITS_JOB,
  "cpu",
  "memory",
  "tcp",
  "disk",
  "congestion",
];
/** An episode's edge: samples, and a minute. */
const EDGE_STEPS = 3;
const EDGE_S = 60;
/** Of the time that there are data of: less may be a jitter at their start. */
const LEAST_SHARE = 0.3;

/** Of what the peers do: less is no work, another job's or not. */
const WORKS = 0.2;
const WORK = ["gpu-tensor-core-activity", "gpu-sm-activity", "gpu-duty-cycle"];

/** Whether the job's file names it. */
export function isKnownMember({ role, roles, isJob }: Fleet, machine: number): boolean {
  return isJob === true || roles[role[machine]!]!.startsWith("stage");
}

/** Machines of one job and stage hold the same in their GPUs, to this share. */
const SAME_HELD = 0.03;
/** So many machines hold the same, or nobody knows what the job holds. */
const LEAST_ALIKE = 3;
/** So many times what these differ by. */
const FAR_HELD = 10;

/**
 * By machine: 1 where the GPUs hold as much as those of no other machine, from the first sample on, all of them more or
 * all of them less than the largest group that is alike, which is the job. A stage has several machines; another process on one GPU leaves the others.
 */
export function holdsOther({ machines, grids }: Fleet): Uint8Array {
  const other = new Uint8Array(machines.length);
  const memory = grids.find(({ metric }) => metric === "gpu-memory-used");
  if (!memory) return other;
  const held = machines
    .map((_, m) => ({ m, low: usual(memory, memory.low, m), high: usual(memory, memory.high, m) }))
    .filter(({ low }) => low > 0)
    .sort((a, b) => a.low - b.low);
  let job: typeof held = [];
  let first = 0;
  held.forEach((one, i) => {
    while (held[first]!.low < one.low * (1 - SAME_HELD)) first++;
    if (i + 1 - first > job.length) job = held.slice(first, i + 1);
  });
  if (job.length < LEAST_ALIKE) return other;
  const [low, high] = [median(job.map((one) => one.low)), median(job.map((one) => one.high))];
  const spread = median(job.map((one) => Math.abs(one.low / low - 1)));
  const limit = Math.max(SAME_HELD, FAR_HELD * spread);
  held.forEach((one, i) => {
    const [off, offHigh] = [one.low / low - 1, one.high / high - 1];
    const isNear = (next: typeof one | undefined): boolean =>
      next !== undefined && Math.abs(next.low / one.low - 1) < SAME_HELD;
    if (isNear(held[i - 1]) || isNear(held[i + 1])) return;
    const first = usual(memory, memory.low, one.m, EARLY);
    if (!(Math.abs(first / one.low - 1) < SAME_HELD)) return;
    if (Math.abs(off) > limit && Math.abs(offHigh) > limit && off * offHigh > 0) other[one.m] = 1;
  });
  return other;
}

const EARLY = 0.25;

/** Median of a machine's samples, or of the first part of them. */
function usual({ ticks }: MetricGrid, values: Float32Array, m: number, part = 1): number {
  const row = values.subarray(m * ticks, m * ticks + Math.ceil(part * ticks));
  return median(Float64Array.from(row).filter((one) => one === one));
}

/** `evidence` is of one machine; without what only says that it does another job's work. */
export function withoutAnotherJob(
  evidence: readonly Evidence[],
  views: readonly View[],
  { fromS, toS }: { readonly fromS: number; readonly toS: number },
  phases: readonly Phase[],
  holdsOtherMemory: boolean,
): readonly Evidence[] {
  const beganS = phases.reduce(
    (start, phase) => (phase.fromS <= start + EDGE_S ? Math.max(start, phase.toS) : start),
    fromS,
  );
  const isStanding = (one: Evidence): boolean =>
    one.decides &&
    OF_ITS_JOB.includes(one.kind) &&
    one.toS - one.fromS >= LEAST_SHARE * (toS - fromS) &&
    one.fromS <= beganS + Math.max(EDGE_S, EDGE_STEPS * one.episode!.view.grid.stepS) &&
    detailed(one).deviation.device === null;
  const standing = holdsOtherMemory ? evidence[0] : evidence.find(isStanding);
  if (!standing || !works(standing.machine, views)) return evidence;
  return evidence.filter(({ kind }) => !DECIDED_BY_JOBS.includes(kind));
}

/** Whether its GPUs are busy, though not as the peers' are: one that idles all the time does no other job's work. */
function works(machine: number, views: readonly View[]): boolean {
  return views
    .filter(({ metric, side }) => WORK.includes(metric.id) && side === "low")
    .every(({ grid, peers }) => {
      const level = (m: number): number => usual(grid, grid.mean, m);
      return !(level(machine) < WORKS * median(peersOf(peers.role, machine, PEERS).map(level)));
    });
}

const PEERS = 20;
