/** The question "which rank, or which part of the network, makes the job slow?" asked of operators. */
import { count, rankWords } from "../../base/text.ts";
import type { NewFinding } from "../../model/finding.ts";
import { hasStopped, LAST_ITERATIONS } from "../../model/has-stopped.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { Method } from "../../model/method.ts";
import type { RankOperators } from "../../model/rank-operators.ts";
import type { TrackedSeries } from "../../model/series.ts";
import { median } from "../../maths/robust.ts";
import { timeBreakdowns, WARM_UP, type TimeBreakdown } from "./time-breakdown.ts";
import { keptWaiting } from "./kept-waiting.ts";
import { ownTimeSuspects, type OwnTimeSuspect } from "./own-time.ts";
import { allFloors } from "./progressive/observe-all.ts";
import { FetchedSource } from "./progressive/fetched-source.ts";
import { searchProgressively, spreadPivots } from "./progressive/progressive.ts";
import { attributeDevices, rankingOf, type Attribution } from "./attribute.ts";
import { CLOCK_OFF_MS, clockOffsets } from "./clocks.ts";
import { ofSamePace } from "./same-pace.ts";
import { slowIterations } from "./slow-iterations.ts";
import { commonFactor, isShared, ownLevels } from "./common-growth.ts";
import { isOnMachines, locate, type Located } from "./slow-ranks.ts";
import { slowerFloor } from "./slower-floor.ts";
import { fromOwnTimes, fromUnseenPeer, type SlowFinding, type Witness } from "./slow-findings.ts";
import { withTrueEnds } from "./true-ends.ts";
import { besideUnrecorded } from "./unrecorded-groups.ts";
import { unseenPeer } from "./unseen-peer.ts";
import { splitOf, waiting, waitsInGroup, waitsToReceive, weighed } from "./weigh.ts";
import { leadsOf } from "./waited-for.ts";
import { wiringOf } from "./progressive/wiring.ts";
import type { DeviceScore } from "./attribution/accumulate.ts";

/** Irregularities below which a ranking says nothing; and how far ahead another device must be to be a contradiction. */
const FEWEST = 4;
const AHEAD = 1.5;

