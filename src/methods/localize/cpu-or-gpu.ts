/**
 * Whether a rank's own time grew on its CPU or on its GPU. A slow GPU leaves the CPU's calls as they were, far
 * ahead of it; a slow CPU spreads them out. What it does in front of its first call (the first batch is fetched there)
 * no span of calls shows: ranks that run the same program call earlier by that much.
 */
import { median } from "../../maths/robust.ts";
import type { Cause } from "../../model/cause.ts";
import type { Rank } from "../../model/ids.ts";
import type { RankOperators } from "../../model/rank-operators.ts";
import { sizeOfCall, type TimeBreakdown } from "./time-breakdown.ts";
import { CLOCK_OFF_MS, farAhead } from "./clocks.ts";
import { lateCalls } from "./late-calls.ts";
import type { OwnTimeSuspect } from "./own-time.ts";

/** The CPU's calls take so much longer, and explain so much of the own time's growth. */
const SPREAD_OUT = 1.4;
const EXPLAINS = 0.5;
/** Of the part between the calls, where the part in front of the first makes up for the rest. */
const EXPLAINS_WITH_LATENESS = 0.2;
/** A data loader holds up a few places of an iteration: the first call of each micro-batch. */
const FEW_PLACES = 0.12;
const MOST_OF_IT = 0.8;
/** Of the way from the first micro-batch to the last: in some schedules all forward passes come first. */
const ALL_OVER = 0.5;
/** The first one of them may be shorter, down to this share of the others: its batch was asked for long before. */
const OF_USUAL = 0.1;
/** What Python does in front of a call besides fetching, no call shows: a whole forward pass, where it makes none. */
const LOADER = 0.65;
/** The part of the others' waiting that late calls must explain, or it is the GPU. */
const EXPLAINED = 0.6;
/** Calls that waited for the rank's own GPU in so much of the others' waiting: the GPU is slow. In so little: it was idle. */
const MOSTLY_BEHIND = 0.5;
const HARDLY_BEHIND = 0.1;
const UNTOLD = 0.45;
/** Part of an iteration, and of what it grew by, that the others lose to late calls of a slow CPU. */
const MUCH = 0.2;
const NEARLY_ALL = 0.65;
/** Iterations that make a before, and that gaps are taken from. */
const FEWEST_BEFORE = 4;
const ENOUGH = 10;
const FEWEST_GAPS = 3;
/** Peers that are looked at. */
const MOST_PEERS = 64;

/** The other ranks, and how far their clocks are ahead. */
interface Peers {
  readonly accounts: ReadonlyMap<Rank, TimeBreakdown>;
  readonly cut: readonly RankOperators[];
  readonly clocks: ReadonlyMap<Rank, number>;
  /** By iteration, what the others lose to a rank's late calls (last-to-call.ts), where it is known. */
  readonly lost?: ReadonlyMap<Rank, Float64Array>;
}

interface Side {
  readonly cause: Cause;
  /** Milliseconds that the CPU's calls of an iteration span. */
  readonly issueMs: readonly [before: number, after: number];
  /** 0..1: how sure the side is. */
  readonly certainty: number;
  /** Whether the files tell a slow CPU from a CPU that waits for a slow GPU. */
  readonly isToldApart: boolean;
}

