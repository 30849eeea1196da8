/**
 * Whom the others wait for. All ranks of a synchronous job share their iterations, and a collective ends for all members at
 * once, so that a rank that spends less time inside communication than the median rank is waited for by that much: its *lead*,
 * an iteration at a time. What all have in common (a noisy network, a pause, a machine that others use, too) is in
 * everybody's time and cancels out, and so does what overlaps with kernels alike: leads are quiet to a percent where
 * iteration times vary by a third. It is the simplest question that can be asked of a dump; a rank that is accused otherwise
 * has to pass it (`isWaitedFor`).
 */
import { largest } from "../../base/numbers.ts";
import { median, spread } from "../../maths/robust.ts";
import type { Rank } from "../../model/ids.ts";
import type { RankOperators } from "../../model/rank-operators.ts";
import { WARM_UP, type TimeBreakdown } from "./time-breakdown.ts";
import type { OwnTimeSuspect } from "./own-time.ts";
import { lostToLateCalls } from "./last-to-call.ts";
import { lastingRise, worstShift, type Shift } from "./shift.ts";

/** A lead matters from this share of an iteration, and from so many deviations of what chance makes of it. */
const MATTERS = 0.04;
const STANDS_OUT = 6;
/** Fewer where it is this share of an iteration: chance rarely makes that of ranks that run one program. */
const FAR = 0.12;
const STANDS_OUT_FAR = 4;
/** Less is enough where it is this rank in nearly all of so many iterations. */
const STANDS_OUT_STEADILY = 3;
const STEADY = 0.85;
const STEADY_FROM = 8;
/** Whose lead is the largest less often than this is not whom the others wait for. */
const MOSTLY = 0.6;
/** Without a before there is more that a healthy rank may differ in: rank 0 logs, the last stage has the loss. */
const MATTERS_ALWAYS = 0.06;
/** Own changes of a rank whose lead grew by less are no reason to accuse it. */
const LEAST = 0.02;
const LEAST_SIGMAS = 3;
/** Unless its CPU takes so much of an iteration longer for its calls. */
const CALLS_SPREAD = 0.15;
/** No lead is known better than this share of an iteration. */
const FLOOR = 0.003;
/**
 * Where a rank is waited for by so much of an iteration more than its peers, ranks are not even, whoever is to blame. Of
 * recorded healthy jobs one comes to more.
 */
const UNEVEN = 0.15;
/** A rank that leads by less than this part of the largest lead works beside a slow rank. */
const OF_LARGEST = 0.5;
/** What leads of other ranks do at any time, as a part of what is no chance. */
const BY_CHANCE = 0.6;
/** Iterations by which changes that belong together are found apart. */
const NEARLY = 3;
/** Part of its lead's growth by which iterations must have grown: a rank that uses up its slack slows nobody down. */
const COSTS = 0.15;
/** More ranks than this together are no matter of a rank. */
const TOO_MANY = 0.25;
/** Iterations that a comparison needs, in front of a change and behind it. */
const FEWEST = 4;
const FEWEST_SLOW = 7;
/** Share of the iterations since the change in which the lead is at least half of what it is taken to be. */
const HOLDS = 0.7;
/** Share of the iterations in which a rank is said to be slow that others have on record, too. */
const SEEN = 0.5;
/** Ranks that must have an iteration on record, as a part of the most that any has. */
const WIDELY = 0.75;
const LEVELS = { minRatio: 1.03, driftRatio: 1.08 };

interface Leads {
  /** Ranks that are waited for, the largest lead first. */
  readonly suspects: readonly OwnTimeSuspect[];
  /** By iteration, what the others lose to a rank's late calls. */
  readonly lost: ReadonlyMap<Rank, Float64Array>;
  /** Whether all ranks of a program spend about the same time in communication. */
  readonly isEven: boolean;
  /** Iterations, warm-up left out, that all of this rests on. */
  readonly iterations: number;
  /** Whether the others wait for a rank in some of its iterations (indices) more than in the rest. */
  isWaitedFor(rank: Rank, slow: readonly number[]): boolean;
}

