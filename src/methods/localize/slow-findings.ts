/** What the localizer found, in words, with how sure it is. */
import { groupBy } from "../../base/group-by.ts";
import { rankWords } from "../../base/text.ts";
import { median } from "../../maths/robust.ts";
import type { SlowDevice, SlowRank, SlowTimes } from "../../model/facts.ts";
import type { Accusation, NewFinding } from "../../model/finding.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { RankOperators } from "../../model/rank-operators.ts";
import { WARM_UP, type TimeBreakdown } from "./time-breakdown.ts";
import type { OwnTimeSuspect } from "./own-time.ts";
import type { Device } from "./progressive/narrow.ts";
import type { Culprit } from "./progressive/progressive.ts";
import { cpuOrGpu } from "./cpu-or-gpu.ts";
import type { SlowOnWire } from "./slow-on-wire.ts";
import type { SlowIterations } from "./slow-iterations.ts";
import type { Located } from "./slow-ranks.ts";
import type { UnseenPeer } from "./unseen-peer.ts";

/** A rank or a device that makes the job slow. */
export type SlowFinding = NewFinding<SlowRank | SlowDevice>;

export interface Witness {
  readonly job: Job;
  readonly cut: readonly RankOperators[];
  readonly accounts: ReadonlyMap<Rank, TimeBreakdown>;
  /** Share of the ranks that left operators with durations. */
  readonly seen: number;
  /** What was not there and makes the answer less sure, a sentence each. */
  readonly lacks: readonly string[];
  /** Milliseconds that ranks' clocks are ahead. */
  readonly clocks: ReadonlyMap<Rank, number>;
  /** Iterations that were compared, where that is known. */
  readonly iterations?: number | undefined;
  /** By iteration, what the others lose to a rank's late calls. */
  readonly lost?: ReadonlyMap<Rank, Float64Array>;
}

/** Records with gaps and contradictions: what is left of the certainty. */
const WITH_GAPS = 0.9;
/** A rank that left no record may be the one that all wait for, and a rank that waits a little less for it looks suspect. */
const SOME_UNSEEN = 0.7;
/** A handful of iterations may all be odd. */
const FEW_ITERATIONS = 8;
const SHORT_RECORD = 0.5;

function sureness({ seen, lacks, iterations }: Witness): number {
  const isShort = iterations !== undefined && iterations < FEW_ITERATIONS;
  const ofSeen = (0.6 + 0.4 * seen) * (seen < 1 ? SOME_UNSEEN : 1);
  return ofSeen * (lacks.length > 0 ? WITH_GAPS : 1) * (isShort ? SHORT_RECORD : 1);
}

export function* fromSearch(
  located: Located,
  slow: SlowIterations,
  own: readonly OwnTimeSuspect[],
  witness: Witness,
): Iterable<SlowFinding> {
  const slowNumbers = (account: TimeBreakdown): number[] =>
    [...account.iteration.keys()].filter((i) => slow.isSlow(account.iteration[i]!));
  const blamed = located.ranks.map(({ rank }) => rank);
  for (const { rank, votes, searched, growthMs } of located.ranks) {
    const account = witness.accounts.get(rank)!;
    const suspect = own.find((other) => other.rank === rank && other.kind !== "always");
    const base = { rank, kind: "slower" as const, iteration: slow.from, until: slow.until };
    const times = { beforeMs: 0, afterMs: growthMs, sigmas: 0, slow: slowNumbers(account) };
    const certainty = (suspect ? 0.97 : 0.9) * (0.7 + 0.3 * located.agreement);
    const longer = `its own time is ${growthMs.toFixed(1)} ms longer in slow iterations`;
    const says =
      votes > 0
        ? `the waiting of ${votes} of ${searched} ranks leads to rank ${rank}, and ${longer}`
        : `the same holds for rank ${rank}: ${longer}`;
    const found = dated(suspect ?? { ...base, ...times }, account);
    yield findingOf(found, says, certainty, blamed, witness);
  }
}

