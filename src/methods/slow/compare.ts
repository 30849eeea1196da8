/**
 * The one comparison. A rank that slows the job down waits less than the ranks it shares groups with. Asked of every moment since
 * which it may be slow: its lead behind that against its lead in front of it, and both against what the others' leads do there by
 * chance. Looking everywhere is paid for by the mean over all moments.
 */
import { effectOf, logMeanExp, logShiftOdds } from "../../maths/shift-odds.ts";
import { type Account, growthAt, row } from "./account.ts";
import { CHANCE_TAILS, chanceBeside, scaleOf } from "./chance.ts";
import { type LeadSeries, leadsInGroups, leadsInRoles, type Reference } from "./leads.ts";
import { lastingLevel } from "./levels.ts";
import { type Shifts, shiftsAt } from "./shifts.ts";
import { spikesOf, SPIKING } from "./spikes.ts";

/**
 * Fewest blocks in front of a moment and behind it: fewer follow one hiccup, and what lasts less is no lasting fault. Of records that
 * are too short for that, as many as leave a moment in the middle.
 */
const FEWEST_AROUND = 3;
const FEWEST_OF_FEW = 2;
/** Moments that are asked about, spread evenly over longer records. */
const MOST_MOMENTS = 48;
/** Slow ranks on record add 10 to 100 % of an iteration; below 4 % nobody looks. */
export const LEAST_LEAD = 0.04;
const SLOW = effectOf(LEAST_LEAD, 0.3);
/** Healthy iterations drift by a tenth, and sometimes far. */
const PACE_DRIFT = 0.1;
const PACE_TAILS = [[2, 1]] as const;
const SLOWER = effectOf(0, 0.3);
/** Who waits for another shows it by so many errors. */
const PLAIN_ERRORS = 4;
/** Ranks that share groups with a slow one change by this part of what it does. */
const BESIDE = 0.1;
/** Log odds of who waits for a rank that is slow by assumption. */
const WAITS = -6;

export interface Compared {
  readonly account: Account;
  /** Blocks since which somebody may be slow; 0: since before the record begins. */
  readonly moments: Int32Array;
  /** By moment. */
  readonly series: readonly LeadSeries[];
  readonly leads: readonly Shifts[];
  readonly lateness: readonly Shifts[];
  /** Evidence that iterations became longer then, whoever it is. */
  readonly pace: Float64Array;
}

/** Evidence for one rank: the log of how much likelier the record is if it is slow than if nobody is. */
export interface RankEvidence {
  readonly place: number;
  readonly log: number;
  /** Since a moment, with and without that iterations grew then. */
  readonly lasting: number;
  readonly lastingLead: number;
  readonly isNowAndThen: boolean;
  /** The likeliest moment: a block, 0 for before the record; by how much it leads since, and what leads are by chance. */
  readonly moment: number;
  readonly lead: number;
  readonly chance: number;
  /** Its leads, block by block, over the reference that tells most surely. */
  readonly leads: Float64Array;
  readonly reference: Reference;
}

export function compare(account: Account): Compared {
  const { blocks, calls, roles } = account;
  const moments = momentsOf(blocks);
  const inGroups = leadsInGroups(account);
  const inRoles = leadsInRoles(account);
  const series = Array.from(moments, (moment) => (moment === 0 ? inRoles : inGroups));
  return {
    account,
    moments,
    series,
    leads: Array.from(moments, (moment, i) => {
      const shifts = shiftsAt(series[i]!.lead, blocks, series[i]!.kind, moment);
      return moment === 0 ? shifts : notBack(shifts, series[i]!, account, moment);
    }),
    // Each by itself: how regularly a rank calls is no matter of its role.
    lateness: Array.from(moments, (moment) =>
      shiftsAt(
        moment === 0 ? calls.behindRole : calls.behind,
        blocks,
        roles.map((_, place) => place),
        moment,
        FEWEST_AROUND,
      ),
    ),
    pace: Float64Array.from(moments, (moment) => (moment === 0 ? 0 : paceAt(account, moment))),
  };
}

