/**
 * Ranks whose own time grew, or is longer than their peers': the ranks that the others wait for. Own time is
 * quiet even where iteration times are not (0.4 % in recordings whose iterations vary by 20 %), because all the
 * waiting is outside it, so that changes of two percent are plain.
 */
import { median, spread } from "../../maths/robust.ts";
import type { Rank } from "../../model/ids.ts";
import { WARM_UP, type TimeBreakdown } from "./time-breakdown.ts";
import type { KeptWaiting } from "./kept-waiting.ts";
import { worstShift } from "./shift.ts";
import { commonFactor, ownLevels, sharedMs, type OwnLevels } from "./common-growth.ts";

type OwnTimeKind = "slower" | "spikes" | "always";

export interface OwnTimeSuspect {
  readonly rank: Rank;
  readonly kind: OwnTimeKind;
  /** First slow iteration; null where it was slow from the start. */
  readonly iteration: number | null;
  /** The last one; null where it still is. */
  readonly until: number | null;
  readonly beforeMs: number;
  readonly afterMs: number;
  /** In deviations of what the peers' own times do. */
  readonly sigmas: number;
  /** Indices of its slow iterations. */
  readonly slow: readonly number[];
  /** What whole iterations took before it was slow, where that shows that it was not always slow. */
  readonly paceMs?: number;
}

const MIN_ITERATIONS = 6;
/** Against peers, a few are enough. */
const MIN_ALWAYS = 3;
/** Smallest change of own time that is looked at, and that matters: shares of own time and of the iteration. */
const LEVELS = { minRatio: 1.02, driftRatio: 1.06 };
const MATTERS = 0.01;
/** What the rank adds to an iteration, by computing longer or by calling later: less than this slows nobody down. */
const COSTS = 0.03;
/** How far a rank must stand out from its peers. */
const STANDS_OUT = 6;
/** No account is better than this share of it: clocks, rounding, operators between two iterations. */
const FLOOR = 0.002;
/** More than this share of the ranks together is no matter of a rank. */
const TOO_MANY = 0.25;
const ALWAYS_RATIO = 1.05;
const ALWAYS_SIGMAS = 8;
const ALWAYS_SHARE = 0.02;
const APART = 1.5;
/** Own times of ranks that work beside a slow rank differ a little, too. */
const OF_WORST = 0.5;
const MIN_PEERS = 3;
/** A rank that waits for another so much more than its peers do, as a share of what its own time is above theirs, only waits. */
const WAITS = 0.3;
/** A spike: so many deviations, and so much of an iteration, above the rank's own median; how many make a habit. */
const SPIKE_SIGMAS = 10;
const SPIKE_SHARE = 0.02;
const SPIKES = 2;
/** Expected ranks with as many spikes, if spikes hit ranks at random. */
const BY_CHANCE = 0.005;
const BY_CHANCE_LIVE = 1e-3;
/** Slow iterations of one rank that make a habit in a running job. */
const HABIT = 3;

export function ownTimeSuspects(
  accounts: ReadonlyMap<Rank, TimeBreakdown>,
  isKeptWaiting: KeptWaiting = () => false,
): OwnTimeSuspect[] {
  const most = Math.max(1, Math.floor(TOO_MANY * accounts.size));
  const ways = [
    [slowerOnes, MIN_ITERATIONS],
    [alwaysSlowOnes, MIN_ALWAYS],
    [(all: Ranked) => spikingOnes(all, BY_CHANCE), MIN_ITERATIONS],
  ] as const;
  for (const [find, least] of ways) {
    const all = [...accounts].filter(([, account]) => settled(account).length >= least);
    const every = all.length < 2 ? [] : find(all, isKeptWaiting);
    // Those who work beside slow ranks rise a little, too.
    const found = every.length > most ? nearWorst(every) : every;
    if (found.length > 0 && found.length <= most) return found;
  }
  return [];
}

/** Own times without those of iterations that warm up. */
function settled({ iteration, ownMs }: TimeBreakdown): Float64Array {
  return ownMs.filter((_, i) => iteration[i]! > WARM_UP);
}

type Ranked = readonly (readonly [Rank, TimeBreakdown])[];

function slowerOnes(all: Ranked): OwnTimeSuspect[] {
  return all.flatMap(([rank, account]) => {
    const shift = worstShift(account.iteration, account.ownMs, LEVELS);
    if (!shift) return [];
    const { from, to } = shift;
    const rise = (other: TimeBreakdown): number =>
      changeOf(other, other.ownMs, account.iteration[from]!, to);
    const own = rise(account);
    const others = all.filter(([peer]) => peer !== rank).map(([, peer]) => rise(peer));
    const known = others.filter((each) => !Number.isNaN(each));
    const beforeMs = median(account.ownMs.subarray(WARM_UP, from));
    const noise = Math.max(spread(known), FLOOR * beforeMs);
    const sigmas = known.length > 0 ? (own - median(known)) / noise : 0;
    if (own < MATTERS * median(account.totalMs) || sigmas < STANDS_OUT) return [];
    const isSlow = (number: number): boolean => number >= account.iteration[from]! && number <= to;
    if (beyondCommon(own, beforeMs, all, rank, isSlow) < STANDS_OUT) return [];
    // A late CPU hides in the GPU's queue: own time shows little of it, the moments of its calls all.
    const later = changeOf(account, account.issueMs, account.iteration[from]!, to);
    const costMs = Number.isNaN(later) ? own : Math.max(own, later);
    if (costMs < COSTS * median(account.totalMs)) return [];
    const last = account.iteration.length - 1;
    const slow = indices(account).filter((i) => i >= from && account.iteration[i]! <= to);
    return [
      {
        rank,
        kind: "slower" as const,
        iteration: account.iteration[from]!,
        until: to >= account.iteration[last]! ? null : to,
        beforeMs,
        afterMs: beforeMs + own,
        sigmas,
        slow,
      },
    ];
  });
}

