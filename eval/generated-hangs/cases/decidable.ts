import type { Cause } from "../../../src/model/cause.ts";
import type { Evidence } from "./evidence.ts";
import type { Culprit, FaultKind } from "./faults.ts";
import type { SimGroup } from "../../../src/simulate/flight/rank-records.ts";
import type { Deviation } from "./mismatch.ts";
import type { Op } from "../../../src/simulate/flight/op.ts";
import type { RankRecords } from "../../../src/simulate/flight/rank-records.ts";

/**
 * Why the files do not tell who is at fault; "" where a careful reader can know. A reader is granted
 * everything that dumps can tell: counters beside entries, that a rank's earlier iterations and the
 * ranks of its stage run the same program, that one fault explains all waits. Not granted: a start that
 * was not recorded, a rank without a dump whose waits nobody else's records imply.
 */
export type Obstacle = string;

/** Causes that dumps alone cannot tell apart, the true one among them. */
export function confusable(
  kind: FaultKind,
  culprits: readonly Culprit[],
  evidence: Evidence,
): Cause[] {
  // Without its dump nothing shows how far the rank's own CPU and GPU had come.
  if (kind === "process-gone" || kind === "process-stopped")
    return ["process-gone", "process-stopped", "cpu-stall", "gpu-hang", "gpu-error"];
  // Who skipped a call and ran to its program's end owes the others one more, like one that stopped.
  const isDone = ({ rank }: Culprit): boolean =>
    evidence.waits[rank]?.length === 0 && !evidence.hasHistory(rank);
  return kind === "collective-mismatch" && culprits.some(isDone) ? [kind, "cpu-stall"] : [kind];
}

export function obstacle(
  kind: FaultKind,
  culprits: readonly Culprit[],
  deviation: Deviation | null,
  evidence: Evidence,
): Obstacle {
  const guilty = new Set(culprits.map((c) => c.rank));
  const implicated = evidence.implicated(() => true);
  if (kind === "process-gone" || kind === "process-stopped") {
    const innocent = [...implicated].filter((rank) => !guilty.has(rank));
    if (innocent.length > 0)
      return `ranks ${innocent.join(", ")} left no dump either and are waited for, like the culprit`;
    const seen = evidence.implicated((rank) => evidence.tellsItsWait(rank));
    if (culprits.some((c) => !seen.has(c.rank)))
      return "no wait that can be seen points at a culprit alone";
  } else {
    const cleared = evidence.cleared(implicated);
    const dark = [...implicated].filter((rank) => !cleared.has(rank));
    if (dark.length > 0)
      return `ranks ${dark.join(", ")} left no dump, are waited for, and nothing shows that they wait too`;
  }
  const idle = evidence.records.find(
    ({ rank }) =>
      !guilty.has(rank) &&
      evidence.isPresent(rank) &&
      !evidence.hasEntries(rank) &&
      evidence.looksIdle(rank),
  );
  if (idle) return `rank ${idle.rank} waits, but without entries its counters look idle`;
  if (kind === "cpu-stall") return pendingObstacle(culprits, evidence);
  if (kind === "gpu-hang") return gpuHangObstacle(culprits, evidence);
  if (kind === "gpu-error") return gpuErrorObstacle(culprits, guilty, evidence);
  if (kind === "network-hang") return networkObstacle(culprits, evidence);
  return deviation === null ? "" : mismatchObstacle(deviation, guilty, evidence);
}

/** A culprit with an asynchronous operator in flight looks as if it waited for it. */
function pendingObstacle(culprits: readonly Culprit[], evidence: Evidence): Obstacle {
  const hidden = culprits.find(
    ({ rank }) => (evidence.waits[rank] ?? []).length > 0 && !evidence.hasHistory(rank),
  );
  if (!hidden) return "";
  return `rank ${hidden.rank} has an asynchronous operator in flight and no history that shows it as such`;
}

function gpuHangObstacle(culprits: readonly Culprit[], evidence: Evidence): Obstacle {
  if (!evidence.timing) {
    const shared = culprits.find(({ rank, index }) => {
      const { group } = (evidence.records[rank] as RankRecords).ops[index] as Op;
      return (evidence.groups[group] as SimGroup).ranks.length > 1;
    });
    if (shared)
      return `without timing nothing shows which member of rank ${shared.rank}'s group did not start`;
  }
  return pendingObstacle(culprits, evidence);
}

/** A group in which somebody completed what the culprit never saw complete. */
function gpuErrorObstacle(
  culprits: readonly Culprit[],
  guilty: ReadonlySet<number>,
  evidence: Evidence,
): Obstacle {
  const completed = (rank: number, group: number): number =>
    evidence.records[rank]?.status.get(group)?.completed ?? -1;
  const unseen = culprits.find(({ rank }) => {
    const groups = [...(evidence.records[rank] as RankRecords).status.keys()];
    return !groups.some((group) => {
      const { role, ranks } = evidence.groups[group] as SimGroup;
      if (role === "pp") return false;
      return ranks.some(
        (peer) =>
          !guilty.has(peer) &&
          evidence.isPresent(peer) &&
          completed(peer, group) > completed(rank, group),
      );
    });
  });
  return unseen ? `no peer with a dump completed more than rank ${unseen.rank}` : "";
}

function networkObstacle(culprits: readonly Culprit[], evidence: Evidence): Obstacle {
  if (!evidence.timing) return "without timing nothing shows that every member had started";
  const lost = culprits.find(({ rank }) => !evidence.isPresent(rank));
  return lost ? `rank ${lost.rank} of the group left no dump` : "";
}

/**
 * Who left the program shows in the rank's own earlier iterations, else in a majority: of the ranks that
 * made the same call (same group or same stage), or of the counters of ranks that are as far.
 */
function mismatchObstacle(
  deviation: Deviation,
  guilty: ReadonlySet<number>,
  evidence: Evidence,
): Obstacle {
  const { variant, ranks, indices, other } = deviation;
  if (ranks.every((rank) => evidence.hasHistory(rank))) return "";
  const rank = ranks[0] as number;
  const index = indices[0] as number;
  const isOrder = variant === "skip" || variant === "extra";
  const innocent = evidence.siblings(rank).filter((r) => !guilty.has(r) && evidence.isPresent(r));
  const issued = (r: number): number => evidence.records[r]?.ops.length ?? 0;
  if (isOrder) {
    const shift = variant === "skip" ? 1 : -1;
    const asFar = innocent.filter((r) => issued(r) === issued(rank) + shift);
    if (asFar.length >= 2 && evidence.isPresent(rank)) return "";
  } else if (ranks.every((r, i) => evidence.shows(r, indices[i] as number))) {
    const witnesses = new Set(innocent.filter((r) => evidence.shows(r, index)));
    // Those who met it in a swapped collective made the same call, only at its right time.
    for (const wait of variant === "swap" ? [] : (evidence.waits[rank] ?? []))
      if (wait.index === index)
        wait.meeting.came.forEach((r, i) => {
          if (!guilty.has(r) && evidence.shows(r, wait.meeting.ops[i] as number)) witnesses.add(r);
        });
    const isWhole = other < 0 || evidence.shows(rank, other);
    if (isWhole && witnesses.size > ranks.length) return "";
  }
  return `nothing that rank ${rank}'s calls could be compared with is left in the dumps`;
}
