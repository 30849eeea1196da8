/**
 * What the witnesses of a slow-down together say: the search, own times, floors. The same for dumps that lie in a
 * folder (slow-rank-method.ts) and for operators that are fetched from a running job (live.ts).
 */
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import { median } from "../../maths/robust.ts";
import { WARM_UP, type TimeBreakdown } from "./time-breakdown.ts";
import type { OwnTimeSuspect } from "./own-time.ts";
import { deviceOf } from "./progressive/narrow.ts";
import { areFloorsCalm, comparedWithPeers, type FloorSeries } from "./progressive/observe-all.ts";
import { rankWaits } from "./progressive/rank-waits.ts";
import type { OperatorSource, Split } from "./progressive/source.ts";
import {
  fromNetwork,
  fromOwnTimes,
  fromPeers,
  fromSearch,
  fromUnseen,
  type SlowFinding,
  type Witness,
} from "./slow-findings.ts";
import type { SlowIterations } from "./slow-iterations.ts";
import type { Located } from "./slow-ranks.ts";
import type { Culprit } from "./progressive/progressive.ts";
import { wiringOf } from "./progressive/wiring.ts";

/** Iterations of each kind that are compared. */
const MOST_COMPARED = 48;
/** Share of the slowdown that a rank which waits for the suspect waits. */
const WAITS = 0.3;
/** A network that costs this many times more than ranks do is the culprit: than those that the search ends at, too. */
const PREVAILS = 2;
const PREVAILS_UNCONFIRMED = 1;
const OUTWEIGHED = 0.3;
/** Of a further rank, which nobody is seen to wait for: it comes behind the first. */
const FURTHER = 0.9;
/** Iterations from which a record is believed to show a slow network that no tracker saw. */
const LONG_ENOUGH = 20;

/** Whether a rank stays longer in operators that it shares with culprits. */
export function waiting(
  source: OperatorSource,
  job: Job,
  split: Split,
  mostPlaces: number,
): (rank: Rank, culprits: readonly Rank[]) => boolean {
  const growthMs = median(split.slowMs) - median(split.normalMs);
  return (rank, culprits) =>
    rankWaits(source, rank, split, mostPlaces).waits.some(
      ({ of, isGroup, growthMs: grew }) =>
        grew > WAITS * growthMs && culprits.some((one) => isBetween(job, of, isGroup, one)),
    );
}

/**
 * Whether a rank stays longer in a group's operators than another member of it does, by part of what its own time is said to
 * have grown by: then it waits for that member (Holmes §4.3), and what grew is time that the waiting moved elsewhere. Not so a
 * rank whose late calls the others lose time to (`lost`, by iteration): they wait for it, whatever it waits for itself.
 */
export function waitsInGroup(
  source: OperatorSource,
  job: Job,
  split: Split,
  lost: ReadonlyMap<Rank, Float64Array>,
): (suspect: OwnTimeSuspect) => boolean {
  return ({ rank, beforeMs, afterMs, slow }) => {
    const leastMs = WAITS * (afterMs - beforeMs);
    const isSlow = new Set(slow);
    const lostMs = (wanted: boolean): number =>
      median(
        [...(lost.get(rank) ?? [])].filter((_, i) => i >= WARM_UP && isSlow.has(i) === wanted),
      );
    if (lostMs(true) - lostMs(false) >= leastMs) return false;
    return rankWaits(source, rank, split, Infinity).waits.some(({ of, isGroup, growthMs }) => {
      const members = isGroup ? job.groups[of]!.ranks : [];
      if (growthMs < leastMs || members.length === job.worldSize) return false;
      return members.some((member) => {
        if (member === rank || !source.has(member)) return false;
        const { waits } = rankWaits(source, member, split, Infinity);
        const shared = waits.find((one) => one.isGroup && one.of === of);
        return shared !== undefined && shared.growthMs <= growthMs - leastMs;
      });
    });
  };
}