/** Periods take some milliseconds a rank; beyond this many only the first are looked at, and it is said. */
const MOST_RANKS = 4096;
/** Up to so many ranks all communication is looked at; beyond, what the search comes by. */
const WHOLE = 1024;
/** Up to so many ranks it is asked who was slow before a job stopped: who stopped it must be told soon. */
const STOPPED = 256;
const PIVOTS = 32;
const MOST_ITERATIONS = 512;
/** Part of an iteration that others must wait for a rank that left nothing. */
const PLAINLY = 0.15;
export const slowRank: Method = {
  id: "localize/slow-rank",
  applies: (job) => {
    const { length } = job.rankOperators.ranks;
    return length >= 2 && (length <= STOPPED || !hasStopped(job));
  },
  *run(job, env) {
    const { ranks } = job.rankOperators;
    const all: RankOperators[] = [];
    for (const [k, rank] of ranks.slice(0, MOST_RANKS).entries()) {
      env.progress("cutting iterations", k, ranks.length);
      const operators = job.rankOperators.fetch(rank);
      if (operators) all.push(operators);
    }
    const ended = withTrueEnds(all, job);
    const cut = ofSamePace(ended);
    const accounts = timeBreakdowns(cut, job.groups);
    if (accounts.size < 2) return;
    const clocks = clockOffsets(cut, job.groups);
    const isAlike = hasPeers(job, accounts);
    const found = leadsOf(cut, accounts, clocks);
    const leads = {
      ...found,
      suspects: found.suspects.filter(isAlike).filter(standsOutBeyond(accounts)),
    };
    const grown = ownTimeSuspects(accounts, keptWaiting(accounts, job.groups)).filter(isAlike);
    const own =
      leads.suspects.length > 0
        ? leads.suspects
        : grown.filter(({ rank, slow }) => leads.isWaitedFor(rank, slow));
    const known = new Map(ended.map((operators) => [operators.rank, operators]));
    const fetch = (rank: Rank): RankOperators | null =>
      known.get(rank) ?? job.rankOperators.fetch(rank);
    const source = new FetchedSource({ ranks, fetch }, job.groups, job.worldSize);
    const wiring = wiringOf(job);
    const { iterations, totalMs } = reference(accounts);
    const isWhole = ranks.length <= WHOLE && iterations.length > 0;
    const floors = isWhole ? allFloors(source, job.groups, iterations) : [];
    const slower = slowerFloor(floors, iterations, totalMs);
    const slow = slowIterations(job.iterations, own, accounts, slower);
    const split = slow && splitOf(iterations, totalMs, slow);
    const growthMs = split ? median(split.slowMs) - median(split.normalMs) : 0;
    let located: Located | null = null;
    let suspects = own;
    let beside: readonly OwnTimeSuspect[] = [];
    if (slow && split) {
      const pivots = spreadPivots([...accounts.keys()], PIVOTS);
      const progress = searchProgressively(source, job.groups, split, wiring, { isWhole, pivots });
      const waitsFor = waiting(source, job, split, Infinity);
      // Own times of ranks that work beside a slow rank grow a little, too; they cannot accuse while it is not seen.
      const absent = [...job.ranks.keys()].filter((rank) => !accounts.has(rank));
      const waits = waitsInGroup(source, job, split, leads.lost);
      suspects = own.filter(
        (one) => one.kind === "always" || !(waitsFor(one.rank, absent) || waits(one)),
      );
      const areSeveral = isOnMachines(job);
      located = locate(
        progress,
        suspects,
        accounts,
        slow,
        growthMs,
        waitsFor,
        areSeveral,
        (rank) => {
          const { iteration } = accounts.get(rank)!;
          const slowOnes = [...iteration.keys()].filter((i) => slow.isSlow(iteration[i]!));
          return leads.isWaitedFor(rank, slowOnes);
        },
      );
      const toReceive = waitsToReceive(source, split);
      const first = (located.ranks.length > 0 ? located.ranks : suspects).map(({ rank }) => rank);
      beside = besideFirst(grown, median(split.normalMs)).filter(
        (one) => !(waitsFor(one.rank, first) || toReceive(one)),
      );
    }
    const seen = accounts.size / Math.max(ranks.length, job.worldSize);
    const lacks = lacksOf(cut.length, all.length, ranks.length, source.mismatches, clocks);
    const { iterations: compared, lost } = leads;
    const witness = { job, cut, accounts, seen, lacks, clocks, iterations: compared, lost };

    // Somebody who was slow all along is not what made iterations much longer.
    const isAlways = leads.suspects.some(
      ({ kind, beforeMs, afterMs }) =>
        kind === "always" && afterMs - beforeMs >= ALWAYS_SHARE * growthMs,
    );
    const slowOnes = isAlways
      ? [...fromOwnTimes(leads.suspects, witness)]
      : weighed(located, slow, suspects, floors, totalMs, witness, beside);
    const accused = besideUnrecorded(slowOnes, job.groups, job.worldSize, all);
    if (hasStopped(job)) {
      yield* beforeStop(accused, median(totalMs), iterations.at(-1) ?? 0);
      return;
    }
    const away =
      accused.length > 0 || !isWhole
        ? null
        : unseenPeer(source, job.groups, floors, iterations, totalMs, wiring);
    // Groups of a healthy job differ a little, too: whichever rank left nothing would be named.
    const isPlain = away !== null && away.growthMs >= PLAINLY * median(totalMs);
    const told = isPlain ? [fromUnseenPeer(away, witness)] : accused;
    if (told.length === 0)
      yield leads.isEven ? nobodyAhead(leads.iterations, cut, lacks) : uneven(cut, lacks);
    if (told.length === 0 && job.iterations.some(isSlowed) && !split)
      yield tooShort(iterations.length, cut[0]!.file, lacks);
    if (!split || told.length === 0) {
      yield* told;
      return;
    }
    const attribution = attributeDevices(
      source,
      job,
      split,
      spreadPivots([...accounts.keys()], PIVOTS),
      (rank) => sideOfRank(told, rank),
    );
    const [first, ...others] = told;
    yield { ...first!, data: { ...first!.data, ...rankingOf(attribution) } };
    yield* others;
    const other = fromDevices(attribution, told, witness);
    if (other) yield other;
  },
};