interface Lead {
  readonly rank: Rank;
  readonly account: TimeBreakdown;
  /** By iteration, milliseconds; NaN while it warms up, and where too few ranks are on record. */
  readonly ms: Float64Array;
}

export function leadsOf(
  ranks: readonly RankOperators[],
  accounts: ReadonlyMap<Rank, TimeBreakdown>,
  clocks: ReadonlyMap<Rank, number> = new Map(),
): Leads {
  const cut = ranks.filter(({ rank }) => accounts.has(rank));
  const isCompared = widelyRecorded(cut);
  const leads = leadsOfRanks(cut, accounts, isCompared);
  const iterationMs = median(leads.map(({ account }) => median(account.totalMs)));
  const lost = lostToLateCalls(cut, clocks);
  const late = lateCaller(cut, accounts, lost, iterationMs, isCompared);
  return {
    suspects: late.length > 0 ? late : suspectsAmong(leads, iterationMs),
    lost: new Map(cut.map(({ rank }, k) => [rank, lost[k]!])),
    isEven: leadsOverPeers(leads).aheadMs.every((ms) => !(ms > UNEVEN * iterationMs)),
    iterations: median(leads.map(({ ms }) => ms.filter((one) => !Number.isNaN(one)).length)),
    isWaitedFor(rank, slow) {
      const lead = leads.find((one) => one.rank === rank);
      if (!lead) return true;
      if (comparedIn(lead.ms, slow) < SEEN * slow.length) return false;
      const { growthMs, errorMs } = growthIn(lead.ms, new Set(slow));
      // Without iterations of both kinds nothing can be said against it.
      if (Number.isNaN(growthMs)) return true;
      if (growthMs >= LEAST * iterationMs && growthMs >= LEAST_SIGMAS * errorMs) return true;
      return callsSpread(lead, leads, new Set(slow), iterationMs);
    },
  };
}

function suspectsAmong(leads: readonly Lead[], iterationMs: number): readonly OwnTimeSuspect[] {
  const shifts = leads.map(
    ({ account, ms }) =>
      [shiftOf(account, ms, iterationMs, 1), shiftOf(account, ms, iterationMs, -1)] as const,
  );
  const candidates = leads.flatMap(
    (lead, k) => grownSince(lead, shifts[k]![0], leads, iterationMs) ?? [],
  );
  const most = mostWaitedFor(farthestAhead(candidates), leads, iterationMs);
  const grown = beyondChance(most, leads, shifts);
  const found = grown.length > 0 ? grown : farthestAhead(alwaysAhead(leads, iterationMs));
  const fewest = Math.max(1, Math.floor(TOO_MANY * leads.length));
  return leads.length > 1 && found.length <= fewest ? found : [];
}

/**
 * The rank whose late calls the others lose most to, if it is one alone: beside it, who waits for it may call late as well. It
 * tells where sums over operators do not: pipelines, and groups that communicate at the same time.
 */
function lateCaller(
  ranks: readonly RankOperators[],
  accounts: ReadonlyMap<Rank, TimeBreakdown>,
  lost: readonly Float64Array[],
  iterationMs: number,
  isCompared: (iteration: number) => boolean,
): readonly OwnTimeSuspect[] {
  const leads = ranks.map(({ rank, iteration }, k) => ({
    rank,
    account: accounts.get(rank)!,
    ms: lost[k]!.map((ms, i) => (isCompared(iteration[i]!) ? ms : NaN)),
  }));
  const found = suspectsAmong(leads, iterationMs);
  const [first] = found;
  if (found.length !== 1 || first!.afterMs - first!.beforeMs < FAR * iterationMs) return [];
  const slow = new Set(first!.slow);
  const level = ({ ms }: Lead): number =>
    median([...ms].filter((one, i) => !Number.isNaN(one) && slow.has(i)));
  const most = level(leads.find(({ rank }) => rank === first!.rank)!);
  const isAlone = leads.every((one) => one.rank === first!.rank || level(one) <= OF_LARGEST * most);
  return isAlone ? found : [];
}