export function* fromOwnTimes(
  own: readonly OwnTimeSuspect[],
  witness: Witness,
): Iterable<SlowFinding> {
  const blamed = own.map(({ rank }) => rank);
  for (const found of own) {
    const suspect = datedByPace(dated(found, witness.accounts.get(found.rank)), witness.job);
    const { rank, kind, iteration, until, beforeMs, afterMs, sigmas, paceMs } = suspect;
    const grew = `${beforeMs.toFixed(1)} → ${afterMs.toFixed(1)} ms outside communication`;
    const apart = `${afterMs.toFixed(1)} ms of an iteration outside communication, its peers ${beforeMs.toFixed(1)} ms`;
    const says = {
      slower:
        paceMs !== undefined
          ? `rank ${rank} spends ${apart}, in all recorded iterations; before iteration ${iteration} whole iterations took ${paceMs.toFixed(1)} ms`
          : `rank ${rank}'s own time grew in iteration ${iteration} (${grew})${until === null ? "" : `, until ${until}`}; the others' did not`,
      always: `rank ${rank} spends ${apart}, in all recorded iterations`,
      spikes: `rank ${rank}'s own time jumps in ${suspect.slow.length} iterations between ${iteration} and ${until} (${grew}); the others' does not`,
    }[kind];
    const certainty = Math.min(0.97, 1 - 0.5 * Math.exp(-sigmas / 6)) * habitOf(suspect);
    yield findingOf(suspect, says, certainty, blamed, witness);
  }
}

/** Iterations on either side of a step: fewer separate by chance; and how much longer they must be. */
const LEAST_BESIDE = 3;
const STEP = 1.05;
/** Two before it will do where it is plain. */
const PLAIN_STEP = 1.2;

/**
 * A rank whose own time shows a clean step, where no iteration before it is nearly as long as any after it: the step tells
 * since when the rank is slow, better than the waiting of others does, and where the job's total is too noisy.
 */
export function dated(suspect: OwnTimeSuspect, account: TimeBreakdown | undefined): OwnTimeSuspect {
  if (suspect.kind === "spikes" || suspect.until !== null || !account) return suspect;
  const known = [...account.iteration.keys()].filter((i) => account.iteration[i]! > WARM_UP);
  const own = known.map((i) => account.ownMs[i]!);
  for (let at = LEAST_BESIDE - 1; at + LEAST_BESIDE <= own.length; at++) {
    const [beforeMs, afterMs] = [median(own.slice(0, at)), median(own.slice(at))];
    const middle = (beforeMs + afterMs) / 2;
    const least = at < LEAST_BESIDE ? PLAIN_STEP : STEP;
    if (!(afterMs > least * beforeMs) || Math.max(...own.slice(0, at)) >= middle) continue;
    if (Math.min(...own.slice(at)) <= middle) continue;
    const iteration = account.iteration[known[at]!]!;
    return { ...suspect, kind: "slower", iteration, beforeMs, afterMs, slow: known.slice(at) };
  }
  return suspect;
}

/** Of what iterations became longer by, the least that the rank must be ahead of its peers. */
const EXPLAINS_PACE = 0.5;

/**
 * A rank that works longer in an iteration than whole iterations took before was not always slow: it became slow when they
 * became longer, which logs tell also where the operators from before are overwritten.
 */
export function datedByPace(
  suspect: OwnTimeSuspect,
  { iterations }: Pick<Job, "iterations">,
): OwnTimeSuspect {
  if (suspect.kind !== "always") return suspect;
  const { beforeMs: peersMs, afterMs: ownMs } = suspect;
  for (const { series, episodes, changePoints } of iterations) {
    // Ratios and others' parts of iterations are no milliseconds of whole ones.
    if (series.isRelative === true || series.areTimes === true) continue;
    const open = episodes.find(({ type, isOpen }) => type === "degradation" && isOpen);
    const change = changePoints.find(
      (one) => open && one.iteration >= open.from && one.direction === "slower",
    );
    if (!open || !change || !(ownMs > change.beforeMs)) continue;
    if (ownMs - peersMs < EXPLAINS_PACE * (change.afterMs - change.beforeMs)) continue;
    return { ...suspect, kind: "slower", iteration: open.from, paceMs: change.beforeMs };
  }
  return suspect;
}

/** Two spikes of one rank within a ring of eight iterations come by chance: two of some hundred healthy simulated jobs had them. */
function habitOf({ kind, slow }: OwnTimeSuspect): number {
  if (kind === "slower") return 1;
  return kind === "spikes" && slow.length < 3 ? 0.2 : 0.9;
}