/** Not those whose peers' own times grew by the same factor in the same iterations: they only have more to do. */
function standsOutBeyond(
  accounts: ReadonlyMap<Rank, TimeBreakdown>,
): (suspect: OwnTimeSuspect) => boolean {
  return ({ kind, rank, slow, beforeMs, afterMs }) => {
    if (kind === "always") return true;
    const own = accounts.get(rank)!;
    const numbers = new Set(slow.map((i) => own.iteration[i]!));
    const peers = [...accounts].filter(([peer]) => peer !== rank);
    const levels = peers.map(([, peer]) => ownLevels(peer, (number) => numbers.has(number)));
    return !isShared(afterMs - beforeMs, beforeMs, commonFactor(levels));
  };
}

/** A further slow rank: so many deviations of the others' own times, and this share of an iteration. */
const BESIDE_SIGMAS = 12;
const BESIDE_SHARE = 0.1;

/**
 * Behind a slower rank nobody waits for a second one: its own time alone shows it, and must show it plainly. Where hardly
 * any is left, operators run beside kernels, and own times say nothing.
 */
function besideFirst(grown: readonly OwnTimeSuspect[], normalMs: number): OwnTimeSuspect[] {
  const least = BESIDE_SHARE * normalMs;
  return grown.filter(
    ({ kind, sigmas, beforeMs, afterMs }) =>
      kind === "slower" &&
      sigmas >= BESIDE_SIGMAS &&
      beforeMs >= least &&
      afterMs - beforeMs >= least,
  );
}

/** Of what slow iterations take longer, at least so much. */
const ALWAYS_SHARE = 0.3;

function isSlowed({ episodes }: TrackedSeries): boolean {
  return episodes.some(({ type, isOpen }) => type === "degradation" && isOpen);
}

/** That nobody keeps the others waiting was looked for: only then is a job that looks healthy known to be. */
function nobodyAhead(
  iterations: number,
  cut: readonly RankOperators[],
  lacks: readonly string[],
): NewFinding {
  return {
    says: `no rank keeps the others waiting: over ${count(iterations, "iteration")} all ${count(cut.length, "rank")} spend about the same time in communication`,
    weight: 0.2,
    at: [{ file: cut[0]!.file }],
    data: { fact: "even-ranks", evenRanks: cut.length, comparedIterations: iterations },
    accuses: [],
    clears: [],
    lacks,
  };
}

/** Nobody can be named, and nobody can say that no rank is slow. */
function uneven(cut: readonly RankOperators[], lacks: readonly string[]): NewFinding {
  const says = `ranks spend different times in communication, and the records do not show which of the ${cut.length} makes the others wait`;
  return {
    says,
    weight: 0.1,
    at: [{ file: cut[0]!.file }],
    data: { fact: "uneven-ranks", unevenRanks: cut.length },
    accuses: [],
    clears: [],
    lacks,
  };
}

/** Said where it matters: the job became slow, and the record does not reach back to before that. */
function tooShort(iterations: number, file: string, lacks: readonly string[]): NewFinding {
  const says = `the recorded operators cover ${count(iterations, "iteration")}, but not three before and three during the slowdown: too few to find the cause by comparison`;
  return {
    says,
    weight: 0.1,
    at: [{ file }],
    data: { fact: "short-record", shortRecord: true },
    accuses: [],
    clears: [],
    lacks: [...lacks, says],
  };
}

function sideOfRank(found: readonly NewFinding[], rank: Rank): "gpu" | "cpu" | null {
  const accusation = found
    .flatMap(({ accuses }) => accuses)
    .find(({ ranks }) => ranks.includes(rank));
  if (accusation?.cause === "gpu-slow") return "gpu";
  return accusation?.cause === "cpu-stall" || accusation?.cause === "dataloader" ? "cpu" : null;
}

/**
 * Whether a suspect that was slow from the start can be compared with anybody: stages of a pipeline differ by their place (the
 * last but one waits least), so that a rank that is a stage by itself has no peers.
 */
function hasPeers(
  { ranks }: Job,
  accounts: ReadonlyMap<Rank, TimeBreakdown>,
): (suspect: OwnTimeSuspect) => boolean {
  const sizes = new Map<number, number>();
  for (const rank of accounts.keys()) {
    const stage = ranks.get(rank)?.stage ?? null;
    if (stage !== null) sizes.set(stage, (sizes.get(stage) ?? 0) + 1);
  }
  return ({ kind, rank }) => {
    const stage = ranks.get(rank)?.stage ?? null;
    return kind !== "always" || stage === null || sizes.size < 2 || sizes.get(stage)! > 1;
  };
}