/**
 * Rings hold as many operators on each rank, and so more iterations of ranks that call less: the ends of a pipeline. Where only
 * those are on record, what is usual is what is usual for them, and all of them would seem to change when the others begin.
 */
function widelyRecorded(ranks: readonly RankOperators[]): (iteration: number) => boolean {
  const counts = new Map<number, number>();
  for (const { iteration } of ranks)
    for (const number of iteration) counts.set(number, (counts.get(number) ?? 0) + 1);
  const least = WIDELY * largest(counts.values(), 0);
  return (number) => number > WARM_UP && (counts.get(number) ?? 0) >= least;
}

function leadsOfRanks(
  ranks: readonly RankOperators[],
  accounts: ReadonlyMap<Rank, TimeBreakdown>,
  isCompared: (iteration: number) => boolean,
): Lead[] {
  const inside = ranks.map(insideMs);
  const usual = usualMs(ranks, inside);
  // Operators on several streams at once add up to more than the iteration: a lead is counted as often.
  const iterationMs = median(ranks.map(({ durationMs }) => median(durationMs)));
  const scale = Math.min(1, iterationMs / median([...usual.values()]));
  return ranks.map(({ rank, iteration }, k) => ({
    rank,
    account: accounts.get(rank)!,
    ms: inside[k]!.map((ms, i) =>
      isCompared(iteration[i]!) ? scale * (usual.get(iteration[i]!)! - ms) : NaN,
    ),
  }));
}

/** By the iteration's number, what the median rank has. */
function usualMs(
  ranks: readonly RankOperators[],
  times: readonly Float64Array[],
): Map<number, number> {
  const byNumber = new Map<number, number[]>();
  for (const [k, { iteration }] of ranks.entries())
    for (const [i, number] of iteration.entries()) {
      const list = byNumber.get(number);
      if (list) list.push(times[k]![i]!);
      else byNumber.set(number, [times[k]![i]!]);
    }
  return new Map([...byNumber].map(([number, list]) => [number, median(list)]));
}

function insideMs({ ops, from, to }: RankOperators): Float64Array {
  return Float64Array.from(from, (first, i) => {
    let sum = 0;
    for (let op = first; op < to[i]!; op++) {
      const ms = ops.durationMs[op]!;
      if (ms >= 0) sum += ms;
    }
    return sum;
  });
}

/** A CPU that takes much longer for its calls, and whose GPU still keeps up: nobody waits yet, but it is slow. */
function callsSpread(
  lead: Lead,
  leads: readonly Lead[],
  slow: ReadonlySet<number>,
  iterationMs: number,
): boolean {
  const growth = ({ account: { iteration, issueMs } }: Lead): number => {
    const of = (wanted: boolean): number[] =>
      [...issueMs].filter((_, i) => iteration[i]! > WARM_UP && slow.has(i) === wanted);
    return median(of(true)) - median(of(false));
  };
  const others = leads.filter((one) => one !== lead).map(growth);
  const more = growth(lead) - median(others);
  return more >= CALLS_SPREAD * iterationMs && more >= STANDS_OUT * spread(others);
}

/**
 * In how many of these iterations a rank could be compared. Of dumps that were taken at different times some go on alone: nobody
 * is seen to wait for what a rank does then.
 */
function comparedIn(ms: Float64Array, iterations: Iterable<number>): number {
  return [...iterations].filter((i) => !Number.isNaN(ms[i]!)).length;
}

interface Growth {
  readonly growthMs: number;
  /** How far chance may be off. */
  readonly errorMs: number;
}

/** How much longer something took in some iterations than in the others. */
function growthIn(ms: Float64Array, slow: ReadonlySet<number>): Growth {
  const of = (wanted: boolean): number[] =>
    [...ms].filter((one, i) => !Number.isNaN(one) && slow.has(i) === wanted);
  const [before, after] = [of(false), of(true)];
  if (before.length < FEWEST || after.length < FEWEST) return { growthMs: NaN, errorMs: NaN };
  return {
    growthMs: median(after) - median(before),
    errorMs: Math.hypot(errorOfMedian(before), errorOfMedian(after)),
  };
}