function findingOf(
  suspect: OwnTimeSuspect,
  says: string,
  certainty: number,
  blamed: readonly Rank[],
  witness: Witness,
): SlowFinding {
  const { cut, accounts, lacks } = witness;
  const { rank, iteration, until } = suspect;
  const operators = cut.find((other) => other.rank === rank)!;
  const side = cpuOrGpu(suspect, accounts.get(rank)!, operators, witness);
  const [issueBefore, issueAfter] = side.issueMs;
  const how =
    side.cause === "gpu-slow"
      ? side.isToldApart
        ? "its CPU does not issue calls as late as the others wait, so the GPU is slow"
        : "its CPU issues calls as late as the others wait: the CPU is slow, or it waits for a slow GPU"
      : `its CPU takes ${issueAfter.toFixed(0)} ms to issue an iteration's operators instead of ${issueBefore.toFixed(0)} ms`;
  // A short record is long enough where logs tell of the time before it.
  const seen = suspect.paceMs === undefined ? witness : { ...witness, iterations: undefined };
  const weight = certainty * side.certainty * sureness(seen);
  const { cause } = side;
  const facts = { kind: "fail-slow", type: "rank", ranks: [rank], link: null, cause } as const;
  return {
    says,
    weight,
    at: [{ file: operators.file }],
    data: {
      fact: "slow-rank",
      ...times(operators, iteration, until, witness),
      growthMs: round(suspect.afterMs - suspect.beforeMs),
      ownMs: ownTimes(suspect, accounts.get(rank)!).map(round),
      issueMs: side.issueMs.map(round),
    },
    accuses: [{ ...facts, weight, why: `${says}; ${how}` }],
    clears: onlyWaiting(accounts, blamed),
    lacks,
  };
}

/** Own time above that of peers, as a share of an iteration, with which a rank does not only wait. */
const WORKS_LONGER = 0.1;

/** Who is not blamed and does no more than ranks that run the same program: a second slow rank may hide behind the first. */
function onlyWaiting(accounts: ReadonlyMap<Rank, TimeBreakdown>, blamed: readonly Rank[]): Rank[] {
  const levels = [...accounts].map(([rank, { ownMs, totalMs, program }]) => {
    const [last, shortest] = [ownMs.subarray(ownMs.length >> 1), Math.min(...totalMs)];
    return { rank, program, own: median(last), leastMs: WORKS_LONGER * shortest };
  });
  const usual = new Map(
    [...groupBy(levels, ({ program }) => program)].map(
      ([program, peers]) => [program, median(peers.map(({ own }) => own))] as const,
    ),
  );
  return levels
    .filter(({ rank, program, own, leastMs }) => {
      return !blamed.includes(rank) && own - usual.get(program)! < leastMs;
    })
    .map(({ rank }) => rank);
}

/** A rank's time outside communication, usually and in its slow iterations: how much slower it became. */
function ownTimes({ slow }: OwnTimeSuspect, { ownMs, iteration }: TimeBreakdown): [number, number] {
  const isSlow = new Set(slow);
  const of = (wanted: boolean): number =>
    median([...ownMs].filter((_, i) => iteration[i]! > WARM_UP && isSlow.has(i) === wanted));
  return [of(false), of(true)];
}

/** A device that explains what is slow and is contradicted by nothing; a whole group is a poor answer. */
const OF_GROUP = 0.6;
/** A link that is all that either NIC at its ends serves. */
const AMBIGUOUS = 0.75;
/** Measured where it is slow, in every one of several iterations. */
const ON_WIRE = 0.93;

export function fromNetwork(
  { device, growthMs, votes, pivots }: Culprit,
  slow: SlowIterations,
  witness: Witness,
): SlowFinding {
  const says = `communication itself is slow: over ${deviceWords(device!, witness.job)} even the last rank to arrive stays longer, by ${growthMs.toFixed(1)} ms per iteration`;
  return networkFinding(device!, says, 0.85 + 0.1 * (votes / pivots), slow, growthMs, witness);
}

/** Since the start, by comparison with groups that do as much (Greyhound §4.3). */
export function fromPeers(
  { device, ratio, growthMs }: { device: Device; ratio: number; growthMs: number },
  witness: Witness,
): SlowFinding {
  const says = `communication over ${deviceWords(device, witness.job)} takes ${ratio.toFixed(1)} times as long as in groups that do the same work, in all recorded iterations`;
  const always = { isSlow: () => true, from: null, until: null, isLasting: true };
  return networkFinding(device, says, surenessOfRatio(ratio), always, growthMs, witness);
}

/** Groups that do as much differ by up to twice where a network is built unevenly; ten times is no matter of building. */
const SURE_AT_TWICE = 0.7;
const SUREST = 0.95;

function surenessOfRatio(ratio: number): number {
  return SUREST - (SUREST - SURE_AT_TWICE) * Math.min(1, 2 / ratio);
}