/**
 * Where a rank's peer is as fast as before again, the rank's lead over it comes back, too: it leads no more than it does since, where
 * both run the same program.
 */
function notBack(
  shifts: Shifts,
  { lead, reference, references }: LeadSeries,
  { blocks, roles }: Account,
  moment: number,
): Shifts {
  const isAlike = references.map(({ places }) =>
    places.every((place) => roles[place] === roles[places[0]!]),
  );
  const growth = shifts.growth.map((own, s) =>
    own > 0 && isAlike[reference[s]!]!
      ? Math.min(own, lastingLevel(row(lead, s, blocks).subarray(moment)))
      : own,
  );
  return { ...shifts, growth };
}

/** 0 first, then ascending. */
function momentsOf(blocks: number): Int32Array {
  const around = Math.min(FEWEST_AROUND, Math.max(FEWEST_OF_FEW, blocks >> 1));
  const many = Math.max(0, blocks - 2 * around + 1);
  const asked = Math.min(MOST_MOMENTS, many);
  const step = (many - 1) / Math.max(1, asked - 1);
  const later = Array.from({ length: asked }, (_, i) => around + Math.round(i * step));
  return Int32Array.of(0, ...later);
}

export function paceAt({ lengthMs, unitMs }: Account, moment: number): number {
  return logShiftOdds(growthAt(lengthMs, moment) / unitMs, PACE_DRIFT, PACE_TAILS, SLOWER);
}

/**
 * `asked`: places; by default all. `assumed`: ranks that are slow by assumption, so that their leads are no chance.
 */
export function weighRanks(
  compared: Compared,
  asked: readonly number[] = [...compared.account.ranks.keys()],
  assumed: readonly number[] = [],
): RankEvidence[] {
  const { account, moments, series, leads, lateness, pace } = compared;
  const { blocks } = account;
  const spiking = spikesOf(account, series[1] ?? series[0]!, assumed);
  const own = account.ranks.map((_, place) => [place]);
  const neighbours = neighboursOf(account);
  const leadLogs = leads.map((shifts, i) => {
    const { of } = series[i]!;
    const still = comparable(series[i]!, assumed);
    return weighShifts(shifts, of, still, asked, assumed, neighbours);
  });
  const lateLogs = lateness.map((shifts) =>
    weighShifts(shifts, own, own, asked, assumed, neighbours),
  );
  return asked.map((place) => {
    let best = 0;
    const withPace = new Float64Array(moments.length);
    const without = new Float64Array(moments.length);
    for (let i = 0; i < moments.length; i++) {
      // Its calls may come late as well, or not: where they do, that is a second witness.
      without[i] = leadLogs[i]!.log[place]! + logMeanExp([0, lateLogs[i]!.log[place]!]);
      withPace[i] = without[i]! + pace[i]!;
      if (withPace[i]! > withPace[best]!) best = i;
    }
    const lasting = overMoments(withPace);
    const { lead, reference, references } = series[best]!;
    const surest = leadLogs[best]!.surest[place]!;
    const log = Math.log((1 - SPIKING) * Math.exp(lasting) + SPIKING * Math.exp(spiking[place]!));
    return {
      place,
      log,
      lasting,
      lastingLead: overMoments(without),
      isNowAndThen: spiking[place]! > lasting,
      moment: moments[best]!,
      lead: leadLogs[best]!.growth[place]!,
      chance: leadLogs[best]!.chance[place]!,
      leads: surest < 0 ? new Float64Array(blocks) : row(lead, surest, blocks),
      reference: surest < 0 ? ALONE : references[reference[surest]!]!,
    };
  });
}

/** Half to half slow since before the record begins, and since any other moment. */
export function overMoments(logs: Float64Array): number {
  return logs.length > 1
    ? logMeanExp([logs[0]!, logMeanExp(logs.subarray(1))])
    : logMeanExp([logs[0]!, 0]);
}

