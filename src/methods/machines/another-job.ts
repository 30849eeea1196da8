/**
 * Machines of other jobs, where no job file tells: monitoring knows a cluster, not a job. What a job decides (how much
 * memory it takes, how much it sends, how busy it keeps GPUs) differs there on the whole machine from the first sample on.
 * Faults begin, or are one part's, or show in what no job decides: clocks, links, counters of errors, silence.
 */
import { median } from "../../maths/robust.ts";
import type { Fleet } from "../../model/fleet.ts";
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
export function isKnownMember({ role, roles }: Fleet, machine: number): boolean {
  return roles[role[machine]!]!.startsWith("stage");
}

/** `evidence` is of one machine; without what only says that it does another job's work. */
export function withoutAnotherJob(
  evidence: readonly Evidence[],
  views: readonly View[],
  { fromS, toS }: { readonly fromS: number; readonly toS: number },
  phases: readonly Phase[],
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
  const standing = evidence.find(isStanding);
  if (!standing || !works(standing.machine, views)) return evidence;
  return evidence.filter(({ kind }) => !DECIDED_BY_JOBS.includes(kind));
}

/** Whether its GPUs are busy, though not as the peers' are: one that idles all the time does no other job's work. */
function works(machine: number, views: readonly View[]): boolean {
  return views
    .filter(({ metric, side }) => WORK.includes(metric.id) && side === "low")
    .every(({ grid: { mean, ticks }, peers }) => {
      const usual = (m: number): number =>
        median(
          Float64Array.from(mean.subarray(m * ticks, (m + 1) * ticks)).filter(
            (value) => value === value,
          ),
        );
      return !(usual(machine) < WORKS * median(peersOf(peers.role, machine, PEERS).map(usual)));
    });
}

const PEERS = 20;
