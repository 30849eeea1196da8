/**
 * host/python-time: what Python did instead of training. A slow-down has to be paid for somewhere: the rank in whose
 * iterations a kind of call grew by as much as the job's iterations did, while its peers' did not, is the one that
 * pays. Communication never accuses: in it a rank waits. Healthy jobs collect garbage and load data, so that without a
 * slow-down only a rank far outside its peers is named, or a share that is far too much for any job.
 */
import { largest, thousandths, mean } from "../../base/numbers.ts";
import { rankWords, count } from "../../base/text.ts";
import { median } from "../../maths/robust.ts";
import type { Accusation, NewFinding } from "../../model/finding.ts";
import type { Method } from "../../model/method.ts";
import { hostTimes, withCalls, type HostTimes } from "./host-times.ts";
import type { CallPurpose } from "../../model/probe.ts";
import type { Job } from "../../model/job.ts";
import type { Episode, TrackedSeries } from "../../model/series.ts";

interface SlowWindow {
  readonly from: number;
  readonly to: number;
  /** How much longer an iteration takes in it, milliseconds. */
  readonly extraMs: number;
  readonly usualMs: number;
  /** Whether an iteration is to be compared with: neither slow nor a pause. */
  isUsual(iteration: number): boolean;
}

const LEAST_SLOW = 3;

/** Communication is never to blame. */
type Blamed = Exclude<CallPurpose, "communication">;

const WORDS: Readonly<Record<Blamed, string>> = {
  "garbage-collection": "garbage collection",
  dataloader: "the data loader",
  synchronization: "new synchronization",
};

/** Loaders are waited for a little in many jobs that nobody would call ill; collections hardly ever. */
const TOO_MUCH = { "garbage-collection": 0.3, dataloader: 0.4 } as const;

type Habit = keyof typeof TOO_MUCH;

/** No peer and no earlier time to compare with. */
const WEIGHT = 0.6;

/** What can be to blame, in the order in which they are asked. */
const BLAMED: readonly Blamed[] = ["garbage-collection", "dataloader", "synchronization"];

/** Of the slow-down: who pays less has only a part in it. */
const PAYS = 0.5;
/** Beside who pays, peers that grew by more than this of it have the same trouble. */
const SHARED = 0.5;
const LEAST_ITERATIONS = 5;

export const pythonTime: Method = {
  id: "host/python-time",
  applies: (job) => withCalls(job).length > 0,
  *run(job) {
    const times = hostTimes(job).filter(({ iteration }) => iteration.length >= LEAST_ITERATIONS);
    if (times.length === 0) return;
    const window = slowWindow(job);
    const found = [...(window ? payers(times, window) : outliers(times))];
    yield* found.length > 0 ? found : commonHabits(times);
  },
};

interface Payer {
  readonly times: HostTimes;
  readonly beforeMs: number;
  readonly growthMs: number;
  /** Calls an iteration, before and in the slow stretch. */
  readonly calls: readonly [number, number];
}

function* payers(times: readonly HostTimes[], window: SlowWindow): Iterable<NewFinding> {
  for (const blamed of BLAMED) {
    const grown = times.flatMap((one) => growthOf(one, blamed, window));
    const paying = grown.filter((one) => isPaying(one, blamed, window));
    if (paying.length === 0) continue;
    const most = largest(
      paying.map(({ growthMs }) => growthMs),
      0,
    );
    const alike = grown.filter(({ growthMs }) => growthMs >= SHARED * most);
    yield payingFinding(blamed, paying, alike.length, times.length, window);
    return;
  }
}

function growthOf(times: HostTimes, blamed: Blamed, window: SlowWindow): Payer[] {
  const usual: number[] = [];
  const slow: number[] = [];
  const counts: [number[], number[]] = [[], []];
  for (const [i, iteration] of times.iteration.entries()) {
    const isSlow = iteration >= window.from && iteration <= window.to;
    // The first has the start of the job in it.
    if (!isSlow && (i === 0 || !window.isUsual(iteration))) continue;
    (isSlow ? slow : usual).push(times.ms[blamed][i]!);
    counts[isSlow ? 1 : 0].push(times.count[blamed][i]!);
  }
  if (slow.length === 0 || usual.length === 0) return [];
  // Means: a collection comes every few iterations, and its cost is that of all of them.
  const beforeMs = mean(usual);
  const growthMs = mean(slow) - beforeMs;
  return [{ times, beforeMs, growthMs, calls: [median(counts[0]), median(counts[1])] }];
}

