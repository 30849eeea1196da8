/** Cuts a rank's operators into iterations when somebody asks for that rank. */
import { getOrInsert } from "../../base/group-by.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { RankOperators, RankOperatorSource } from "../../model/rank-operators.ts";
import { callSequence } from "./call-classes.ts";
import { findEndings } from "./call-segments.ts";
import { GroupFinder } from "./group-finder.ts";
import { numberedEndings, type CallSource } from "./operator-series.ts";

interface RankSource extends CallSource {
  readonly groupIds: Int32Array;
  readonly hasSequence: boolean;
}

/** A log of operators is read instead of dumps where it reaches back further by so much: a ring forgets. */
const LONGER = 1.5;

export function rankOperatorSource(job: Job): RankOperatorSource {
  const sources = isLogLonger(job)
    ? new Map([...fromDumps(job), ...fromLogs(job)])
    : new Map([...fromLogs(job), ...fromDumps(job)]);
  const known = new Map<Rank, RankOperators | null>();
  return {
    ranks: [...sources.keys()].sort((a, b) => a - b),
    fetch(rank) {
      const source = sources.get(rank);
      return getOrInsert(known, rank, () => (source ? cutRank(rank, source) : null));
    },
  };
}

function isLogLonger({ dumps, operators }: Job): boolean {
  const logged = new Map(
    operators.flatMap(({ rank, ops }) => (rank === null ? [] : [[rank, ops]])),
  );
  return (
    dumps.size > 0 &&
    [...dumps.values()].every(
      ({ rank, dump }) => (logged.get(rank)?.count ?? 0) > LONGER * dump.ops.count,
    )
  );
}

function fromLogs(job: Job): [Rank, RankSource][] {
  const finder = new GroupFinder(job.groups);
  return job.operators.flatMap(({ file, rank, ops, epochNs, groups, hasSequence }) => {
    if (rank === null) return [];
    const groupIds = Int32Array.from(groups, (group) => finder.idOf(group, rank));
    return [[rank, { file, rank, ops, epochNs, groupIds, hasSequence }]];
  });
}

function fromDumps(job: Job): [Rank, RankSource][] {
  return [...job.dumps.values()].map(({ rank, dump: { file, ops, epochNs }, groupIds }) => [
    rank,
    { file, rank, ops, epochNs, groupIds, hasSequence: true },
  ]);
}

function cutRank(rank: Rank, source: RankSource): RankOperators | null {
  for (const withSizes of [true, false]) {
    const calls = callSequence(source.ops, withSizes);
    const endings = findEndings(calls);
    if (!endings || endings.endings.length < 2) continue;
    const numbered = numberedEndings(source.ops, calls, endings);
    const count = numbered.length - 1;
    const iteration = new Float64Array(count);
    const from = new Int32Array(count);
    const to = new Int32Array(count);
    const durationMs = new Float64Array(count);
    const startMs = new Float64Array(count);
    const epochMs = Number(source.epochNs / 1_000_000n);
    for (let i = 0; i < count; i++) {
      const begin = numbered[i]!.call + 1;
      const end = numbered[i + 1]!.call + 1;
      iteration[i] = numbered[i + 1]!.number;
      from[i] = calls.ops[begin]!;
      to[i] = calls.ops[end]!;
      startMs[i] = epochMs + calls.timesNs[begin]! / 1e6;
      durationMs[i] = (calls.timesNs[end]! - calls.timesNs[begin]!) / 1e6;
    }
    const { file, ops, epochNs, groupIds, hasSequence } = source;
    const found = { iteration, from, to, durationMs, startMs };
    return { rank, file, ops, epochNs, groupIds, hasSequence, ...found };
  }
  return null;
}