/** A rank that is not seen may be what the last one to arrive waits for, and fewer groups show less of what is usual. */
const UNSEEN = 0.5;

function networkFinding(
  device: Device,
  says: string,
  certainty: number,
  slow: SlowIterations,
  growthMs: number,
  witness: Witness,
): SlowFinding {
  const { job, cut, lacks } = witness;
  const { explains, contradicts } = device;
  const isGroup = device.kind === "group" && device.ranks.length > 2;
  const weight =
    certainty *
    (isGroup ? OF_GROUP : 1) *
    (Math.max(1, explains) / Math.max(1, explains + contradicts)) *
    (device.isAmbiguous ? AMBIGUOUS : 1) *
    (witness.seen < 1 ? UNSEEN : 1) *
    sureness(witness);
  const operators = cut.find(({ rank }) => device.ranks.includes(rank)) ?? cut[0]!;
  return {
    says,
    weight,
    at: [{ file: operators.file }],
    data: {
      fact: "slow-device",
      ...times(operators, slow.from, slow.until, witness),
      growthMs: round(growthMs),
      device: device.name,
      explains,
      contradicts,
    },
    accuses: [{ ...suspectOf(device, job), cause: "network-slow", weight, why: says }],
    clears: [],
    lacks,
  };
}

/** A link or NIC on which sends stay too long, whoever waits for it. */
export function fromWire(
  found: SlowOnWire,
  { from, isLasting }: SlowIterations,
  fromMs: number,
  file: string,
  job: Job,
): SlowFinding {
  const { kind, ranks, slow, of, beforeMs, afterMs, compared, isAmbiguous } = found;
  const device: Device = {
    kind,
    name: kind === "nic" ? `nic of rank ${ranks[0]}` : `link ${ranks.join("–")}`,
    ranks,
    explains: slow.length,
    contradicts: 0,
    isAmbiguous,
  };
  const others = compared > ranks.length ? `; that of the other links is as usual` : "";
  const says = `what is sent over ${deviceWords(device, job)} is on the wire for ${afterMs.toFixed(1)} ms instead of ${beforeMs.toFixed(1)} ms in ${slow.length} of ${of} slow iterations${others}`;
  const weight = ON_WIRE * (isAmbiguous ? AMBIGUOUS : 1);
  return {
    says,
    weight,
    at: [{ file }],
    data: {
      fact: "slow-device",
      slowDown: true,
      iteration: isLasting ? (from ?? 1) : slow[0]!,
      until: null,
      from: Number.isFinite(fromMs) ? new Date(fromMs).toISOString() : null,
      to: null,
      growthMs: round(afterMs - beforeMs),
      ...(isLasting ? {} : { slowIterations: [...slow] }),
      device: device.name,
      explains: slow.length,
      contradicts: 0,
    },
    accuses: [{ ...suspectOf(device, job), cause: "network-slow", weight, why: says }],
    clears: [],
  };
}

function suspectOf(
  device: Device,
  job: Job,
): Pick<Accusation, "kind" | "type" | "ranks" | "link" | "name"> {
  const { kind, ranks, name } = device;
  if (kind === "leaf") {
    const under = [...job.ranks.values()].filter(({ leaf }) => leaf === name);
    const all = under.length > 0 ? under.map(({ rank }) => rank) : ranks;
    return { kind: "fail-slow", type: "switch", ranks: all, link: null, name };
  }
  const machines = [...new Set(ranks.map((rank) => job.ranks.get(rank)?.machine ?? null))];
  const [one = null, other = null] = machines;
  const areOn = [...job.ranks.values()].filter(({ machine }) => machines.includes(machine));
  const all = one === null ? ranks : areOn.map(({ rank }) => rank);
  if (kind === "machine")
    return { kind: "fail-slow", type: "nic", ranks: all, link: null, name: null };
  if (kind === "machine-link" && one !== null && other !== null)
    return { kind: "fail-slow", type: "link", ranks: all, link: [one, other], name: null };
  if (ranks.length === 2) {
    const link = [`rank:${ranks[0]}`, `rank:${ranks[1]}`] as const;
    return { kind: "fail-slow", type: "link", ranks, link, name: null };
  }
  const nic = ranks.length === 1 ? (job.ranks.get(ranks[0]!)?.nic ?? null) : null;
  return { kind: "fail-slow", type: "nic", ranks, link: null, name: nic };
}