/** In deviations of what is left of the peers' growth, how far a rank's is beyond the factor by which all became slower. */
function beyondCommon(
  growthMs: number,
  beforeMs: number,
  all: Ranked,
  rank: Rank,
  isSlow: (iteration: number) => boolean,
): number {
  const levels = all.flatMap(([peer, one]) => (peer === rank ? [] : [ownLevels(one, isSlow)]));
  const factor = commonFactor(levels);
  const rests = levels
    .map(({ usualMs, slowMs }) => slowMs - usualMs - sharedMs(usualMs, factor))
    .filter((each) => !Number.isNaN(each));
  const rest = growthMs - sharedMs(beforeMs, factor);
  return (rest - median(rests)) / Math.max(spread(rests), FLOOR * beforeMs);
}

/** How much a time of an account rose from before an iteration to the stretch from it to another. */
function changeOf(
  { iteration }: TimeBreakdown,
  ms: Float64Array,
  from: number,
  to: number,
): number {
  const before: number[] = [];
  const after: number[] = [];
  for (let i = 0; i < ms.length; i++) {
    if (iteration[i]! <= WARM_UP) continue;
    if (iteration[i]! < from) before.push(ms[i]!);
    else if (iteration[i]! <= to) after.push(ms[i]!);
  }
  return median(after) - median(before);
}

/** Longer than the peers' from the start: ranks that run the same program are peers. */
function alwaysSlowOnes(all: Ranked, isKeptWaiting: KeptWaiting): OwnTimeSuspect[] {
  const programs = new Map<number, (readonly [Rank, TimeBreakdown])[]>();
  for (const one of all) {
    const { program } = one[1];
    programs.set(program, [...(programs.get(program) ?? []), one]);
  }
  const found = [...programs.values()].flatMap((peers) => {
    if (peers.length < MIN_PEERS + 1) return [];
    const own = peers.map(([, account]) => median(settled(account)));
    const centre = median(own);
    // Medians of a few noisy iterations differ by chance, and of a few peers they may agree by chance.
    const chance = median(peers.map(([, account]) => errorOfMedian(settled(account))));
    const noise = Math.max(spread(own, centre), chance, FLOOR * centre);
    const longer = peers.flatMap(([rank, account], k) => {
      const more = own[k]! - centre;
      const sigmas = more / noise;
      const isPlain = more >= ALWAYS_SIGMAS * chance && standsApart(own, own[k]!, centre);
      if (sigmas < ALWAYS_SIGMAS && !isPlain) return [];
      // Where operators run beside kernels own times may be below zero, and no ratio tells.
      if (more < ALWAYS_SHARE * median(account.totalMs)) return [];
      if (centre > 0 && own[k]! < ALWAYS_RATIO * centre) return [];
      if (isKeptWaiting(rank, WAITS * more)) return [];
      const facts = { iteration: null, until: null, beforeMs: centre, afterMs: own[k]! };
      return [{ rank, kind: "always" as const, ...facts, sigmas, slow: indices(account) }];
    });
    const worst = nearWorst(longer);
    return worst.length <= TOO_MANY * peers.length + 0.5 ? worst : [];
  });
  return nearWorst(found);
}

/** Farther above all that is less than half as long than these are apart: columns of a job differ among themselves. */
function standsApart(all: readonly number[], own: number, centre: number): boolean {
  const half = centre + OF_WORST * (own - centre);
  const next = all.reduce((most, each) => (each < half ? Math.max(most, each) : most), centre);
  const least = all.reduce((a, b) => Math.min(a, b), centre);
  return own - next >= APART * (next - least);
}

/** Standard error of a median of independent values. */
function errorOfMedian(values: Float64Array): number {
  return (1.25 * spread(values)) / Math.sqrt(values.length);
}

function nearWorst(suspects: readonly OwnTimeSuspect[]): OwnTimeSuspect[] {
  const excess = ({ beforeMs, afterMs }: OwnTimeSuspect): number => afterMs - beforeMs;
  const worst = suspects.reduce((most, suspect) => Math.max(most, excess(suspect)), 0);
  return suspects.filter((suspect) => excess(suspect) >= OF_WORST * worst);
}

/**
 * Ranks whose own time jumps in more of the slow iterations than hiccups, which hit ranks at random, explain. A running job
 * is asked again and again, so that chance must be all but excluded.
 */
