/**
 * Culprits that the ends of the wait graph do not show: ranks without a dump, which have no arrows of
 * their own, and ranks for which nobody waits yet.
 */
import { groupBy } from "../../base/group-by.ts";
import { count, rankWords } from "../../base/text.ts";
import { connectionsClosedFirst, isEnding } from "../../model/connections.ts";
import type { Cause } from "../../model/cause.ts";
import type { NewFinding } from "../../model/finding.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import { accusing, mismatchFinding, stuckTogether } from "./accuse.ts";
import type { RankState } from "./frontier.ts";
import { findOutOfStep, mismatchInOp } from "./mismatch.ts";
import { findOrderBreaker } from "./order.ts";
import { waitingByStack } from "./stacks.ts";
import type { StuckOp, WaitGraph } from "./wait-graph.ts";
import { describeOp, lastOperator } from "./words.ts";

interface SilentSuspect {
  readonly rank: Rank;
  readonly weight: number;
  readonly why: string;
  /** Where its log tells. */
  readonly cause?: Cause;
}

/** How sure it is that a rank is gone which others wait for and which left no dump; less where nothing tells of an end. */
const ALONE = 0.8;
const NO_END_TOLD = 0.5;
/** Its GPU, as a rule; or the network at its end. */
const WAITS_ITSELF = 0.4;
const TOGETHER = 0.65;

/**
 * All arrows end at ranks without a dump. Before these are blamed: does a rank that is there
 * run another program than its peers? Then the missing dumps are only that.
 */
export function outOfStepAnywhere(job: Job, graph: WaitGraph): NewFinding[] {
  for (const op of graph.ops) {
    if (op.isP2p || op.arrived.length < 2) continue;
    const mismatch = mismatchInOp(job, op.group, op.seq);
    if (mismatch && mismatch.weight > 0.8) return [mismatchFinding(job, mismatch)];
  }
  const suspects = [...graph.stuckIn.keys()].sort((a, b) => a - b).slice(0, MAX_COMPARED);
  const outOfStep = suspects.length > 0 ? findOutOfStep(job, suspects, false) : null;
  if (outOfStep && outOfStep.ranks.length <= 4) return [mismatchFinding(job, outOfStep)];
  const all = { ranks: suspects, ops: graph.ops.map((_, index) => index) };
  const breaker = suspects.length > 0 ? findOrderBreaker(job, graph, all) : null;
  return breaker && breaker.weight > 0.8 ? [mismatchFinding(job, breaker)] : [];
}

const MAX_COMPARED = 256;

/**
 * A second culprit may hide behind the first: nobody waits for it yet. It has nothing pending, so nothing
 * holds its CPU, and still it issued less than another member of its group.
 */
export function idleAndBehind(
  job: Job,
  graph: WaitGraph,
  found: readonly NewFinding[],
): NewFinding[] {
  const accused = new Set(found.flatMap((f) => f.accuses.flatMap((a) => a.ranks)));
  const hidden = idleStates(job, graph).filter(({ rank }) => !accused.has(rank));
  return hidden.flatMap((state) => {
    for (const [id, own] of state.enqueued) {
      const group = job.groups[id]!;
      if (group.carriesP2p) continue;
      const ahead = group.ranks.find(
        (rank) => (graph.states.get(rank)?.enqueued.get(id) ?? 0) > own,
      );
      if (ahead === undefined) continue;
      const outOfStep = findOutOfStep(job, [state.rank], false);
      if (outOfStep) return [mismatchFinding(job, outOfStep)];
      const last = lastOperator(job, state.rank);
      const reason = `it has nothing pending, but rank ${ahead} has issued more operators of ${group.desc || group.name}`;
      return [
        accusing(job, state.rank, "cpu-stall", 0.85, reason, {
          fact: "stopped-rank",
          side: "cpu",
          ...last,
        }),
      ];
    }
    return [];
  });
}