function isPaying({ growthMs, calls }: Payer, blamed: Blamed, { extraMs }: SlowWindow): boolean {
  if (growthMs < PAYS * extraMs) return false;
  // Who synchronised before, too, waits longer for what others make slow.
  return blamed !== "synchronization" || (calls[0] === 0 && calls[1] > 0);
}

function payingFinding(
  blamed: Blamed,
  paying: readonly Payer[],
  alike: number,
  all: number,
  window: SlowWindow,
): NewFinding {
  const ranks = paying.map(({ times }) => times.rank);
  const worst = paying.reduce((most, one) => (one.growthMs > most.growthMs ? one : most));
  // Where nearly all pay it is the program or the storage behind it; a rank alone says nothing of that.
  const isAll = all > 1 && alike >= 0.75 * all;
  const isFew = all > 1 && paying.length * 3 <= all;
  const call = worst.times.name[blamed];
  const by = `${worst.beforeMs.toFixed(1)} ms → ${(worst.beforeMs + worst.growthMs).toFixed(1)} ms per iteration`;
  const who = isAll
    ? "all ranks spend"
    : `${rankWords(ranks)} ${ranks.length === 1 ? "spends" : "spend"}`;
  const in_ = call === "" ? "" : ` (${call})`;
  const why = `${who} the slowdown's extra ${window.extraMs.toFixed(1)} ms in ${WORDS[blamed]}${in_} since iteration ${window.from}: ${by}${isAll ? "" : "; their peers do not"}`;
  const weight = isAll ? 0.75 : isFew ? 0.88 : 0.7;
  const accuse = (list: readonly number[]): Accusation => ({
    kind: "fail-slow",
    type: list.length > 0 ? "rank" : blamed === "dataloader" ? "data" : "code",
    ranks: list,
    link: null,
    cause: blamed,
    weight,
    why,
  });
  return {
    says: why,
    weight,
    at: paying.slice(0, 4).map(({ times }) => ({ file: times.file })),
    data: {
      fact: "python-time",
      purpose: blamed,
      from: window.from,
      extraMs: thousandths(window.extraMs),
      growthMs: Object.fromEntries(
        paying.map(({ times, growthMs }) => [times.rank, thousandths(growthMs)]),
      ),
    },
    accuses: isAll ? [accuse([])] : ranks.map((rank) => accuse([rank])),
    clears: [],
  };
}

/** Share of its iterations above that of every peer. */
const FAR_OUTSIDE = 0.15;
const LEAST_PEERS = 3;

/** Without a slow-down: a rank was like this from the start, and its peers wait for it. */
function* outliers(times: readonly HostTimes[]): Iterable<NewFinding> {
  if (times.length <= LEAST_PEERS) return;
  for (const blamed of ["garbage-collection", "dataloader"] as const) {
    const shares = times.map((one) => ({ one, share: shareOf(one, blamed) }));
    shares.sort((a, b) => b.share - a.share || a.one.rank - b.one.rank);
    const [first, second] = shares as [(typeof shares)[0], (typeof shares)[0]];
    const typical = median(shares.slice(1).map(({ share }) => share));
    // Far above the next, and above what peers differ by among themselves.
    if (first.share < second.share + FAR_OUTSIDE) continue;
    if (first.share - second.share < 2 * (second.share - typical)) continue;
    const { rank, file } = first.one;
    const call = first.one.name[blamed];
    const why = `rank ${rank} spends ${percent(first.share)} of its iterations in ${WORDS[blamed]}${call === "" ? "" : ` (${call})`}, its peers ${percent(second.share)} at most`;
    const weight = 0.55;
    yield {
      says: why,
      weight,
      at: [{ file }],
      data: {
        fact: "python-time",
        purpose: blamed,
        share: thousandths(first.share),
        peers: thousandths(second.share),
      },
      accuses: [
        { kind: "fail-slow", type: "rank", ranks: [rank], link: null, cause: blamed, weight, why },
      ],
      clears: [],
    };
    return;
  }
}