/** Whether a rank waits longer for what it receives: one that computes slowly finds it already there. */
export function waitsToReceive(
  source: OperatorSource,
  split: Split,
): (suspect: OwnTimeSuspect) => boolean {
  return ({ rank, beforeMs, afterMs }) =>
    rankWaits(source, rank, split, Infinity).waits.some(
      ({ isGroup, growthMs }) => !isGroup && growthMs >= WAITS * (afterMs - beforeMs),
    );
}

/** Whether the operators of a group, or from a peer, are shared with a rank; in a group of all ranks everybody waits. */
function isBetween(job: Job, of: number, isGroup: boolean, rank: Rank): boolean {
  if (!isGroup) return of === rank;
  const { ranks } = job.groups[of]!;
  return ranks.length < job.worldSize && ranks.includes(rank);
}

/** What the witnesses together say, what is believed first; `beside`: further ranks whose own time grew by itself. */
export function weighed(
  located: Located | null,
  slow: SlowIterations | null,
  own: readonly OwnTimeSuspect[],
  floors: readonly FloorSeries[],
  totalMs: readonly number[],
  witness: Witness,
  beside: readonly OwnTimeSuspect[] = [],
): SlowFinding[] {
  const changed = own.filter(({ kind }) => kind !== "always");
  const first: SlowFinding[] =
    located && located.ranks.length > 0
      ? [...fromSearch(located, slow!, own, witness)]
      : [...fromOwnTimes(changed, witness)];
  const accused = ranksOf(first);
  const further = first.length > 0 ? beside.filter(({ rank }) => !accused.has(rank)) : [];
  const compute = [
    ...first,
    ...[...fromOwnTimes(further, witness)].map((one) => times(one, FURTHER)),
  ];
  const network = located?.network ? fromNetwork(located.network, slow!, witness) : null;
  if (network && compute.length > 0) {
    if (isApart(located!.network!, compute)) {
      const moved = keptUp(located!, witness.job, compute);
      const apart = compute.filter((one) => !moved.includes(one));
      return [...blamedTogether([...apart, network]), ...moved.map(outweighed)];
    }
    const cost = (suspect: OwnTimeSuspect): number =>
      costOf(suspect, witness.accounts.get(suspect.rank)!);
    const ranksMs = [...changed.map(cost), ...located!.ranks.map(({ growthMs }) => growthMs)];
    const factor = located!.ranks.length > 0 ? PREVAILS : PREVAILS_UNCONFIRMED;
    return located!.isPlain && located!.network!.growthMs > factor * Math.max(...ranksMs)
      ? [network, ...compute.map(outweighed)]
      : [...blamedTogether(compute), outweighed(network)];
  }
  if (compute.length > 0) return blamedTogether(compute);
  if (network) return isUnsupported(witness) ? [] : [network];
  // Iterations that were picked one by one, or that are over, all wait for some rank: one that is not seen.
  if (located?.unseen && slow!.isLasting && slow!.until === null)
    return [fromUnseen(located.unseen, slow!, witness)];
  if (own.length > 0) return [...fromOwnTimes(own, witness)];
  const peers = slowFromTheStart(floors, witness.job, totalMs);
  return peers && !isUnsupported(witness) ? [fromPeers(peers, witness)] : [];
}

/**
 * Whether a slow network is a fault of its own beside slow ranks. A slow GPU or CPU is slow to communicate, too, so that what
 * it has part in proves nothing; a device that serves others, and that nothing contradicts, has nothing to do with it.
 */
function isApart({ device }: Culprit, compute: readonly SlowFinding[]): boolean {
  if (!device || device.kind === "group" || device.contradicts > 0) return false;
  const accused = ranksOf(compute);
  return !device.ranks.some((rank) => accused.has(rank));
}

/**
 * Of the slow ranks those that the slow network may have kept up: no search came to them, and they communicate in a group with
 * ranks that it serves, so that what grew may be time that the waiting moved elsewhere.
 */