/** Of a rank in a job that stopped: own time beyond its peers', as a share of an iteration, that is plainly slow. */
const PLAINLY_SLOW = 0.15;
/** A guess about what did not stop the job only distracts from what did. */
const LEAST_SURE = 0.5;

/**
 * Who stopped the job is another question; but who was slow until then has a fault of its own, and does not only wait. Who
 * was slow earlier is as fast as the others again: there is nothing to repair.
 */
function* beforeStop(
  found: readonly SlowFinding[],
  totalMs: number,
  last: number,
): Iterable<NewFinding> {
  for (const { says, weight, at, data, accuses, lacks } of found) {
    const ranks = accuses.flatMap((one) => (one.type === "rank" ? one.ranks : []));
    if (ranks.length === 0 || data.growthMs < PLAINLY_SLOW * totalMs) continue;
    if (weight < LEAST_SURE || last - (data.until ?? last) > LAST_ITERATIONS) continue;
    const fact = { fact: "slow-before-stop", ranks, growthMs: data.growthMs } as const;
    const text = `slow before the job stopped: ${says}`;
    yield { says: text, weight, at, data: fact, accuses: [], clears: [], lacks: lacks ?? [] };
  }
}

/** Iterations, and how long they took, of the rank whose record goes back furthest. */
function reference(accounts: ReadonlyMap<Rank, TimeBreakdown>): {
  iterations: number[];
  totalMs: number[];
} {
  let longest: TimeBreakdown | null = null;
  for (const account of accounts.values())
    if (!longest || account.iteration.length > longest.iteration.length) longest = account;
  const all = [...longest!.iteration.keys()].filter((i) => longest!.iteration[i]! > WARM_UP);
  const kept = all.slice(-MOST_ITERATIONS);
  return {
    iterations: kept.map((i) => longest!.iteration[i]!),
    totalMs: kept.map((i) => longest!.totalMs[i]!),
  };
}

function lacksOf(
  compared: number,
  cut: number,
  ranks: number,
  mismatches: number,
  clocks: ReadonlyMap<Rank, number>,
): string[] {
  const lacks: string[] = [];
  if (ranks > MOST_RANKS) lacks.push(`only ${MOST_RANKS} of ${ranks} ranks were analyzed`);
  else if (cut < ranks)
    lacks.push(
      `the operators of ${count(ranks - cut, "rank")} of ${ranks} show no iterations or carry no durations`,
    );
  if (compared < cut)
    lacks.push(
      `${count(cut - compared, "rank")} of ${ranks} do not go through the same iterations as the others, and were not compared with them`,
    );
  if (mismatches > 0)
    lacks.push(
      `${count(mismatches, "operator")} of a group could not be found in the record of every member: lost from the ring, or the members disagree`,
    );
  const off = [...clocks].filter(([, ms]) => Math.abs(ms) >= CLOCK_OFF_MS);
  if (off.length > 0) {
    const [rank, ms] = off.reduce((a, b) => (Math.abs(b[1]) > Math.abs(a[1]) ? b : a));
    lacks.push(
      `clocks differ: ${rankWords(off.map(([each]) => each))} by up to ${(ms / 1000).toFixed(1)} s (rank ${rank}), measured from when operators ended; times are corrected for it`,
    );
  }
  return lacks;
}

/** null where the ranking agrees, or tells too little to disagree. */
function fromDevices(
  { devices, searched, irregularities }: Attribution,
  found: readonly NewFinding[],
  { lacks }: Witness,
): NewFinding | null {
  const [top] = devices;
  const blamed = new Set(found.flatMap(({ accuses }) => accuses.flatMap(({ ranks }) => ranks)));
  const serves = ({ device }: DeviceScore): boolean =>
    device.ranks.some((rank) => blamed.has(rank));
  if (!top || irregularities < FEWEST || 2 * top.irregularities < irregularities) return null;
  if (serves(top)) return null;
  const best = devices.find(serves);
  if (best && top.score < AHEAD * best.score) return null;
  const says = `single slow iterations point to another device: ${top.device.name} (${top.irregularities} of ${irregularities} searches in ${searched} iterations)`;
  return {
    says,
    weight: 0.2,
    at: found[0]!.at,
    data: { fact: "other-device", disagrees: true, speaksFor: top.device.name },
    accuses: [],
    clears: [],
    lacks,
  };
}
