/** A walk as a story: hops with bars, and what the last one does instead of coming. */
import { capital } from "../../base/text.ts";
import { factOf } from "../../model/facts.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { Story, StoryBar, StoryHop } from "../../model/picture.ts";
import type { Suspect, Verdict } from "../../model/verdict.ts";
import { isOwnGroup, MOST_BARS, type FetchedRanks } from "./fetched-ranks.ts";
import { ownExcess, ownIn, usualOwn, type OwnTime } from "./own-times.ts";
import {
  hopSays,
  hopTitle,
  machineName,
  msWords,
  networkEnds,
  ownEnds,
  who,
} from "./story-words.ts";
import { MOST_HOPS, type Walk } from "./walk.ts";

/** `suspect`: whom the walk ends at. */
export async function storyOf(
  job: Job,
  verdict: Verdict,
  suspect: Suspect,
  known: FetchedRanks,
  healthy: readonly number[],
  { iteration, hops, end }: Walk,
): Promise<Story> {
  const hasBefore = healthy.length > 0;
  const shown = hops.map((hop): StoryHop => ({
    kind: hop.kind,
    title: hopTitle(job, hop),
    says: hopSays(job, hop, hasBefore),
    from: hop.from.rank,
    to: hop.to,
    bars: hop.took.map(({ rank, ms }) =>
      barOf(job, rank, ms, null, rank === hop.to && hop.to !== hop.from.rank),
    ),
    leftOut: hop.leftOut,
  }));
  if (end.by === "network")
    return { iteration, hops: shown, ends: networkEnds(suspect, end.floorMs) };
  const { rank } = end;
  const isTransfer = hops.at(-1)!.kind === "transfer";
  const peers = isTransfer ? groupOf(job, rank, end.peers) : end.peers;
  await known.fetch(peers);
  const own = known.own();
  // Where operators run beside kernels own times may come out below zero.
  const ms = atLeast0(ownIn(own.get(rank), iteration));
  const excess = hasBefore
    ? ms - atLeast0(usualOwn(own.get(rank), healthy))
    : ownExcess(own, rank, iteration, healthy);
  const ends = ownEnds(job, rank, ms, excess, hasBefore, suspect, issuing(verdict, suspect));
  const last = ownHop(job, rank, peers, iteration, own, healthy);
  return { iteration, hops: [...shown.slice(0, MOST_HOPS - 1), last], ends };
}

/** Behind a transfer stand two ranks of different stages: peers are those that share the most with the rank. */
function groupOf(job: Job, rank: Rank, pair: readonly Rank[]): readonly Rank[] {
  const groups = job.groups.filter(
    ({ ranks, carriesP2p }) =>
      !carriesP2p && ranks.length > 1 && isOwnGroup(job, ranks) && ranks.includes(rank),
  );
  const [best] = groups.toSorted((a, b) => b.ranks.length - a.ranks.length);
  if (!best) return pair;
  const around = Math.max(0, best.ranks.indexOf(rank) - MOST_BARS / 2);
  return best.ranks.slice(around, around + MOST_BARS);
}

/** How long its CPU takes to issue an iteration's operators, before and now, where the evidence says. */
export function issuing(
  { findings }: Verdict,
  { evidence }: Suspect,
): readonly [number, number] | null {
  for (const finding of findings) {
    const issued = evidence.includes(finding.id) ? factOf(finding, "slow-rank")?.issueMs : null;
    const [before = NaN, now = NaN] = issued ?? [];
    if (before >= 0 && now >= 0) return [before, now];
  }
  return null;
}

function ownHop(
  job: Job,
  rank: Rank,
  peers: readonly Rank[],
  iteration: number,
  own: ReadonlyMap<Rank, OwnTime>,
  healthy: readonly number[],
): StoryHop {
  const bars = peers.flatMap((peer) => {
    const ms = ownIn(own.get(peer), iteration);
    if (Number.isNaN(ms)) return [];
    const before = usualOwn(own.get(peer), healthy);
    return [barOf(job, peer, ms, Number.isNaN(before) ? null : before, peer === rank)];
  });
  const mine = bars.find((bar) => bar.rank === rank);
  const others = bars.filter((bar) => bar.rank !== rank);
  const longest = others.reduce((most, { ms }) => Math.max(most, ms ?? 0), 0);
  const before = mine?.beforeMs ?? null;
  const was = before === null ? "" : `, and did ${msWords(before)} before`;
  const beside =
    others.length === 0
      ? ""
      : ` The ${others.length === 1 ? "other needs" : "others need"} ${msWords(longest)}${others.length === 1 ? "" : " at most"}.`;
  return {
    kind: "own",
    title: "time outside communication",
    says: `${capital(who(job, rank))} spends ${msWords(mine?.ms ?? 0)} outside communication${was}.${beside}`,
    from: rank,
    to: rank,
    bars,
    leftOut: peers.length - bars.length,
  };
}

function barOf(
  job: Job,
  rank: Rank,
  ms: number,
  beforeMs: number | null,
  isLate: boolean,
): StoryBar {
  return {
    rank,
    machine: machineName(job, rank),
    ms: atLeast0(ms),
    beforeMs: beforeMs === null ? null : atLeast0(beforeMs),
    role: isLate ? "late" : "waits",
  };
}

function atLeast0(ms: number): number {
  return Math.max(0, ms);
}
