/**
 * hang/watchdog: the culprit from logs alone, when there are no dumps. Every rank that waits is told
 * so by PyTorch's watchdog; the one it waits for has nothing pending and stays quiet. Where all
 * report, one may have issued what the others did not (log-mismatch.ts), or the group counters in the
 * same lines show who lags.
 */
import { groupBy } from "../../base/group-by.ts";
import { largest } from "../../base/numbers.ts";
import { count, rankWords } from "../../base/text.ts";
import { followsOn, isEnding, isWatchdogTimeout } from "../../model/connections.ts";
import type { Accusation, NewFinding } from "../../model/finding.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { WatchdogReport } from "../../model/log.ts";
import type { Method } from "../../model/method.ts";
import { wasSurvived } from "../../model/process-ended.ts";
import { findLogMismatches } from "./log-mismatch.ts";
import { waitingByStack } from "./stacks.ts";

export const watchdog: Method = {
  id: "hang/watchdog",
  applies: (job) => timeouts(job).length > 0,
  *run(job) {
    const reports = timeouts(job);
    const reporting = [...new Set(reports.map((report) => report.rank!))].sort((a, b) => a - b);
    const at = reports.slice(0, 4).map(({ file, line }) => ({ file, line }));
    const first = reports[0]!;
    const says = `PyTorch's watchdog saw operators time out on ${rankWords(reporting)}, first ${first.op || "one"} #${first.seq} of ${first.desc || first.group}`;
    const accuses = outOfOrder(job, reports) ?? withoutDumps(job, reports, reporting);
    const accused = new Set(accuses.flatMap((accusation) => accusation.ranks));
    yield {
      says: accuses.length > 0 ? `${says}; ${accuses[0]!.why}` : says,
      weight: largest(
        accuses.map((accusation) => accusation.weight),
        0.3,
      ),
      at,
      data: { fact: "watchdog-timeouts", reporting },
      accuses,
      clears: accuses.length > 0 ? reporting.filter((rank) => !accused.has(rank)) : [],
    } satisfies NewFinding;
  },
};

/**
 * Reports of operators that timed out. Calls for a dump and closed connections print counters too, also
 * on ranks that wait for nothing.
 */
function timeouts(job: Job): WatchdogReport[] {
  const told = job.failures.filter(
    (failure) => isWatchdogTimeout(failure) && !wasSurvived(job, failure),
  );
  const ranks = new Set(told.map(({ rank }) => rank));
  return job.watchdog.filter(
    (report) => report.op !== "" && report.rank !== null && ranks.has(report.rank),
  );
}

/** Dumps say who waits for whom; lines of the log cannot add to that. */
function withoutDumps(
  job: Job,
  reports: readonly WatchdogReport[],
  reporting: readonly Rank[],
): Accusation[] {
  if (job.dumps.size > 0) return [];
  return quietRanks(job, reporting) ?? laggingRanks(job, reports);
}

/** Who issued what the rest of its group did not. Where its dump is here, its whole program is compared. */
function outOfOrder(job: Job, reports: readonly WatchdogReport[]): Accusation[] | null {
  const found = findLogMismatches(reports).filter(
    ({ ranks }) => !ranks.some((rank) => job.dumps.has(rank)),
  );
  const decided = found.filter(({ isDecided }) => isDecided);
  const accuses = (decided.length > 0 ? decided : found.slice(0, 1)).flatMap((mismatch) => {
    const { ranks, isDecided, weight, why } = mismatch;
    if (isDecided) return ranks.map((rank) => accuse(rank, "collective-mismatch", weight, why));
    return {
      ...accuse(ranks[0]!, "collective-mismatch", weight, why),
      type: "code" as const,
      ranks,
    };
  });
  return accuses.length > 0 ? accuses : null;
}

/** Records of a rank that is asked to dump or to end. */
const ENDING =
  /^torch\.watchdog\.(?:last-work|dump|after-dump|inconsistency|taking-down|global-abort)/;

/**
 * Ranks with a log in which no operator timed out and no connection failed, while those of most others
 * did. A rank whose log is missing is as suspect.
 */
