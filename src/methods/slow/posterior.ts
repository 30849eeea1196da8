/**
 * All that may be true of a job, and how probable each is after the comparison: nobody is slow; one rank, several, a machine; a wire
 * or a device of the network; all alike; a rank that left no record. The posterior is the ranking and the confidence.
 */
import { groupBy } from "../../base/group-by.ts";
import { logMeanExp } from "../../maths/shift-odds.ts";
import { type Account, growthAt } from "./account.ts";
import { compare, type Compared, type RankEvidence, weighRanks } from "./compare.ts";
import {
  type Device,
  endsOf,
  isCandidate,
  isShared,
  type Place,
  sitesOf,
  weighTogether,
  type WireEvidence,
  wireOdds,
  type WireOdds,
} from "./weigh-wires.ts";

/** Before anything is seen: that nobody is slow. */
const HEALTHY = 0.55;
/** Of slow jobs: that a second rank is slow as well; that it is a whole machine; that all became slower alike. */
const ANOTHER = 0.04;
const MACHINE = 0.05;
const ALIKE = 0.05;
/** Of slow jobs: that a wire is. What wires do by themselves only other wires tell: with fewer than so many it is less probable. */
const WIRE = 0.1;
const MANY_WIRES = 48;
/** Evidence counts so many times: fitted on recorded jobs, of which the modest end was taken. */
const TEMPER = 1.5;
/** Of more ranks at once nobody would speak of slow ranks. */
const MOST_SLOW = 4;
/** Of ranks of which half left no record, nobody can be sure: the culprit may be among those. */
const UNSEEN = 0.5;
/** To name all that it may be is half an answer; two ends of one connection are one. */
const NOT_SINGLED_OUT = 0.6;
/** The likeliest ranks, of which several may be slow at once. */
const CANDIDATES = 16;
/** Machines and leaf switches that are weighed. */
const MOST_SITES = 4;

export interface Hypothesis {
  readonly kind: "ranks" | "machine" | "wire" | "device" | "all" | "unseen";
  readonly places: readonly number[];
  readonly probability: number;
  /** Of each place: what speaks for it. */
  readonly ranks: readonly RankEvidence[];
  readonly wire: WireEvidence | null;
  readonly device: Device | null;
}

export interface Posterior {
  readonly compared: Compared;
  readonly healthy: number;
  /** The likeliest first; with healthy they add up to 1. */
  readonly hypotheses: readonly Hypothesis[];
}

type Weighed = Omit<Hypothesis, "probability"> & { readonly log: number; readonly prior: number };

const NOTHING = { ranks: [], wire: null, device: null };

/** `where`: by place; `unseen`: ranks of the job that left no record. */
export function judge(account: Account, where: readonly Place[], unseen: number): Posterior {
  const compared = compare(account);
  const ranks = account.ranks.length;
  const seen = ranks / (ranks + unseen);
  const single = weighRanks(compared);
  const wires = network(compared, where);
  const onOne = machines(compared, single, where);
  const one = (1 - ANOTHER - MACHINE - ALIKE) / (ranks + unseen);
  const common = account.blocks > 2 ? logMeanExp(compared.pace.subarray(1)) : 0;
  const nothing = Math.log(HEALTHY);
  const alone = single.map((own) => ofRanks([own], own.log, one));
  const besideOne = alone.filter((_, place) => account.besideUnseen[place] === 1);
  const all: Weighed[] = [
    ...alone.map((own) => ({ ...own, log: own.log + alongside(own.ranks[0]!, wires) })),
    ...several(compared, single, ranks).filter((own) => !isOf(own, onOne)),
    ...onOne,
    ...wires,
    { kind: "all", places: [], log: Number.isNaN(common) ? 0 : common, prior: ALIKE, ...NOTHING },
    ...notSeen(besideOne, unseen, one, common || 0),
  ];
  const logs = all.map(({ kind, log, prior }) => {
    const counts = kind === "all" || kind === "unseen" ? 1 : TEMPER;
    return Math.log((1 - HEALTHY) * prior) + counts * log;
  });
  // Rank 0 evaluates and saves now and then: its spikes may be its duties as well as a fault.
  const first = single[account.ranks.indexOf(0)];
  const duties = first?.isNowAndThen === true ? logs[first.place]! : -Infinity;
  const top = Math.max(nothing, duties, ...logs);
  const weights = logs.map((log) => Math.exp(log - top));
  const calm = Math.exp(nothing - top) + Math.exp(duties - top);
  const total = weights.reduce((sum, weight) => sum + weight, calm);
  const most = 1 - UNSEEN * (1 - seen);
  const hypotheses = all
    .map(({ log: _log, prior: _prior, ...rest }, i) => ({
      ...rest,
      probability: (weights[i]! / total) * most * (isOneOfMany(rest) ? NOT_SINGLED_OUT : 1),
    }))
    .filter(({ probability }) => probability > 0)
    .sort((a, b) => b.probability - a.probability);
  return { compared, healthy: (calm / total) * most, hypotheses };
}

