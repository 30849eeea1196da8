/**
 * Ranks that left no dump. Somebody waits for them, but a rank that only waits may have lost its dump
 * too. A rank that is seen to be late explains the wait without them; a watchdog line in their log
 * shows that they waited themselves; a certain culprit elsewhere explains them all.
 */
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { WaitGraph } from "./wait-graph.ts";
import { describeOp } from "./words.ts";

interface SilentSuspect {
  readonly rank: Rank;
  readonly weight: number;
  readonly why: string;
}

/** How sure it is that a rank is gone which others wait for and which left no dump; less where nothing tells of an end. */
const ALONE = 0.8;
const NO_END_TOLD = 0.5;
const TOGETHER = 0.65;

export function chooseSilent(
  job: Job,
  graph: WaitGraph,
  silent: readonly Rank[],
  certain: boolean,
): SilentSuspect[] {
  // With a certain culprit the absence needs no further explanation.
  if (certain) return [];
  const waitingInLog = new Set(job.watchdog.flatMap((report) => report.rank ?? []));
  const implicated = new Set<Rank>();
  for (const op of graph.ops) {
    if (op.absent.some(({ why }) => why !== "silent")) continue;
    for (const { rank } of op.absent) if (!waitingInLog.has(rank)) implicated.add(rank);
  }
  const chosen = silent.filter((rank) => implicated.has(rank));
  const isEndTold = job.failures.length + job.torchrun.length + (job.probes?.length ?? 0) > 0;
  const alone = isEndTold ? ALONE : NO_END_TOLD;
  const weight = chosen.length === 1 ? alone : TOGETHER * probablyGone(job, chosen);
  return chosen.map((rank) => {
    const op = graph.ops.find((stuck) => stuck.absent.some((absent) => absent.rank === rank));
    const where = op ? `, and others wait for it in ${describeOp(job, op)}` : "";
    return {
      rank,
      weight,
      why: `rank ${rank} left no ${dumpWord(job)}${where}`,
    };
  });
}

/**
 * Of several, one may be at fault and the others' dumps just not here: the more so, the more of them are missing. A machine
 * takes all its ranks along.
 */
function probablyGone(job: Job, ranks: readonly Rank[]): number {
  const machines = new Set(ranks.map((rank) => job.ranks.get(rank)?.machine ?? null));
  if (machines.size === 1 && !machines.has(null)) return 1;
  return (job.dumps.size / Math.max(job.dumps.size, job.worldSize)) ** 2;
}

/** What the operators of this job were read from. */
function dumpWord(job: Job): string {
  return (job.probes?.length ?? 0) === 0 ? "flight-recorder dump" : "record of its operators";
}
