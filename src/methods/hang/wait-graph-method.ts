/**
 * hang/wait-graph: what holds the job up, from flight-recorder dumps. Each end of the wait graph
 * becomes a finding; the ranks that lead to it are cleared.
 */
import { count, rankWords } from "../../base/text.ts";
import type { NewFinding } from "../../model/finding.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { Method } from "../../model/method.ts";
import { isMoving, movementOf } from "../../model/moving.ts";
import { idleAndBehind, idleRanks, outOfStepAnywhere, silentFindings } from "./beyond-terminals.ts";
import { terminals } from "./components.ts";
import { findingFor } from "./terminals.ts";
import { rankStates, type RankState } from "./frontier.ts";
import { haltedRanks, stoppedRanks } from "./process-state.ts";
import { waitingByStack } from "./stacks.ts";
import { buildWaitGraph, type StuckOp, type WaitGraph } from "./wait-graph.ts";
import { describeOp, waitingSince } from "./words.ts";

export const waitGraph: Method = {
  id: "hang/wait-graph",
  applies: (job) => job.dumps.size > 0,
  *run(job) {
    if (isMoving(job)) {
      yield underWay(job);
      return;
    }
    const graph = buildWaitGraph(job, rankStates(job));
    const unseen = [...graph.states.values()].filter(({ waitsUnseen }) => waitsUnseen);
    if (graph.stuckIn.size === 0 && graph.ownGpu.size === 0) {
      yield unseen.length > 0 ? waitsForUnseen(unseen) : nothingPending(job);
      return;
    }
    const ends = terminals(graph);
    const findings: NewFinding[] = [];
    const silent: Rank[] = [];
    for (const end of ends) {
      if (end.kind === "rank" && !graph.states.has(end.rank)) silent.push(end.rank);
      else findings.push(findingFor(job, graph, end));
    }
    findings.push(...idleAndBehind(job, graph, findings));
    if (findings.length === 0) findings.push(...outOfStepAnywhere(job, graph));
    if (findings.length === 0) findings.push(...idleRanks(job, graph));
    const certain = findings.some((finding) => finding.weight >= 0.5);
    if (silent.length > 0) findings.push(...silentFindings(job, graph, silent, certain));
    const halted = haltedRanks(job);
    const stopped = stoppedRanks(job);
    const adjusted = findings
      .map((finding) => aroundHalted(halted, finding))
      .map((finding) => besideStopped(job, graph, stopped, finding));
    const accused = new Set(adjusted.flatMap((f) => f.accuses.flatMap((a) => a.ranks)));
    // Who was about to exchange something with a process that is gone only waits.
    const waiting = [...graph.stuckIn.keys()].filter(
      (rank) => !accused.has(rank) && !halted.has(rank),
    );
    const doubt = doubtOf(job, findings);
    yield weakened(overview(job, graph, waiting, accused), doubt);
    for (const finding of adjusted) yield weakened(finding, doubt);
  },
};

interface Doubt {
  readonly factor: number;
  readonly because: string;
}

/** Operators of a process that is stopped or gone stand because of that; hang/process says so and accuses it. */
function aroundHalted(halted: ReadonlySet<Rank>, finding: NewFinding): NewFinding {
  const isPart = finding.accuses.some(({ ranks }) => ranks.some((rank) => halted.has(rank)));
  if (!isPart) return finding;
  const says = `${finding.says}; one of their processes is stopped or gone`;
  return { ...finding, says, weight: 0.3, accuses: [] };
}

/**
 * A stopped process is seen; that a CPU or GPU is stuck is concluded from what it does not do. Whoever waits for the stopped one in
 * a way that leaves no record (a transfer of which NCCL has reported the end, a synchronization) does nothing, either. Not
 * where the stopped one waits for the accused, so that somebody has stopped a bystander, nor where a stack shows what holds it.
 */
function besideStopped(
  job: Job,
  graph: WaitGraph,
  stopped: readonly Rank[],
  finding: NewFinding,
): NewFinding {
  const { data, accuses } = finding;
  const isSilence = data.fact === "stopped-rank" && (data.side === "cpu" || data.side === "gpu");
  if (stopped.length === 0 || accuses.length === 0 || !isSilence) return finding;
  const accused = accuses.flatMap(({ ranks }) => ranks);
  const waits = waitingByStack(job);
  if (accused.some((rank) => job.stacks.has(rank) && !waits.has(rank))) return finding;
  const first = stopped.filter((rank) => !accused.some((other) => waitsFor(graph, rank, other)));
  if (first.length === 0) return finding;
  const says = `${finding.says}; the process of ${rankWords(first)} is stopped, which explains that`;
  return { ...finding, says, weight: 0.5, accuses: [], clears: accused };
}

/** Whether a rank waits for another, or for one that does. */
function waitsFor(graph: WaitGraph, from: Rank, to: Rank): boolean {
  const seen = new Set([from]);
  const open = [from];
  for (let rank = open.pop(); rank !== undefined; rank = open.pop())
    for (const index of graph.stuckIn.get(rank) ?? [])
      for (const absent of graph.ops[index]!.absent) {
        if (absent.rank === to) return true;
        if (!seen.has(absent.rank)) open.push(absent.rank);
        seen.add(absent.rank);
      }
  return false;
}

