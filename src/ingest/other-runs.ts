/**
 * Dumps of another run in the same folder: a job was started again, and some ranks left nothing the second time. Ranks of a
 * job record the same part of their program at the same time; where records lie minutes apart, one is of another run, or a
 * clock is off. A clock is off by the same amount all the time, two runs of one program are not.
 */
import { getOrInsert } from "../base/group-by.ts";
import type { Rank } from "../model/ids.ts";
import type { FlightDump } from "../model/operators.ts";

/** Clocks of a cluster are kept together; more than this is rarely a clock. */
const APART_MS = 60_000;
/** Members of a group call up to an iteration apart. */
const SAME_CLOCK_MS = 250;
/** Two runs of one program that last no longer than this look like one. */
const LONG_ENOUGH_MS = 5_000;
/** Calls that two dumps are compared by. */
const ENOUGH = 64;
const FEWEST = 5;

/** Ranks whose dumps are of another run than most; of two that left as many the newer counts as the run. */
export function dumpsOfOtherRuns(dumps: ReadonlyMap<Rank, FlightDump>): Rank[] {
  const runs: { first: Recorded; ranks: Rank[]; lastMs: number }[] = [];
  for (const [rank, dump] of dumps) {
    const own = recordedIn(dump);
    if (!own) continue;
    const run = runs.find(({ first }) => areOneRun(own, first));
    if (!run) runs.push({ first: own, ranks: [rank], lastMs: own.lastMs });
    run?.ranks.push(rank);
    if (run) run.lastMs = Math.max(run.lastMs, own.lastMs);
  }
  runs.sort((a, b) => b.ranks.length - a.ranks.length || b.lastMs - a.lastMs);
  return runs
    .slice(1)
    .flatMap(({ ranks }) => ranks)
    .sort((a, b) => a - b);
}

interface Recorded {
  /** Milliseconds since 1970. */
  readonly firstMs: number;
  readonly lastMs: number;
  /** What the process counted its operators by. */
  readonly firstId: number;
  readonly lastId: number;
  /** Group → sequence number of some of its collectives → when it was called. */
  readonly calls: ReadonlyMap<string, ReadonlyMap<number, number>>;
}

function recordedIn({ ops, groups, epochNs }: FlightDump): Recorded | null {
  const epochMs = Number(epochNs / 1_000_000n);
  // A power of two, so that what a long record keeps of a group is part of what a short one keeps.
  const every = 2 ** Math.ceil(Math.log2(Math.max(1, ops.count / ENOUGH)));
  const calls = new Map<string, Map<number, number>>();
  let [firstMs, lastMs, firstId, lastId] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let op = 0; op < ops.count; op++) {
    const calledMs = epochMs + ops.createdNs[op]! / 1e6;
    if (Number.isNaN(calledMs)) continue;
    firstMs = Math.min(firstMs, calledMs);
    lastMs = Math.max(lastMs, calledMs);
    firstId = Math.min(firstId, ops.recordId[op]!);
    lastId = Math.max(lastId, ops.recordId[op]!);
    const group = groups[ops.group[op]!];
    if (!group || ops.isP2p[op] === 1 || ops.seq[op]! % every !== 0) continue;
    const key = `${group.name} ${group.ranks?.[0]} ${group.ranks?.length}`;
    getOrInsert(calls, key, () => new Map()).set(ops.seq[op]!, calledMs);
  }
  return lastMs > -Infinity ? { firstMs, lastMs, firstId, lastId, calls } : null;
}

function areOneRun(own: Recorded, theirs: Recorded): boolean {
  const betweenMs = Math.max(own.firstMs, theirs.firstMs) - Math.min(own.lastMs, theirs.lastMs);
  if (betweenMs < APART_MS) return true;
  // One that was asked later shows what came later.
  const isSamePart = own.firstId <= theirs.lastId && theirs.firstId <= own.lastId;
  return isSamePart ? isClockOff(own, theirs) : true;
}

function isClockOff(own: Recorded, theirs: Recorded): boolean {
  const shared: number[] = [];
  const ahead: number[] = [];
  for (const [group, list] of own.calls)
    for (const [seq, ms] of list) {
      const other = theirs.calls.get(group)?.get(seq);
      if (other === undefined) continue;
      shared.push(ms);
      ahead.push(other - ms);
    }
  if (shared.length < FEWEST) return false;
  ahead.sort((a, b) => a - b);
  const tenth = Math.floor(ahead.length / 10);
  const rangeMs = ahead[ahead.length - 1 - tenth]! - ahead[tenth]!;
  return rangeMs <= SAME_CLOCK_MS && Math.max(...shared) - Math.min(...shared) >= LONG_ENOUGH_MS;
}
