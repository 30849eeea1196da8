/**
 * hang/ras: NCCL's own monitor. Two of its statements are worth something: a process that does not
 * answer, and a rank that launched fewer collectives than its peers. "RUNNING OK" is worth nothing:
 * it counts launches, so a stuck GPU looks fine (nccl issue 1730).
 */
import { largest, smallest } from "../../base/numbers.ts";
import { rankWords } from "../../base/text.ts";
import type { Accusation, NewFinding } from "../../model/finding.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { Method } from "../../model/method.ts";
import type { RasCommunicator, RasMissing, RasProcess, RasReport } from "../../model/ras.ts";

export const ras: Method = {
  id: "hang/ras",
  applies: (job) => job.ras.length > 0,
  *run(job) {
    for (const report of job.ras) {
      yield* missingProcesses(job, report);
      yield* laggards(job, report);
    }
  },
};

function* missingProcesses(job: Job, report: RasReport): Iterable<NewFinding> {
  const states = new Map<Rank, { state: RasMissing["state"]; line: number }>();
  const note = (process: RasMissing, rank: Rank | null, line: number): void => {
    if (rank !== null && states.get(rank)?.state !== "dead") {
      states.set(rank, { state: process.state, line });
    }
  };
  for (const process of report.missingProcesses) note(process, rankOf(job, process, null), 1);
  for (const comm of report.communicators) {
    for (const process of comm.missing) note(process, rankOf(job, process, comm), comm.line);
  }
  for (const [rank, { state, line }] of [...states].sort((a, b) => a[0] - b[0])) {
    const why =
      state === "dead"
        ? `NCCL RAS reports the process of rank ${rank} as dead`
        : `NCCL RAS got no answer from the process of rank ${rank}`;
    const accusation: Accusation = {
      kind: "hang",
      type: "rank",
      ranks: [rank],
      link: null,
      cause: state === "dead" ? "process-gone" : "process-stopped",
      weight: 0.7,
      why,
    };
    yield {
      says: why,
      weight: 0.7,
      at: [{ file: report.file, line }],
      data: { fact: "ras-state", state },
      accuses: [accusation],
      clears: [],
    };
  }
}

/** Ranks that launched fewer operators than a peer in every communicator where counts differ. */
function* laggards(job: Job, report: RasReport): Iterable<NewFinding> {
  const behind = new Map<Rank, number>();
  const ahead = new Set<Rank>();
  let line = 1;
  for (const comm of report.communicators) {
    const types = new Map<string, (RasProcess & { launched: number })[]>();
    for (const entry of comm.counts) {
      types.set(entry.collective, [...(types.get(entry.collective) ?? []), entry]);
    }
    for (const entries of types.values()) {
      const most = largest(
        entries.map((entry) => entry.launched),
        -Infinity,
      );
      const least = smallest(
        entries.map((entry) => entry.launched),
        Infinity,
      );
      if (most === least) continue;
      line = comm.line;
      for (const entry of entries) {
        const rank = rankOf(job, entry, comm);
        if (rank === null) continue;
        if (entry.launched < most)
          behind.set(rank, Math.max(behind.get(rank) ?? 0, most - entry.launched));
        else ahead.add(rank);
      }
    }
  }
  const ranks = [...behind.keys()].filter((rank) => !ahead.has(rank)).sort((a, b) => a - b);
  if (ranks.length === 0 || ranks.length > MAX_LAGGARDS) return;
  const why = `${rankWords(ranks)} launched fewer collectives than other ranks, by NCCL's own counters`;
  yield {
    says: why,
    weight: 0.4,
    at: [{ file: report.file, line }],
    data: { fact: "ras-behind", behind: Object.fromEntries(behind) },
    accuses: ranks.map((rank) => ({
      kind: "hang",
      type: "rank",
      ranks: [rank],
      link: null,
      cause: "cpu-stall",
      weight: 0.4,
      why: `rank ${rank} launched ${behind.get(rank)} fewer collectives than a peer`,
    })),
    clears: [],
  };
}

const MAX_LAGGARDS = 8;

/** By process id where logs tell it, else by the communicator's rank where it spans the whole job. */
function rankOf(job: Job, process: RasProcess, comm: RasCommunicator | null): Rank | null {
  const known =
    job.processes.get(`${process.host}:${process.pid}`) ?? job.processes.get(String(process.pid));
  if (known !== undefined && known >= 0) return known;
  if (comm && comm.size > 0 && comm.size === job.worldSize) return process.commRank;
  return null;
}