/** Whether these ranks are all of a machine that is weighed as one. */
function isOf({ places }: Weighed, machines: readonly Weighed[]): boolean {
  return machines.some((machine) => machine.places.join() === places.join());
}

function isOneOfMany({
  device,
  kind,
  places,
}: Pick<Hypothesis, "device" | "kind" | "places">): boolean {
  return (kind === "wire" || (device?.among ?? 1) > 1) && places.length > 2;
}

/**
 * Who left no record may be the slow one: iterations became longer, or a partner of it in a small group leads, since it waits for that
 * one where nobody sees it.
 */
function notSeen(
  alone: readonly Weighed[],
  unseen: number,
  prior: number,
  pace: number,
): Weighed[] {
  if (unseen === 0) return [];
  const log = Math.max(pace, 0, ...alone.map((own) => TEMPER * own.log));
  return [{ kind: "unseen", places: [], log, prior: prior * unseen, ...NOTHING }];
}

/** Transfers of a slow rank may take longer even at their shortest, since both sides wait for it in turn: what its wires show counts for it, too. */
function alongside({ place, log: own }: RankEvidence, wires: readonly Weighed[]): number {
  if (!(own > 0)) return 0;
  const ofItsOwn = wires.filter(({ places }) => places.includes(place));
  return logMeanExp([0, Math.max(-Infinity, ...ofItsOwn.map(({ log }) => log))]);
}

function ofRanks(ranks: readonly RankEvidence[], log: number, prior: number): Weighed {
  const places = ranks.map(({ place }) => place).sort((a, b) => a - b);
  return { kind: "ranks", places, ranks, log, prior, wire: null, device: null };
}

/** Several at once: one after the other the likeliest beside those that are taken to be slow. What they do is no chance then. */
function several(compared: Compared, single: readonly RankEvidence[], ranks: number): Weighed[] {
  const found: Weighed[] = [];
  const likeliest = single.toSorted((a, b) => b.log - a.log).map(({ place }) => place);
  const [first, ...candidates] = likeliest.slice(0, CANDIDATES);
  const places = [first!];
  let sets = ranks;
  while (places.length < Math.min(MOST_SLOW, ranks >> 1)) {
    const others = candidates.filter((place) => !places.includes(place));
    const beside = weighRanks(compared, others, places);
    const next = beside.reduce((a, b) => (a.lasting >= b.lasting ? a : b));
    if (!(next.lasting > 0)) break;
    places.push(next.place);
    sets *= (ranks - places.length + 1) / places.length;
    const own = weighRanks(compared, places, places);
    const leads = own.reduce((sum, { lastingLead }) => sum + lastingLead, 0);
    // Each further one is rarer than the one before.
    const further = (places.length * (places.length - 1)) / 2;
    // What rank 0 does beside a slow rank may be its duties: it evaluates, logs and saves.
    const duties = places.some((place) => compared.account.ranks[place] === 0) ? 0.5 : 1;
    found.push(together(own, leads, (duties * ANOTHER ** further) / sets));
  }
  return found;
}