/** Of each rank the series that still tell: half of a reference slow by assumption is no reference. */
function comparable(
  { of, reference, references }: LeadSeries,
  assumed: readonly number[],
): LeadSeries["of"] {
  if (assumed.length === 0) return of;
  const isAssumed = new Set(assumed);
  const slow = references.map(
    ({ places }) => places.filter((place) => isAssumed.has(place)).length,
  );
  return of.map((own, place) =>
    own.filter((s) => {
      const others = references[reference[s]!]!.places.length - 1;
      return 2 * (slow[reference[s]!]! - (isAssumed.has(place) ? 1 : 0)) < others;
    }),
  );
}

/** Whether two ranks share a communicator that is not everybody's, where there are others. */
function neighboursOf({ groups, ranks }: Account): (a: number, b: number) => boolean {
  if (groups.length === 1) return () => true;
  const own = ranks.map(() => new Set<number>());
  for (const [g, { places }] of groups.entries())
    if (places.length < ranks.length) for (const place of places) own[place]!.add(g);
  return (a, b) => [...own[a]!].some((group) => own[b]!.has(group));
}

/** By place: the evidence, the series and the growth that it rests on, and what growths are by chance. */
interface Weighed {
  readonly log: Float64Array;
  readonly surest: Int32Array;
  readonly growth: Float64Array;
  readonly chance: Float64Array;
}

const ALONE: Reference = { group: 0, places: new Int32Array(0) };

/** At one moment; `of`: of each rank all series; `still`: those that still tell beside who is slow by assumption. */
function weighShifts(
  { growth, error, usualError }: Shifts,
  of: LeadSeries["of"],
  still: LeadSeries["of"],
  asked: readonly number[],
  assumed: readonly number[],
  areNeighbours: (a: number, b: number) => boolean,
): Weighed {
  const ranks = of.length;
  const surest = new Int32Array(ranks).fill(-1);
  for (const [place, own] of still.entries())
    for (const s of own)
      if (!Number.isNaN(growth[s]!) && !(error[s]! >= (error[surest[place]!] ?? Infinity)))
        surest[place] = s;
  const growths = Float64Array.from(surest, (s) => growth[s] ?? NaN);
  // Who became plainly later than some partner waits for that one: what it leads others by it has from there, and not by chance.
  const waits = (place: number): boolean =>
    of[place]!.some((s) => growth[s]! < -PLAIN_ERRORS * error[s]!);
  const byChance = growths.map((own, place) => (own > 0 && waits(place) ? 0 : own));
  const chance = chanceBeside(byChance, (place) => assumed.includes(place));
  const log = new Float64Array(ranks);
  const scales = new Float64Array(ranks);
  for (const place of asked) {
    if (surest[place]! < 0) continue;
    const chanceHere = chance(place);
    scales[place] = Math.sqrt(chanceHere.variance);
    const others = assumed.filter(
      (other) => other !== place && growths[other]! > 0 && areNeighbours(place, other),
    );
    const slowest = Math.max(0, ...others.map((other) => growths[other]!));
    let against = 0;
    let best = 0;
    for (const s of still[place]!) {
      if (Number.isNaN(growth[s]!)) continue;
      const scale = scaleOf(chanceHere, error[s]!, usualError[s]!, BESIDE * slowest);
      const odds = logShiftOdds(growth[s]!, scale, CHANCE_TAILS, SLOW);
      against = Math.min(against, odds);
      if (s === surest[place]) best = odds;
    }
    // Beside one that is slow by assumption: what leads since it waits for that one is not slow by itself.
    if (assumed.length > 0 && waits(place)) against = Math.min(against, WAITS);
    // The reference that agrees with the rank best counts; any other may only speak against it.
    log[place] = best + against;
  }
  return { log, surest, growth: growths, chance: scales };
}