/** Standard error of a median of independent values. */
function errorOfMedian(values: readonly number[]): number {
  return (1.25 * spread(values)) / Math.sqrt(values.length);
}

/**
 * Those whose lead grew more than that of anybody else in most iterations. Where leads are noisy and one rank's is not, this
 * tells more than sizes do: healthy ranks take turns.
 */
function mostWaitedFor(
  suspects: readonly OwnTimeSuspect[],
  leads: readonly Lead[],
  iterationMs: number,
): OwnTimeSuspect[] {
  const isSuspect = new Set(suspects.map(({ rank }) => rank));
  const others = leads.filter(({ rank }) => !isSuspect.has(rank));
  return suspects.filter(({ rank, slow, sigmas, beforeMs, afterMs }) => {
    const numbers = new Set(slow);
    const growth = ({ account, ms }: Lead): Map<number, number> => {
      const before = median([...ms].filter((one, i) => !Number.isNaN(one) && !numbers.has(i)));
      const compared = slow.filter((i) => !Number.isNaN(ms[i]!));
      return new Map(compared.map((i) => [account.iteration[i]!, ms[i]! - before]));
    };
    const own = growth(leads.find((lead) => lead.rank === rank)!);
    const theirs = others.map(growth);
    const first = [...own].filter(([number, ms]) =>
      theirs.every((other) => !((other.get(number) ?? 0) > ms)),
    ).length;
    const isSteady = own.size >= STEADY_FROM && first >= STEADY * own.size;
    const enough = standsOut(afterMs - beforeMs, iterationMs);
    return first >= MOSTLY * own.size && (isSteady || sigmas >= enough);
  });
}

function standsOut(leadMs: number, iterationMs: number): number {
  return leadMs >= FAR * iterationMs ? STANDS_OUT_FAR : STANDS_OUT;
}

/** The worst rise of a lead, or of its opposite. */
function shiftOf(
  { iteration }: TimeBreakdown,
  ms: Float64Array,
  iterationMs: number,
  sign: 1 | -1,
): Shift | null {
  const signed = ms.map((one) => sign * one);
  const tracked = worstShift(
    iteration,
    signed.map((one) => iterationMs + one),
    LEVELS,
  );
  const lasting = lastingRise(iteration, signed, FEWEST);
  return tracked && (!lasting || tracked.costMs > lasting.costMs) ? tracked : lasting;
}

/**
 * Where the leads of others rise or fall by nearly as much, at whatever time, that is what leads do here by chance. Those that
 * fall since the suspect is slow wait for it.
 */
function beyondChance(
  suspects: readonly OwnTimeSuspect[],
  leads: readonly Lead[],
  shifts: readonly (readonly [Shift | null, Shift | null])[],
): readonly OwnTimeSuspect[] {
  const isSuspect = new Set(suspects.map(({ rank }) => rank));
  return suspects.filter(({ rank: accused, iteration }) => {
    const sizes = leads.flatMap(({ rank, account }, k) => {
      if (isSuspect.has(rank)) return [];
      const [rise, fall] = shifts[k]!;
      const isAfter = fall !== null && account.iteration[fall.from]! >= iteration! - NEARLY;
      return [rise, isAfter ? null : fall].map((one) => sizeOf(one, account));
    });
    const k = leads.findIndex(({ rank }) => rank === accused);
    return Math.max(0, ...sizes) < BY_CHANCE * sizeOf(shifts[k]![0], leads[k]!.account);
  });
}

/** How much a shift says: a few odd iterations shift a median as far as many do, but not for as long. */
function sizeOf(shift: Shift | null, { iteration }: TimeBreakdown): number {
  if (!shift) return 0;
  const settled = iteration.filter((number) => number > WARM_UP).length;
  const within = iteration.filter((number, i) => i >= shift.from && number <= shift.to).length;
  const outside = Math.max(1, settled - within);
  return (shift.afterMs - shift.beforeMs) * Math.sqrt((within * outside) / (within + outside));
}