export function habituallySlow(
  accounts: ReadonlyMap<Rank, TimeBreakdown>,
  isSlow: (iteration: number) => boolean,
): OwnTimeSuspect[] {
  const found = spikingOnes([...accounts], BY_CHANCE_LIVE).map((suspect) => {
    const { iteration } = accounts.get(suspect.rank)!;
    return { ...suspect, slow: suspect.slow.filter((i) => isSlow(iteration[i]!)) };
  });
  return nearWorst(found.filter(({ slow }) => slow.length >= HABIT));
}

/** Now and then much longer, always on the same rank; single hiccups hit ranks at random. */
function spikingOnes(all: Ranked, byChance: number): OwnTimeSuspect[] {
  const accounts = all.map(([, account]) => account);
  const spikes = ownSpikes(accounts);
  const total = spikes.reduce((count, { high }) => count + high.length, 0);
  return all.flatMap(([rank, account], k) => {
    const { high, own: slow } = spikes[k]!;
    // What all share counts among the hiccups of the others all the same.
    const usual = (total - high.length + 0.25) / (all.length - 1);
    if (slow.length < SPIKES || all.length * atLeast(slow.length, usual) > byChance) return [];
    const beforeMs = median(settled(account));
    const afterMs = median(slow.map((i) => account.ownMs[i]!));
    if (slow.length * (afterMs - beforeMs) < MATTERS * sum(account.totalMs)) return [];
    const [first, last] = [account.iteration[slow[0]!]!, account.iteration[slow.at(-1)!]!];
    const facts = { iteration: first, until: last, beforeMs, afterMs };
    const noise = Math.max(spread(settled(account)), FLOOR * beforeMs);
    const sigmas = (afterMs - beforeMs) / noise;
    return [{ rank, kind: "spikes" as const, ...facts, sigmas, slow }];
  });
}

/** Probability of so many or more of a Poisson variable. */
function atLeast(count: number, mean: number): number {
  let term = Math.exp(-mean);
  let below = 0;
  for (let k = 0; k < count; k++) {
    below += term;
    term *= mean / (k + 1);
  }
  return Math.max(0, 1 - below);
}

/** Places of iterations. */
interface Spikes {
  /** In which the rank jumps about as much as whoever jumps most. */
  readonly high: readonly number[];
  /** Those of them that are longer than all became by one factor: an iteration with more work is longer for everybody. */
  readonly own: readonly number[];
}

/** The spikes of each rank; of ranks that jump in the same iteration only the highest has one. */
function ownSpikes(all: readonly TimeBreakdown[]): Spikes[] {
  const highest = new Map<number, number>();
  const jumps = all.map(jumpsOf);
  for (const [k, { iteration }] of all.entries())
    for (const [i, { ms }] of jumps[k]!)
      highest.set(iteration[i]!, Math.max(ms, highest.get(iteration[i]!) ?? 0));
  const factors = commonFactors(all, highest);
  return all.map(({ iteration }, k) => {
    const high = [...jumps[k]!].filter(
      ([i, { ms }]) => ms >= OF_WORST * highest.get(iteration[i]!)!,
    );
    const own = high.filter(
      ([i, { ms, usualMs, leastMs }]) =>
        ms - sharedMs(usualMs, factors.get(iteration[i]!)!) > leastMs,
    );
    return { high: high.map(([i]) => i), own: own.map(([i]) => i) };
  });
}

/** By iteration, of those that are asked for: how many times its usual own time most ranks took. */
function commonFactors(
  all: readonly TimeBreakdown[],
  asked: ReadonlyMap<number, unknown>,
): ReadonlyMap<number, number> {
  const levels = new Map([...asked.keys()].map((number) => [number, [] as OwnLevels[]]));
  for (const account of levels.size > 0 ? all : []) {
    const usualMs = median(settled(account));
    for (const [i, number] of account.iteration.entries())
      levels.get(number)?.push({ usualMs, slowMs: account.ownMs[i]! });
  }
  return new Map([...levels].map(([number, each]) => [number, commonFactor(each)]));
}

interface Jump {
  readonly ms: number;
  readonly usualMs: number;
  readonly leastMs: number;
}

/** Index of an iteration → how far its own time is above the usual. */
function jumpsOf(account: TimeBreakdown): Map<number, Jump> {
  const { iteration, ownMs, totalMs } = account;
  const counted = settled(account);
  const centre = median(counted);
  const noise = Math.max(spread(counted, centre), FLOOR * median(totalMs));
  const leastMs = Math.max(SPIKE_SIGMAS * noise, SPIKE_SHARE * median(totalMs));
  const jumps = new Map<number, Jump>();
  for (let i = 0; i < ownMs.length; i++) {
    const ms = ownMs[i]! - centre;
    if (iteration[i]! > WARM_UP && ms > leastMs) jumps.set(i, { ms, usualMs: centre, leastMs });
  }
  return jumps;
}

function indices({ iteration }: TimeBreakdown): number[] {
  return [...iteration.keys()].filter((i) => iteration[i]! > WARM_UP);
}

function sum(values: Float64Array): number {
  return values.reduce((a, b) => a + b, 0);
}