/** Ranks with nothing pending that have not finished in order. */
function idleStates(job: Job, graph: WaitGraph): RankState[] {
  return [...graph.states.values()].filter(
    ({ rank, heads, hiddenP2p }) =>
      heads.length === 0 && hiddenP2p.length === 0 && !job.logs.get(rank)?.finished,
  );
}

/**
 * A rank with nothing pending in a job that hangs: the ranks that wait for it left no dump, but a rank that
 * waits itself has something pending.
 */
export function idleRanks(job: Job, graph: WaitGraph): NewFinding[] {
  const open = idleStates(job, graph);
  if (open.length === 0 || open.length > graph.stuckIn.size) return [];
  return open.map(({ rank }) => {
    const last = lastOperator(job, rank);
    const reason = `it has nothing pending while ${count(graph.stuckIn.size, "rank")} that left a dump wait`;
    return accusing(job, rank, "cpu-stall", 0.6, reason, {
      fact: "stopped-rank",
      side: "cpu",
      ...last,
    });
  });
}

/** Ranks that left no dump: the only explanation, one of several, or needless beside a certain one. */
export function silentFindings(
  job: Job,
  graph: WaitGraph,
  silent: readonly Rank[],
  certain: boolean,
): NewFinding[] {
  const waits = waitingByStack(job);
  const lost = certain ? [] : silent.filter((rank) => waits.has(rank));
  const choice = chooseSilent(
    job,
    graph,
    silent.filter((rank) => !lost.includes(rank)),
    certain,
  );
  const gone = connectionsClosedFirst(job) === false ? "process-stopped" : "process-gone";
  const living = new Set(
    (job.probes ?? []).filter((probe) => probe.ended === null).map((probe) => probe.rank),
  );
  return [
    ...choice.map(({ rank, weight, why, cause }) =>
      silentFinding(
        rank,
        weight,
        why,
        cause ??
          (hasLiveStack(job, rank)
            ? "cpu-stall"
            : isLaunched(job, rank)
              ? "process-stopped"
              : lacksLog(job, rank)
                ? "process-gone"
                : gone),
        living,
      ),
    ),
    ...(choice.length > 0 ? [] : lostDumps(job, graph, lost)),
  ];
}

/** Whoever let its stack be read is there; only a fatal error prints one as it dies. */
function hasLiveStack({ stacks, failures }: Job, rank: Rank): boolean {
  return stacks.has(rank) && !failures.some((failure) => failure.rank === rank);
}

/**
 * Whether the launcher that started the rank goes on without a word of it: it reports a process that ends. Its log holds
 * the lines of its ranks, which follow on each other.
 */
function isLaunched({ logs, torchrun, failures }: Job, rank: Rank): boolean {
  if (torchrun.length > 0 || failures.some(isEnding)) return false;
  const shared = groupBy(
    [...logs.values()].filter((log) => log.rank !== null && log.dumpLine > 0),
    ({ file }) => file,
  );
  return [...shared.values()].some(
    (of) => of.some((log) => log.rank! < rank) && of.some((log) => log.rank! > rank),
  );
}

function lacksLog({ logs }: Job, rank: Rank): boolean {
  return logs.size > 0 && !logs.has(rank);
}

/** What a look at a process is worth beside a dump of it. */
const LOST_DUMP_WEIGHT = 0.4;