function keptUp(
  { network, ranks }: Located,
  job: Job,
  compute: readonly SlowFinding[],
): SlowFinding[] {
  const served = new Set(network!.device!.ranks);
  const peers = new Set(
    job.groups
      .map((group) => group.ranks)
      .filter((all) => all.length < job.worldSize && all.some((rank) => served.has(rank)))
      .flat(),
  );
  const confirmed = new Set(ranks.map(({ rank }) => rank));
  return compute.filter((one) =>
    [...ranksOf([one])].every((rank) => peers.has(rank) && !confirmed.has(rank)),
  );
}

function ranksOf(findings: readonly SlowFinding[]): Set<Rank> {
  return new Set(findings.flatMap(({ accuses }) => accuses.flatMap(({ ranks }) => ranks)));
}

/** None of several culprits is among those that only wait for another one. */
function blamedTogether(findings: readonly SlowFinding[]): SlowFinding[] {
  const accused = ranksOf(findings);
  return findings.map((one) => ({
    ...one,
    clears: one.clears.filter((rank) => !accused.has(rank)),
  }));
}

/** A short record of a job that nobody saw slow down: a spike or two make communication look slow. */
function isUnsupported({ job, iterations }: Witness): boolean {
  if (iterations === undefined || iterations >= LONG_ENOUGH) return false;
  return !job.iterations.some(({ episodes }) =>
    episodes.some(({ type }) => type === "degradation"),
  );
}

/** Time that a rank itself adds: outside communication, or by calling late, which others see as communication. */
function costOf({ beforeMs, afterMs, slow }: OwnTimeSuspect, { issueMs }: TimeBreakdown): number {
  const isSlow = new Set(slow);
  const calls = (wanted: boolean): number =>
    median([...issueMs].filter((_, i) => i >= WARM_UP && isSlow.has(i) === wanted));
  const later = calls(true) - calls(false);
  return Math.max(afterMs - beforeMs, Number.isNaN(later) ? 0 : later);
}

/** An account against which better evidence stands: kept, so that the verdict can show it. */
function outweighed(finding: SlowFinding): SlowFinding {
  const data = { ...finding.data, disagrees: true } as const;
  return { ...times(finding, OUTWEIGHED), data, clears: [] };
}

function times(finding: SlowFinding, factor: number): SlowFinding {
  const accuses = finding.accuses.map((one) => ({ ...one, weight: factor * one.weight }));
  return { ...finding, weight: factor * finding.weight, accuses };
}

/** null where there are not three iterations of each kind. */
export function splitOf(
  iterations: readonly number[],
  totalMs: readonly number[],
  { isSlow }: SlowIterations,
): Split | null {
  const at = (wanted: boolean): number[] =>
    [...iterations.keys()].filter((i) => isSlow(iterations[i]!) === wanted);
  const normal = at(false).slice(-MOST_COMPARED);
  const slow = at(true).slice(0, MOST_COMPARED);
  if (normal.length < 3 || slow.length < 3) return null;
  return {
    normal: normal.map((i) => iterations[i]!),
    slow: slow.map((i) => iterations[i]!),
    normalMs: normal.map((i) => totalMs[i]!),
    slowMs: slow.map((i) => totalMs[i]!),
  };
}

/** What costs this share of an iteration more than at its peers is worth a word. */
const MATTERS = 0.02;

function slowFromTheStart(
  floors: readonly FloorSeries[],
  job: Job,
  totalMs: readonly number[],
): { device: ReturnType<typeof deviceOf>; ratio: number; growthMs: number } | null {
  if (!areFloorsCalm(floors, median(totalMs))) return null;
  const all = comparedWithPeers(floors, job.groups, wiringOf(job));
  const [worst] = all.filter(({ isSlow }) => isSlow).sort((a, b) => b.growthMs - a.growthMs);
  if (!worst || worst.growthMs < MATTERS * median(totalMs)) return null;
  const device = deviceOf(all, worst.ranks, wiringOf(job));
  return { device, ratio: worst.ratio, growthMs: worst.growthMs };
}