/** Reasons to think that nothing hangs: these dumps are snapshots of a job that runs, or has ended well. */
function doubtOf(job: Job, findings: readonly NewFinding[]): Doubt {
  const ranks = [...job.dumps.keys()];
  if (ranks.every((rank) => job.logs.get(rank)?.finished)) {
    return { factor: 0.1, because: "but all logs say that training finished" };
  }
  const accusing = findings.filter(({ accuses }) =>
    accuses.some((accusation) => accusation.ranks.some((rank) => job.dumps.has(rank))),
  ).length;
  if (accusing > 2 && accusing > ranks.length * 0.4) {
    return {
      factor: 0.3,
      because: "but too many ranks look suspect: the dumps may be from different moments",
    };
  }
  return { factor: 1, because: "" };
}

function weakened(finding: NewFinding, { factor, because }: Doubt): NewFinding {
  if (factor === 1) return finding;
  return {
    ...finding,
    says: `${finding.says}, ${because}`,
    weight: finding.weight * factor,
    accuses: finding.accuses.map((accusation) => ({
      ...accusation,
      weight: accusation.weight * factor,
    })),
  };
}

function underWay(job: Job): NewFinding {
  const isFresh = movementOf(job) === "fresh";
  const shown = isFresh
    ? "no operator had been pending for longer than two seconds"
    : "operators completed until then";
  return {
    says: `the ${count(job.dumps.size, "rank")} that left operator records were working when these were copied: ${shown}`,
    weight: 0.6,
    at: [],
    data: { fact: "nothing-pending", pending: 0, isMoving: isFresh ? "fresh" : true },
    accuses: [],
    clears: [],
  };
}

/** Whom they wait for left nothing, not even its number. */
function waitsForUnseen(states: readonly RankState[]): NewFinding {
  const ranks = states.map(({ rank }) => rank).sort((a, b) => a - b);
  const verb = ranks.length === 1 ? "waits" : "wait";
  return {
    says: `${rankWords(ranks)} ${verb} in operators with ranks that left no record`,
    weight: 0.6,
    at: [],
    data: { fact: "waiting-ranks", ops: [], stuckOps: ranks.length },
    accuses: [],
    clears: ranks,
    lacks: ["rings of the other machines: the inputs do not include the ranks that these wait for"],
  };
}

function nothingPending(job: Job): NewFinding {
  const open = [...job.dumps.values()].filter(({ dump }) => (dump.unknownEnds ?? 0) > 0);
  // What nobody timed may hang all the same: that is no all-clear.
  if (open.length > 0)
    return {
      says: `no timed operator is pending; operators were not timed on ${count(open.length, "rank")}, so it is unknown whether the last ones completed there`,
      weight: 0.3,
      at: [],
      data: { fact: "nothing-pending", pending: null },
      accuses: [],
      clears: [],
    };
  const cut = [...job.dumps.values()].filter(({ dump }) => dump.isCut).length;
  if (cut > 0)
    return {
      says: `the dumps of ${count(cut, "rank")} were cut off: it is unknown whether an operator is pending there; none is on the ${job.dumps.size - cut} others`,
      weight: 0.3,
      at: [],
      data: { fact: "nothing-pending", pending: null },
      accuses: [],
      clears: [],
    };
  return {
    says: `no operator is pending on any of the ${count(job.dumps.size, "rank")} that left a dump`,
    weight: 0.6,
    at: [],
    data: { fact: "nothing-pending", pending: 0 },
    accuses: [],
    clears: [],
  };
}

function overview(
  job: Job,
  graph: WaitGraph,
  waiting: readonly Rank[],
  accused: ReadonlySet<Rank>,
): NewFinding {
  // What waits for a culprit first, then what most ranks wait in.
  const near = (op: StuckOp): number => (op.absent.some(({ rank }) => accused.has(rank)) ? 1 : 0);
  const ops = graph.ops
    .toSorted((a, b) => near(b) - near(a) || b.arrived.length - a.arrived.length)
    .slice(0, MAX_OPS_SHOWN)
    .map((op) => ({
      what: describeOp(job, op),
      role: job.groups[op.group]?.role ?? "",
      group: job.groups[op.group]?.name ?? "",
      seq: op.seq,
      p2p: op.isP2p,
      arrived: op.arrived,
      absent: op.absent,
    }));
  const inOps = `${count(graph.ops.length, "operator")} that cannot finish`;
  const sorted = waiting.toSorted((a, b) => a - b);
  const verb = waiting.length === 1 ? "waits" : "wait";
  return {
    says:
      waiting.length === 0
        ? "no rank waits for another"
        : `${rankWords(sorted)} ${verb} in ${inOps}`,
    weight: 0.9,
    at: [],
    data: {
      fact: "waiting-ranks",
      ops,
      stuckOps: graph.ops.length,
      since: waitingSince(job, graph),
    },
    accuses: [],
    clears: waiting,
  };
}

const MAX_OPS_SHOWN = 400;