export function cpuOrGpu(
  suspect: OwnTimeSuspect,
  account: TimeBreakdown,
  operators: RankOperators,
  { accounts, cut, clocks, lost }: Peers,
): Side {
  const slow = new Set(suspect.slow);
  const at = (wanted: boolean): number[] =>
    [...account.iteration.keys()].filter(
      (i) => account.iteration[i]! > 2 && slow.has(i) === wanted,
    );
  const peers = cut
    .filter(({ rank }) => rank !== suspect.rank && accounts.get(rank)?.program === account.program)
    .slice(0, MOST_PEERS);
  const alike = peers.filter((peer) => beginsAlike(operators, peer));
  const lateMs = latenessOf(operators, alike, clocks);
  const of = (values: ArrayLike<number>, wanted: boolean): number =>
    median(at(wanted).map((i) => values[i]!));
  const hasBefore = at(false).length >= FEWEST_BEFORE;
  // A rank that was slow from the start is compared with its peers.
  const before = hasBefore
    ? of(account.issueMs, false)
    : median(peers.map(({ rank }) => median(accounts.get(rank)!.issueMs)));
  // Where CPUs wait for their GPUs all the time, everybody's calls spread out when one is slow: what counts is beyond that.
  const commonMs = hasBefore ? commonGrowth(suspect.rank, account, slow, accounts) : 0;
  const spreadMs = of(account.issueMs, true) - commonMs;
  const growth = suspect.afterMs - suspect.beforeMs;
  // A clock that was corrected is known less well than most ranks are late: what other ranks' clocks say is unknown then.
  const isTimed = (one: Rank): boolean =>
    growth >= CLOCK_OFF_MS || farAhead(clocks.get(one) ?? 0) === 0;
  // Without a before, habits do not cancel out: only who runs the same program is late in the same way.
  const others = (hasBefore ? cut : peers).filter((peer) => isTimed(peer.rank));
  const isBlind = !isTimed(suspect.rank) || others.length === 0;
  const later = isBlind
    ? 0
    : Math.max(0, of(lateMs, true) - (hasBefore ? of(lateMs, false) : 0) || 0);
  const calls = isBlind
    ? null
    : lateCalls(operators, others, at(true), hasBefore ? at(false) : [], growth, clocks);
  // A CPU that waits for its own GPU at the end of an iteration is late in the next: calls must be spread out as well.
  const isSpread =
    spreadMs > SPREAD_OUT * before && spreadMs - before > EXPLAINS_WITH_LATENESS * growth;
  const lostMs = lost?.get(suspect.rank);
  const lostNow = lostMs ? of(lostMs, true) - (hasBefore ? of(lostMs, false) : 0) : 0;
  // All that iterations grew by is lost to its late calls: whatever its GPU does, that is its CPU.
  const isLateCaller =
    !isBlind &&
    lostNow > 0 &&
    lostNow >= MUCH * of(account.totalMs, true) &&
    (!hasBefore ||
      lostNow >= NEARLY_ALL * (of(account.totalMs, true) - of(account.totalMs, false))) &&
    // In pipelines whose CPUs wait for what they receive many call late, whichever rank is slow.
    lostToOthers(suspect, account, accounts, lost!) <= EXPLAINS * lostNow;
  const isLateAtFirst = isLateCaller || (calls !== null && calls.firstMs >= EXPLAINS * growth);
  const firstMs = isLateCaller ? lostNow : (calls?.firstMs ?? 0);
  const lateMs0 = isLateAtFirst ? firstMs : isSpread ? later : 0;
  const after = spreadMs + lateMs0;
  const issueMs = [before, after] as const;
  const isSpan = isSpread && after - before > EXPLAINS * growth;
  const isNotLate = calls !== null && calls.explained < EXPLAINED && !isLateCaller;
  const behind = calls?.behind ?? null;
  if (calls !== null && ((behind !== null && behind >= MOSTLY_BEHIND) || isNotLate)) {
    // Neither late nor behind: it differs from what was usual, and nothing shows by what.
    const isToldApart = calls.queued >= HARDLY_BEHIND;
    // Without a before, differences of clocks and of habit do not cancel out; a handful of iterations may all be odd.
    const told = Math.min(at(false).length, at(true).length) >= ENOUGH ? 0.95 : 0.75;
    return { cause: "gpu-slow", issueMs, certainty: isToldApart ? told : UNTOLD, isToldApart };
  }
  if (calls === null && !isSpan && !isLateCaller) {
    // It begins late: because its CPU waited for its GPU before, or for its data now.
    const isToldApart = !isBlind && !(later >= EXPLAINS * growth);
    return { cause: "gpu-slow", issueMs, certainty: isToldApart ? 0.9 : UNTOLD, isToldApart };
  }
  // Calls that are late, though neither at first nor more and more: a CPU that waits for its GPU has them. It runs ahead a
  // little, so that some of its calls wait; a slow CPU's do not.
  if (!isSpan && !isLateAtFirst) {
    const isIdle = calls !== null && calls.queued < HARDLY_BEHIND;
    const cause = isIdle ? "cpu-stall" : "gpu-slow";
    return { cause, issueMs, certainty: UNTOLD, isToldApart: false };
  }
  const slowGaps = gapsOf(operators, at(true));
  const usualGaps = hasBefore
    ? gapsOf(operators, at(false))
    : gapsOf(alike[0], [...(alike[0]?.from.keys() ?? [])]);
  const isFirstKnown = alike.length > 0 || calls !== null || isLateAtFirst;
  const firstLateMs = alike.length > 0 ? later : (calls?.firstMs ?? lateMs0);
  const places = placesOfDelay(
    usualGaps,
    slowGaps,
    isFirstKnown ? firstLateMs : null,
    EXPLAINS * growth,
  );
  // A few places: a loader, or something else that Python does there.
  const isAtFew = places !== null && places.share <= FEW_PLACES;
  const isLoader = isAtFew && (places.count === 1 || places.hasFirst || places.isAllOver);
  const cause = isLoader ? "dataloader" : "cpu-stall";
  const certainty = isBlind ? UNTOLD : isAtFew ? LOADER : 0.9;
  return { cause, issueMs, certainty, isToldApart: !isBlind };
}

/** What is lost to the late calls of another rank, the largest, in the slow iterations. */
function lostToOthers(
  { rank, slow }: OwnTimeSuspect,
  { iteration }: TimeBreakdown,
  accounts: ReadonlyMap<Rank, TimeBreakdown>,
  lost: ReadonlyMap<Rank, Float64Array>,
): number {
  const numbers = new Set(slow.map((i) => iteration[i]!));
  let most = 0;
  for (const [other, ms] of lost) {
    if (other === rank) continue;
    const own = accounts.get(other)!.iteration;
    most = Math.max(most, median([...ms].filter((_, i) => numbers.has(own[i]!))) || 0);
  }
  return most;
}