/** Iterations grew once, whoever of them made them longer. */
function together(own: readonly RankEvidence[], leads: number, prior: number): Weighed {
  const pace = Math.max(...own.map(({ lasting, lastingLead }) => lasting - lastingLead));
  return ofRanks(own, leads + pace, prior);
}

/** All ranks of a machine, slow together: each leads everybody elsewhere. */
function machines(
  compared: Compared,
  single: readonly RankEvidence[],
  where: readonly Place[],
): Weighed[] {
  const byMachine = groupBy(where.keys(), (place) => where[place]!.machine);
  const leastLead = (own: readonly number[]): number =>
    Math.min(...own.map((place) => single[place]!.lead || 0));
  return [...byMachine]
    .flatMap(([machine, own]) =>
      machine === null || own.length < 2 || own.length > where.length / 2 ? [] : [own],
    )
    .sort((a, b) => leastLead(b) - leastLead(a))
    .slice(0, MOST_SITES)
    .map((own) => {
      const members = weighRanks(compared, own, own);
      // All of them are slow only if the one that shows it least does: partners of one slow rank lead others a little, too.
      const least = Math.min(...members.map(({ lastingLead }) => lastingLead));
      const prior = MACHINE / byMachine.size;
      // Who shares a group with a slow rank leads everybody elsewhere because of it: those speak once.
      const witnesses = apartIn(own, compared.account.groups);
      return { ...together(members, witnesses * least, prior), kind: "machine" as const };
    });
}

/** How many of these ranks there are that share no group, but for those that go beyond them. */
function apartIn(own: readonly number[], groups: Account["groups"]): number {
  const inside = groups.filter(({ places }) => places.every((place) => own.includes(place)));
  const kept: number[] = [];
  for (const place of own) {
    const isBeside = (other: number): boolean =>
      inside.some(({ places }) => places.includes(place) && places.includes(other));
    if (!kept.some(isBeside)) kept.push(place);
  }
  return kept.length;
}

function network(compared: Compared, where: readonly Place[]): Weighed[] {
  const { account, moments } = compared;
  const odds = wireOdds(compared);
  const one = account.wires.map((_, w) => weighTogether([w], odds, compared));
  const prior = (WIRE * Math.min(1, one.length / MANY_WIRES) ** 2) / 3;
  const slow = one.flatMap((wire, w) => (isCandidate(wire) ? [w] : []));
  const devices = endsOf(slow, account, where);
  const sites = sitesOf(account, where);
  const ofDevice = (device: Device, its: WireOdds, count: number): Weighed[] => {
    const wire = weighTogether(device.wires, its, compared);
    if (!isShared(wire, its, moments)) return [];
    const about = { kind: "device", places: device.places, ranks: [], device, wire } as const;
    return [{ ...about, log: wire.log, prior: prior / count }];
  };
  return [
    ...one.map((wire, w): Weighed => ({
      kind: "wire",
      places: account.wires[w]!.places,
      ranks: [],
      device: null,
      wire,
      log: wire.log,
      prior: prior / one.length,
    })),
    ...devices.flatMap((device) => ofDevice(device, odds, account.ranks.length)),
    ...slowest(sites, account).flatMap((device) =>
      ofDevice(device, wireOdds(compared, new Set(device.wires)), sites.length),
    ),
  ];
}

/** Those whose wires grew most in the second half of the record, a few: to weigh each takes all wires. */
function slowest(sites: readonly Device[], { wires, blocks }: Account): Device[] {
  const grown = new Map(
    sites.map((device) => {
      const growths = device.wires.map((w) => growthAt(wires[w]!.least, blocks >> 1));
      return [device, growths.reduce((sum, growth) => sum + growth, 0) / growths.length];
    }),
  );
  return sites.toSorted((a, b) => grown.get(b)! - grown.get(a)!).slice(0, MOST_SITES);
}
