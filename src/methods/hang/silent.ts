/**
 * Ranks that left no dump. Somebody waits for them, but a rank that only waits may have lost its dump
 * too. A rank that is seen to be late explains the wait without them; a watchdog line in their log
 * shows that they waited themselves; a certain culprit elsewhere explains them all.
 */
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { WaitGraph } from "./wait-graph.ts";
import { describeOp } from "./words.ts";

export interface SilentSuspect {
  readonly rank: Rank;
  readonly weight: number;
  readonly why: string;
}

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
  // The fewer dumps there are, the more likely a missing one is just not here.
  const present =
    job.worldSize > 0 ? Math.min(1, (job.dumps.size + chosen.length) / job.worldSize) : 1;
  return chosen.map((rank) => {
    const op = graph.ops.find((stuck) => stuck.absent.some((absent) => absent.rank === rank));
    const where = op ? `, and others wait for it in ${describeOp(job, op)}` : "";
    return {
      rank,
      weight: (chosen.length === 1 ? 0.8 : 0.65) * present,
      why: `rank ${rank} left no ${dumpWord(job)}${where}`,
    };
  });
}

/** What the operators of this job were read from. */
function dumpWord(job: Job): string {
  return (job.probes?.length ?? 0) === 0 ? "flight-recorder dump" : "record of its operators";
}