/** Their processes are there and wait: only their dumps are not here, and all may be in the operator. */
function lostDumps(job: Job, graph: WaitGraph, lost: readonly Rank[]): NewFinding[] {
  const isAll = ({ absent }: StuckOp): boolean =>
    absent.length > 0 && absent.every(({ rank }) => lost.includes(rank));
  const all = graph.ops.filter(isAll);
  const machineOf = (rank: Rank): string | null => job.ranks.get(rank)?.machine ?? null;
  const isWithin = ({ arrived, absent }: StuckOp): boolean =>
    new Set([...arrived, ...absent.map(({ rank }) => rank)].map(machineOf)).size === 1;
  // It is in one of them and the others wait behind that: what crosses the network has more to get stuck in.
  const across = all.filter((op) => !isWithin(op));
  return (across.length > 0 ? across : all).map((op) => {
    const absent = op.absent.map(({ rank }) => rank).sort((a, b) => a - b);
    const ranks = [...op.arrived, ...absent].sort((a, b) => a - b);
    const why = `${describeOp(job, op)} does not complete on any of its members; ${rankWords(absent)} left no dump, but ${absent.length === 1 ? "its stack waits" : "their stacks wait"} like the others'`;
    return {
      says: why,
      weight: LOST_DUMP_WEIGHT,
      at: [],
      data: { fact: "stopped-rank", side: "gpu or communication" },
      accuses: [stuckTogether(job, ranks, LOST_DUMP_WEIGHT, why)],
      clears: [],
    };
  });
}

function silentFinding(
  rank: Rank,
  weight: number,
  why: string,
  gone: Cause,
  living: ReadonlySet<Rank | null>,
): NewFinding {
  // Another ring of the process is there: whether it lives, hang/process says.
  const cause = living.has(rank) ? "unknown" : gone;
  return {
    says: why,
    weight,
    at: [],
    data: { fact: "stopped-rank", side: "process" },
    accuses: [{ kind: "hang", type: "rank", ranks: [rank], link: null, cause, weight, why }],
    clears: [],
  };
}

/**
 * Ranks that left no dump. Somebody waits for them, but a rank that only waits may have lost its dump
 * too. A rank that is seen to be late explains the wait without them; a watchdog line in their log
 * shows that they waited themselves; a certain culprit elsewhere explains them all.
 */
function chooseSilent(
  job: Job,
  graph: WaitGraph,
  silent: readonly Rank[],
  certain: boolean,
): SilentSuspect[] {
  // With a certain culprit the absence needs no further explanation.
  if (certain) return [];
  // A rank that is only asked for its dump has no operator of its own that timed out.
  const waitingInLog = new Set(
    job.watchdog.flatMap(({ rank, op }) => (op === "" ? [] : (rank ?? []))),
  );
  const implicated = new Set<Rank>();
  for (const op of graph.ops) {
    if (op.absent.some(({ why }) => why !== "silent")) continue;
    for (const { rank } of op.absent) implicated.add(rank);
  }
  const all = silent.filter((rank) => implicated.has(rank));
  const idle = all.filter((rank) => !waitingInLog.has(rank));
  // One whom all the others wait for, and nobody else: it does not only wait, its operator stands.
  const chosen = idle.length > 0 || all.length > 1 ? idle : all;
  const isEndTold = job.failures.length + job.torchrun.length + (job.probes?.length ?? 0) > 0;
  const together = TOGETHER * probablyGone(job, chosen);
  return chosen.map((rank) => {
    // Where others' logs are here and its own is not, its files may just not have been collected.
    const alone = isEndTold && !lacksLog(job, rank) ? ALONE : NO_END_TOLD;
    const weight = chosen.length === 1 ? alone : Math.min(together, alone);
    const op = graph.ops.find((stuck) => stuck.absent.some((absent) => absent.rank === rank));
    const where = op ? `, and others wait for it in ${describeOp(job, op)}` : "";
    const why = `rank ${rank} left no ${dumpWord(job)}${where}`;
    if (waitingInLog.has(rank)) {
      const alive =
        "its log shows that its process is alive and that an operator timed out there, too";
      return { rank, weight: WAITS_ITSELF, why: `${why}; ${alive}`, cause: "gpu-hang" };
    }
    if ((job.logs.get(rank)?.dumpLine ?? 0) > 0) {
      const alive = "its log shows that its process is alive, and no operator that timed out there";
      return { rank, weight, why: `${why}; ${alive}`, cause: "cpu-stall" };
    }
    return { rank, weight, why };
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