/** The rank's lead grew at some iteration and stayed, and the job's iterations with it. */
function grownSince(
  lead: Lead,
  shift: Shift | null,
  leads: readonly Lead[],
  iterationMs: number,
): OwnTimeSuspect | null {
  if (!shift) return null;
  const { rank, account, ms } = lead;
  const { iteration } = account;
  const slow = new Set(
    [...iteration.keys()].filter((i) => i >= shift.from && iteration[i]! <= shift.to),
  );
  const { growthMs, errorMs } = growthIn(lead.ms, slow);
  if (!(growthMs >= MATTERS * iterationMs) || comparedIn(lead.ms, slow) < FEWEST_SLOW) return null;
  if (comparedIn(lead.ms, slow) < SEEN * slow.size) return null;
  const others = leads.filter((one) => one !== lead).map((one) => growthIn(one.ms, slow).growthMs);
  const noise = noiseOf(others, growthMs, errorMs, iterationMs);
  if (growthMs < STANDS_OUT_STEADILY * noise) return null;
  const beforeMs = median([...ms].filter((one, i) => !Number.isNaN(one) && !slow.has(i)));
  if (!holds(ms, slow, beforeMs, growthMs)) return null;
  // Iterations vary far more than leads do. Of a rank that is ahead it is enough that they may have grown.
  const isAhead = beforeMs + growthMs >= OF_LARGEST * growthMs;
  const cost = longerBy(leads, slow);
  const costMs = cost.growthMs + (isAhead ? LEAST_SIGMAS * cost.errorMs : 0);
  if (costMs < COSTS * growthMs) return null;
  return {
    rank,
    kind: "slower",
    iteration: iteration[shift.from]!,
    until: shift.to >= iteration.at(-1)! ? null : shift.to,
    ...ownLevels(account, slow, growthMs),
    sigmas: growthMs / noise,
    slow: [...slow],
  };
}

/** By how much the iterations of the job took longer, on the median rank. */
function longerBy(leads: readonly Lead[], slow: ReadonlySet<number>): Growth {
  const all = leads.map(({ account: { iteration, totalMs } }) =>
    growthIn(
      totalMs.map((ms, i) => (iteration[i]! > WARM_UP ? ms : NaN)),
      slow,
    ),
  );
  return {
    growthMs: median(all.map(({ growthMs }) => growthMs)),
    errorMs: median(all.map(({ errorMs }) => errorMs)),
  };
}

/** How much more each rank is usually waited for than those that run the same program. */
function leadsOverPeers(leads: readonly Lead[]) {
  const settled = leads.map(({ ms }) => [...ms].filter((one) => !Number.isNaN(one)));
  const levels = settled.map((values) => median(values));
  const programs = new Map<number, number[]>();
  for (const [k, { account }] of leads.entries()) {
    const list = programs.get(account.program);
    if (list) list.push(k);
    else programs.set(account.program, [k]);
  }
  const aheadMs = leads.map(({ account }, k) => {
    const peers = programs.get(account.program)!.filter((other) => other !== k);
    return levels[k]! - median(peers.map((other) => levels[other]!));
  });
  return { settled, levels, programs, aheadMs };
}