/** How much longer the other ranks' calls of an iteration span in these iterations, usually; never less than nothing. */
function commonGrowth(
  rank: Rank,
  { iteration }: TimeBreakdown,
  slow: ReadonlySet<number>,
  accounts: ReadonlyMap<Rank, TimeBreakdown>,
): number {
  const numbers = new Set([...slow].map((i) => iteration[i]!));
  const growth = [...accounts]
    .filter(([other]) => other !== rank)
    .slice(0, MOST_PEERS)
    .map(([, other]) => {
      const at = (wanted: boolean): number[] =>
        [...other.issueMs].filter(
          (_, i) => other.iteration[i]! > 2 && numbers.has(other.iteration[i]!) === wanted,
        );
      return median(at(true)) - median(at(false));
    });
  return Math.max(0, median(growth.filter((ms) => !Number.isNaN(ms))) || 0);
}

/** Whether the iterations of both begin with the same call: a period may be cut anywhere. */
function beginsAlike(own: RankOperators, peer: RankOperators): boolean {
  const [a, b] = [own.from.at(-1)!, peer.from.at(-1)!];
  const length = own.to.at(-1)! - a;
  if (peer.to.at(-1)! - b !== length) return false;
  for (let k = 0; k < length; k++)
    if (
      own.ops.isP2p[a + k] !== peer.ops.isP2p[b + k] ||
      own.ops.isSend[a + k] !== peer.ops.isSend[b + k] ||
      sizeOfCall(own.ops, a + k) !== sizeOfCall(peer.ops, b + k)
    )
      return false;
  return true;
}

/**
 * By iteration, how much later than its peers' median a rank makes its first call; NaN where no peer is known. Their
 * iterations begin together, because they share collectives of all.
 */
function latenessOf(
  { rank, iteration, startMs }: RankOperators,
  peers: readonly RankOperators[],
  clocks: ReadonlyMap<Rank, number>,
): Float64Array {
  const starts = peers.map((peer) => {
    const ahead = clocks.get(peer.rank) ?? 0;
    return new Map(Array.from(peer.iteration, (n, i) => [n, peer.startMs[i]! - ahead]));
  });
  const ahead = clocks.get(rank) ?? 0;
  return Float64Array.from(iteration, (n, i) => {
    const known = starts.flatMap((one) => one.get(n) ?? []);
    return startMs[i]! - ahead - median(known);
  });
}

/**
 * Milliseconds in front of each call of an iteration, usually; null where iterations differ or are too few. Of older ones
 * the operators may be overwritten.
 */
function gapsOf(
  operators: RankOperators | undefined,
  iterations: readonly number[],
): number[] | null {
  const last = iterations.at(-1);
  if (!operators || last === undefined) return null;
  const { ops, from, to } = operators;
  const length = to[last]! - from[last]!;
  const same = iterations.filter((i) => from[i]! + length === to[i]);
  if (length === 0 || same.length < FEWEST_GAPS) return null;
  return Array.from({ length }, (_, k) =>
    median(
      same.map((i) => {
        const op = from[i]! + k;
        return op > 0 ? (ops.createdNs[op]! - ops.createdNs[op - 1]!) / 1e6 : 0;
      }),
    ),
  );
}

interface Places {
  readonly count: number;
  /** Of all places of an iteration. */
  readonly share: number;
  /** Whether the one in front of the first call is one of them: no micro-batch begins without its data. */
  readonly hasFirst: boolean;
  /** Whether they are spread over the iteration as its micro-batches are; what one forward pass does lies close together. */
  readonly isAllOver: boolean;
}

/**
 * The places in an iteration at which most of the CPU's delay arises; null where they are unknown, or where no place
 * usually has it: pauses of a garbage collector come somewhere else each time. The gap in front of the first call holds
 * the end of the iteration before as well, so that the peers show whether it is late; where there are none, it must do.
 */
function placesOfDelay(
  usual: readonly number[] | null,
  now: readonly number[] | null,
  laterMs: number | null,
  leastMs: number,
): Places | null {
  if (!usual || !now || usual.length !== now.length) return null;
  const delays = now
    .map((gap, k) => ({
      k,
      ms: Math.max(0, k === 0 && laterMs !== null ? laterMs : gap - usual[k]!),
    }))
    .sort((a, b) => b.ms - a.ms);
  const total = delays.reduce((sum, { ms }) => sum + ms, 0);
  if (!(total > 0 && total >= leastMs)) return null;
  let count = 0;
  for (let sum = 0; sum < MOST_OF_IT * total; count++) sum += delays[count]!.ms;
  // Its batch was fetched in part while gradients were exchanged.
  const usualMs = delays[count >> 1]!.ms;
  const hasFirst = delays.some(({ k, ms }) => k === 0 && ms >= OF_USUAL * usualMs);
  const at = delays.slice(0, count).map(({ k }) => k);
  const span = (Math.max(...at) - Math.min(...at)) / now.length;
  const isAllOver = span >= (ALL_OVER * (count - 1)) / count;
  return { count, share: count / now.length, hasFirst, isAllOver };
}