function quietRanks(job: Job, reporting: readonly Rank[]): Accusation[] | null {
  const waits = new Set(reporting);
  const isAfterEnd = followsOn(job.failures.filter(isEnding));
  for (const failure of job.failures) {
    const { rank, role, cause, signature } = failure;
    // That does not show that it waited.
    if (rank === null || role !== "echo" || ENDING.test(signature)) continue;
    if (cause !== "scheduler" && !isAfterEnd(failure)) waits.add(rank);
  }
  const all = [...job.logs.values()].filter(
    (log) => log.rank !== null && !waits.has(log.rank) && !log.finished,
  );
  // A process that was seen to wait as the others do has only lost its log.
  const seen = waitingByStack(job);
  const absent = [...job.ranks.keys()].filter(
    (rank) => !job.logs.has(rank) && !waits.has(rank) && !seen.has(rank),
  );
  // Where most logs are not here at all, an absent one means nothing.
  const unlogged = absent.length * 4 <= job.worldSize ? absent : [];
  const mute = all.filter(({ dumpLine }) => dumpLine === 0);
  const lively = all.length - mute.length + reporting.length;
  // The first time-out ends the others before theirs: of those that were called to dump then, who did not answer?
  const isEarly = all.length + unlogged.length > reporting.length;
  const quiet = isEarly ? mute : all;
  const suspects = quiet.length + unlogged.length;
  if (suspects === 0 || suspects * (isEarly ? 3 : 1) > (isEarly ? lively : reporting.length))
    return null;
  // One quiet log among many is telling; a log that is not here may just not be here.
  const weight = (quiet.length === 1 ? 0.75 : 0.6 / quiet.length) * (unlogged.length > 0 ? 0.7 : 1);
  const others = count(reporting.length, "other rank");
  const loud = quiet.map((log): Accusation => {
    const alive = log.dumpLine > 0;
    const state = alive
      ? "was alive and answered the request for a dump, but"
      : isEarly
        ? `wrote nothing more, though ${count(lively, "rank")} did, and`
        : "wrote nothing more, and";
    const why = `rank ${log.rank} ${state} no operator of its own timed out, unlike on ${others}`;
    return accuse(log.rank!, alive ? "cpu-stall" : "process-stopped", weight, why);
  });
  return [...loud, ...withoutLog(job, unlogged, others)];
}

/** All ranks of a machine at once: the machine is out of reach, which says more than a file that is not here. */
function withoutLog(job: Job, unlogged: readonly Rank[], others: string): Accusation[] {
  const byMachine = groupBy(unlogged, (rank) => job.ranks.get(rank)?.machine ?? `rank ${rank}`);
  const sizes = new Map<string | null, number>();
  for (const { machine } of job.ranks.values()) sizes.set(machine, (sizes.get(machine) ?? 0) + 1);
  return [...byMachine].flatMap(([machine, ranks]) => {
    if (ranks.length > 1 && ranks.length === sizes.get(machine)) {
      const why = `the ranks of ${machine} left no log, and an operator timed out on ${others}`;
      const first = accuse(ranks[0]!, "process-gone", MISSING_LOG_WEIGHT, why);
      return { ...first, type: "machine" as const, ranks, name: machine };
    }
    return ranks.map((rank) =>
      accuse(
        rank,
        "unknown",
        MISSING_FILE_WEIGHT,
        `rank ${rank} left no log, and an operator timed out on ${others}`,
      ),
    );
  });
}

const MISSING_LOG_WEIGHT = 0.3;
/** Files get lost: one that is not here says nearly nothing. */
const MISSING_FILE_WEIGHT = 0.1;

function accuse(rank: Rank, cause: Accusation["cause"], weight: number, why: string): Accusation {
  return { kind: "hang", type: "rank", ranks: [rank], link: null, cause, weight, why };
}

/** In groups whose members all report, those that completed (else enqueued) fewer collectives. */
function laggingRanks(job: Job, reports: readonly WatchdogReport[]): Accusation[] {
  const byGroup = new Map<string, WatchdogReport[]>();
  for (const report of reports) {
    if (/SEND|RECV|COALESCED/.test(report.op) || /PIPELINE/i.test(report.desc)) continue;
    byGroup.set(report.group, [...(byGroup.get(report.group) ?? []), report]);
  }
  const slow = new Map<Rank, "completed" | "enqueued">();
  const fast = new Set<Rank>();
  for (const members of byGroup.values()) {
    for (const field of ["completed", "enqueued"] as const) {
      const known = members.filter((report) => report[field] >= 0);
      const most = largest(
        known.map((report) => report[field]),
        -Infinity,
      );
      const behind = known.filter((report) => report[field] < most);
      for (const report of behind) {
        if (slow.get(report.rank!) !== "completed") slow.set(report.rank!, field);
      }
      if (behind.length > 0) {
        for (const report of known) if (report[field] === most) fast.add(report.rank!);
        break;
      }
    }
  }
  const ranks = [...slow.keys()].filter((rank) => !fast.has(rank)).sort((a, b) => a - b);
  return ranks.slice(0, 8).map((rank) => {
    const isGpu = slow.get(rank) === "completed";
    const why = `rank ${rank} ${slow.get(rank)} fewer operators of a group than its other members`;
    return accuse(rank, isGpu ? "gpu-hang" : "unknown", isGpu ? 0.7 : 0.35, why);
  });
}
