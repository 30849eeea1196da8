/** Whom the figures accuse: a few workers, a stage, or the data; the one that explains most first. */
import { median } from "../../../maths/robust.ts";
import { mean } from "./durations.ts";
import type { WhatIf, Worker } from "./what-if.ts";

/** Below this nobody is blamed. */
const SLOW = 1.05;
/** A share of the slow-down that makes a worker or a stage the cause (§5.1, §5.2). */
const MOST = 0.5;
/** Correlation of forward and backward passes from which on lengths of sequences make the difference (§5.3). */
const CORRELATED = 0.9;
/** A worker, or a stage, stands out when it computes this much longer than its like … */
const LONGER = 1.1;
/** … by so many standard errors. */
const ERRORS = 3;
/** A replay that misses the recorded times by more does not speak of this job. */
const MISFIT = 0.2;

export type Suspect =
  | { readonly what: "workers"; readonly workers: readonly Worker[]; readonly share: number }
  | { readonly what: "stage"; readonly stage: number; readonly share: number }
  | { readonly what: "data"; readonly share: number };

export function suspectsOf(result: WhatIf): Suspect[] {
  if (!(result.slowdown >= SLOW) || misfit(result) > MISFIT) return [];
  const workers = slowWorkers(result);
  if (workers) return [workers];
  const stage = slowStage(result);
  const data = unevenData(result);
  if (!stage || !data) return [stage ?? data].filter((one) => one !== null);
  // Both at once is common: the last stage is long, so differences between micro-batches show most there, and M_S
  // counts them as the stage's. The paper names sequence lengths whenever the correlation says so (its job SE has
  // M_S = 0.69 and is called a case of sequence lengths, the long last stage coming second). So a stage goes first
  // only where making stages even would gain more than twice of what making micro-batches even would.
  const isStageFirst = result.evenStagesShare > 2 * result.evenPassesShare;
  return isStageFirst ? [stage, data] : [data, stage];
}

/** By how much replayed steps differ from recorded ones, as a share: what ranks do that was not traced. */
function misfit({ recordedMs, actualMs }: WhatIf): number {
  return Math.abs(mean(actualMs) / mean(recordedMs) - 1);
}

/** The fewest of the slowest workers that explain it, where those of the same stage are faster. */
function slowWorkers(result: WhatIf): Suspect | null {
  // With one replica a worker is a stage.
  if (result.replicas < 2) return null;
  const standing = standingOut(result);
  if (result.workerShare >= MOST) {
    const { slowest } = result;
    let n = 1;
    while (n < slowest.length && result.share(slowest.slice(0, n)) < 0.9 * result.workerShare) n++;
    const workers = slowest.slice(0, n).filter((worker) => standing.includes(worker));
    if (workers.length > 0) return { what: "workers", workers, share: result.workerShare };
  }
  // Beyond the paper: several slow workers hide one another, since mending one leaves the others.
  if (standing.length < 2 || !areFew(result, standing)) return null;
  const share = result.share(standing);
  return share >= MOST ? { what: "workers", workers: standing, share } : null;
}

/** A minority of every stage, and no whole replica: that would be a long stage, or the data of the replica. */
function areFew({ replicas, stages }: WhatIf, workers: readonly Worker[]): boolean {
  return (
    by(workers, ({ stage }) => stage).every((some) => 2 * some.length < replicas) &&
    by(workers, ({ replica }) => replica).every((some) => some.length < Math.max(2, stages))
  );
}

/**
 * Workers that compute longer than those of their stage, by more than chance gives to micro-batches that differ, and
 * not because their whole replica has more to do. Not measured by how steps differ: a worker that turned slow halfway
 * differs most of all.
 */
function standingOut({ workers, passSpread, microBatches, steps }: WhatIf): Worker[] {
  // NaN where there is one micro-batch: chance is then not known, and only the size speaks.
  const error = passSpread * Math.sqrt(2 / (microBatches * steps.length));
  const ratios = new Map<Worker, number>();
  for (const list of by(workers, ({ stage }) => stage)) {
    const times = list.map(({ computeMs }) => mean(computeMs));
    list.forEach((worker, at) => ratios.set(worker, times[at]! / median(times.toSpliced(at, 1))));
  }
  return by(workers, ({ replica }) => replica)
    .flatMap((replica) => {
      const all = replica.map((worker) => ratios.get(worker)!);
      return replica.filter((_, at) => {
        const ratio = all[at]!;
        const others = all.toSpliced(at, 1);
        const isLonger = ratio >= LONGER && !(ratio - 1 < ERRORS * error);
        return isLonger && (others.length === 0 || ratio >= LONGER * median(others));
      });
    })
    .sort((a, b) => workers.indexOf(a) - workers.indexOf(b));
}

function by(workers: readonly Worker[], of: (worker: Worker) => number): Worker[][] {
  const groups = new Map<number, Worker[]>();
  for (const worker of workers) {
    const group = groups.get(of(worker));
    if (group) group.push(worker);
    else groups.set(of(worker), [worker]);
  }
  return [...groups.values()];
}

function slowStage(result: WhatIf): Suspect | null {
  const { stages, stageShares } = result;
  if (stages < 2) return null;
  const share = Math.max(...stageShares);
  const stage = stageShares.indexOf(share);
  return share >= MOST && isLong(result, stage) ? { what: "stage", stage, share } : null;
}

/** Whether most of its workers, not just one, compute longer than workers of other stages do. */
function isLong({ workers }: WhatIf, stage: number): boolean {
  const typical = (isMeant: (worker: Worker) => boolean): number =>
    median(workers.filter(isMeant).map(({ computeMs }) => mean(computeMs)));
  return typical((one) => one.stage === stage) >= LONGER * typical((one) => one.stage !== stage);
}

/** Micro-batches differ, forward and backward alike, and it costs most of the slow-down or as much as counts at all. */
function unevenData({ passCorrelation, evenPassesShare, slowdown }: WhatIf): Suspect | null {
  const costs = evenPassesShare >= MOST || evenPassesShare * (slowdown - 1) >= SLOW - 1;
  if (!(passCorrelation >= CORRELATED) || !costs) return null;
  return { what: "data", share: evenPassesShare };
}