/** The rank leads in all recorded iterations, by comparison with ranks that run the same program. */
function alwaysAhead(leads: readonly Lead[], iterationMs: number): OwnTimeSuspect[] {
  const { settled, levels, programs, aheadMs } = leadsOverPeers(leads);
  const least = MATTERS_ALWAYS * iterationMs;
  // Beside a peer that waits for somebody everybody is ahead: it must be ahead of all as well.
  const mayBe = (k: number): boolean =>
    settled[k]!.length >= FEWEST && aheadMs[k]! >= least && levels[k]! >= least;
  const found = leads.flatMap(({ rank, account, ms }, k): OwnTimeSuspect[] => {
    const ahead = aheadMs[k]!;
    if (!mayBe(k)) return [];
    const others = aheadMs.filter((_, other) => other !== k);
    const noise = noiseOf(others, ahead, errorOfMedian(settled[k]!), iterationMs);
    // Two of a kind differ by as much as one of them is slow: what is usual, only others can tell.
    const isWitnessed = programs.get(account.program)!.length > 2 || programs.size > 2;
    if (ahead < standsOut(ahead, iterationMs) * noise || !isWitnessed) return [];
    const all = new Set(account.iteration.keys());
    if (!holds(ms, all, levels[k]! - ahead, ahead)) return [];
    const facts = { iteration: null, until: null, ...ownLevels(account, all, ahead) };
    const slow = [...all].filter((i) => account.iteration[i]! > WARM_UP);
    return [{ rank, kind: "always" as const, ...facts, sigmas: ahead / noise, slow }];
  });
  // Whole replicas differ where one of them waits. Where that hides the rank that is farthest ahead, it accuses nobody behind it.
  const [farthest] = [...leads.keys()].filter(mayBe).toSorted((a, b) => aheadMs[b]! - aheadMs[a]!);
  if (farthest === undefined || !found.some(({ rank }) => rank === leads[farthest]!.rank))
    return [];
  return isOneOfTwo(farthestAhead(found), leads, programs, aheadMs) ? [] : found;
}

/**
 * Where a program has two ranks, one of them is ahead as soon as the other waits for something: several such pairs that differ
 * are whole replicas that do, and say nothing of a rank.
 */
function isOneOfTwo(
  suspects: readonly OwnTimeSuspect[],
  leads: readonly Lead[],
  programs: ReadonlyMap<number, readonly number[]>,
  aheadMs: readonly number[],
): boolean {
  const [first] = suspects;
  const k = leads.findIndex(({ rank }) => rank === first?.rank);
  const pair = k < 0 ? [] : programs.get(leads[k]!.account.program)!;
  if (pair.length !== 2) return false;
  const others = aheadMs.filter((ms, other) => !pair.includes(other) && !Number.isNaN(ms));
  return others.some((ms) => Math.abs(ms) >= OF_LARGEST * aheadMs[k]!);
}

/** Deviations of the other ranks' growth, without those that are slow as well or work beside them. */
function noiseOf(
  others: readonly number[],
  growthMs: number,
  errorMs: number,
  iterationMs: number,
): number {
  const usual = others.filter((one) => Math.abs(one) < OF_LARGEST * growthMs);
  return Math.max(usual.length > 2 ? spread(usual) : 0, errorMs, FLOOR * iterationMs);
}

function holds(
  ms: Float64Array,
  slow: ReadonlySet<number>,
  beforeMs: number,
  growthMs: number,
): boolean {
  let [all, held] = [0, 0];
  for (const i of slow) {
    if (Number.isNaN(ms[i]!)) continue;
    all++;
    if (ms[i]! - beforeMs >= OF_LARGEST * growthMs) held++;
  }
  return held >= HOLDS * all;
}

/** In words of own time, which is what grows when a lead does. */
function ownLevels(
  { ownMs, iteration }: TimeBreakdown,
  slow: ReadonlySet<number>,
  growthMs: number,
): { beforeMs: number; afterMs: number } {
  const usual = [...ownMs].filter((_, i) => iteration[i]! > WARM_UP && !slow.has(i));
  const now = [...ownMs].filter((_, i) => iteration[i]! > WARM_UP && slow.has(i));
  const beforeMs = Math.max(0, usual.length > 0 ? median(usual) : median(now) - growthMs);
  return { beforeMs, afterMs: beforeMs + growthMs };
}

function farthestAhead(suspects: readonly OwnTimeSuspect[]): OwnTimeSuspect[] {
  const growth = ({ beforeMs, afterMs }: OwnTimeSuspect): number => afterMs - beforeMs;
  const most = suspects.reduce((max, suspect) => Math.max(max, growth(suspect)), 0);
  return suspects
    .filter((suspect) => growth(suspect) >= OF_LARGEST * most)
    .toSorted((a, b) => growth(b) - growth(a));
}