/**
 * All ranks alike, and none slower than before: peers and history show nothing. But iterations that go to garbage
 * collection or to waiting for data by such shares are no healthy job's, whatever its peers do.
 */
function* commonHabits(times: readonly HostTimes[]): Iterable<NewFinding> {
  for (const habit of Object.keys(TOO_MUCH) as Habit[]) {
    const shares = times.map((one) => lastingShare(one, habit));
    const typical = median(shares);
    if (typical >= TOO_MUCH[habit]) yield habitFinding(times, habit, shares, typical);
  }
}

/** In both halves of what was seen: one long wait (a new epoch, a cold cache) is no habit. */
function lastingShare(times: HostTimes, habit: Habit): number {
  const middle = Math.ceil((times.durationMs.length + 1) / 2);
  return Math.min(shareOf(times, habit, 1, middle), shareOf(times, habit, middle));
}

function habitFinding(
  times: readonly HostTimes[],
  habit: Habit,
  shares: readonly number[],
  typical: number,
): NewFinding {
  const concerned = times.filter((_, i) => shares[i]! >= TOO_MUCH[habit]);
  const ranks = concerned.map(({ rank }) => rank);
  const call = concerned[0]?.name[habit] ?? "";
  const who = times.length === 1 ? `rank ${times[0]!.rank} spends` : "the ranks, all alike, spend";
  const of = times.length === 1 ? "its" : "their";
  const some =
    ranks.length < times.length ? ` (${ranks.length} of ${count(times.length, "rank")})` : "";
  const why = `${who} ${percent(typical)} of ${of} iterations in ${WORDS[habit]}${call === "" ? "" : ` (${call})`}${some}: a healthy job spends less than ${percent(TOO_MUCH[habit])}`;
  return {
    says: why,
    weight: WEIGHT,
    at: concerned.slice(0, 4).map(({ file }) => ({ file })),
    data: { fact: "python-time", purpose: habit, share: thousandths(typical), ranks },
    accuses: [
      {
        kind: "regression",
        type: habit === "dataloader" ? "data" : "code",
        ranks,
        link: null,
        cause: habit,
        weight: WEIGHT,
        why,
      },
    ],
    clears: [],
  };
}

/**
 * What part of its iterations a rank spends in one kind of call, and how that is said.
 * Of iterations `from` to `to` (exclusive); the first has the start of the job in it.
 */
function shareOf(times: HostTimes, blamed: Blamed, from = 1, to = Infinity): number {
  const sum = (values: readonly number[]): number =>
    values.slice(from, to).reduce((total, one) => total + one, 0);
  const total = sum(times.durationMs);
  return total > 0 ? sum(times.ms[blamed]) / total : 0;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(0)} %`;
}

/**
 * Which iterations of the job were slow, and which were as they should be, as the tracker saw them.
 * The worst stretch that any series shows; null where all are even. Single spikes are nobody's habit.
 */
function slowWindow(job: Job): SlowWindow | null {
  let worst: { tracked: TrackedSeries; episode: Episode } | null = null;
  for (const tracked of job.iterations) {
    for (const episode of tracked.episodes) {
      if (episode.type === "spike" || episode.iterations < LEAST_SLOW) continue;
      if (!worst || episode.wastedMs > worst.episode.wastedMs) worst = { tracked, episode };
    }
  }
  if (!worst) return null;
  const { tracked, episode } = worst;
  const usualMs = tracked.medianMs;
  const before = tracked.changePoints.find(
    ({ direction, iteration }) => direction === "slower" && iteration <= episode.to,
  );
  const level = before?.beforeMs ?? usualMs;
  const pauses = new Set(tracked.pauses.map(({ iteration }) => iteration));
  return {
    from: episode.from,
    to: episode.isOpen ? Infinity : episode.to,
    extraMs: level * (episode.ratio - 1),
    usualMs: level,
    isUsual: (iteration) =>
      !pauses.has(iteration) &&
      tracked.episodes.every(
        ({ from, to, isOpen }) => iteration < from || (!isOpen && iteration > to),
      ),
  };
}