function deviceWords({ kind, ranks, name }: Device, job: Job): string {
  if (kind === "leaf") return `switch ${name}`;
  if (kind === "nic") {
    const nic = job.ranks.get(ranks[0]!)?.nic;
    return `the NIC of rank ${ranks[0]}${nic ? ` (${nic})` : ""}`;
  }
  if (ranks.length === 2) return `the link between ranks ${ranks[0]} and ${ranks[1]}`;
  if (kind === "machine") {
    const machine = job.ranks.get(ranks[0]!)?.machine;
    return machine ? `the NICs of ${machine}` : `the NICs of ${rankWords(ranks)}, one machine`;
  }
  if (kind === "machine-link") {
    const ends = new Set(ranks.flatMap((rank) => job.ranks.get(rank)?.machine ?? []));
    if (ends.size === 2) return `the links between ${[...ends].join(" and ")}`;
  }
  return `the group of ${rankWords(ranks)}`;
}

/** Whom everybody waits for, and who left nothing to judge by: its GPU, its CPU or its link. */
export function fromUnseen(
  { ranks, votes, pivots, growthMs }: Culprit,
  slow: SlowIterations,
  witness: Witness,
): SlowFinding {
  const { cut, accounts, lacks } = witness;
  const says = `the waiting of ${votes} of ${pivots} ranks leads to ${rankWords(ranks)}, which left no operator records: ${growthMs.toFixed(1)} ms per iteration`;
  const weight = 0.6 / ranks.length;
  const facts = { kind: "fail-slow", type: "rank", link: null, cause: "unknown" } as const;
  return {
    says,
    weight: 0.6,
    at: [{ file: cut[0]!.file }],
    data: {
      fact: "slow-rank",
      ...times(cut[0]!, slow.from, slow.until, witness),
      growthMs: round(growthMs),
    },
    accuses: [{ ...facts, ranks, weight: Math.max(weight, 0.35), why: says }],
    clears: [...accounts.keys()],
    lacks: [
      ...lacks,
      `${rankWords(ranks)} left no operator records, so it is unknown whether computation or communication is slow there`,
    ],
  };
}

/** By exclusion: its GPU is the likeliest of what computes slowly, but nothing of its own shows that. */
const BY_EXCLUSION = 0.5;

/**
 * The one of a group whose record is missing, and whom all the others of it wait for. If they wait in a few operators
 * only, it may itself wait for data or for a link: the finding says so and accuses no rank.
 */
export function fromUnseenPeer(
  { rank, waiting, growthMs, isThroughout }: UnseenPeer,
  witness: Witness,
): SlowFinding {
  const { cut, accounts, lacks } = witness;
  const says = `${rankWords(waiting)} wait for rank ${rank}, which left no operator records: their operators with it take ${growthMs.toFixed(1)} ms per iteration longer than those of groups that do the same work`;
  const weight = isThroughout ? BY_EXCLUSION : 0.2;
  const operators = cut.find((one) => waiting.includes(one.rank)) ?? cut[0]!;
  return {
    says,
    weight,
    at: [{ file: operators.file }],
    data: {
      fact: "slow-rank",
      ...times(operators, null, null, witness),
      growthMs: round(growthMs),
    },
    accuses: isThroughout
      ? [
          {
            kind: "fail-slow",
            type: "rank",
            ranks: [rank],
            link: null,
            cause: "gpu-slow",
            weight,
            why: `${says}, in most of their operators, as with a device that computes slowly`,
          },
        ]
      : [],
    clears: isThroughout ? [...accounts.keys()] : [],
    lacks: [
      ...lacks,
      `rank ${rank} left no operator records: the cause is inferred from how its peers wait`,
    ],
  };
}

/** When: for the verdict. Slow from the start means since the first iteration. */
function times(
  { rank, iteration, startMs, durationMs }: RankOperators,
  from: number | null,
  until: number | null,
  { clocks }: Witness,
): SlowTimes {
  const at = (index: number, plus: number): string | null => {
    const ms = (startMs[index] ?? NaN) + plus - (clocks.get(rank) ?? 0);
    return Number.isFinite(ms) ? new Date(ms).toISOString() : null;
  };
  const last = until === null ? -1 : iteration.indexOf(until);
  return {
    slowDown: true,
    sinceStart: from === null,
    recordFrom: iteration[0] ?? null,
    iteration: from ?? 1,
    until,
    from: at(from === null ? 0 : iteration.indexOf(from), 0),
    to: last < 0 ? null : at(last, durationMs[last]!),
  };
}

function round(value: number): number {
  return Number(value.toPrecision(5));
}
