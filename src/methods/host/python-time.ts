/**
 * host/python-time: what Python did instead of training. A slow-down has to be paid for somewhere: the rank in whose
 * iterations a kind of call grew by as much as the job's iterations did, while its peers' did not, is the one that
 * pays. Communication never accuses: in it a rank waits. Healthy jobs collect garbage and load data, so that without a
 * slow-down only a rank far outside its peers is named, or a share that is far too much for any job (common-habits.ts).
 */
import { largest } from "../../base/numbers.ts";
import { rankWords } from "../../base/text.ts";
import { median } from "../../maths/robust.ts";
import type { Accusation, NewFinding } from "../../model/finding.ts";
import type { Method } from "../../model/method.ts";
import { commonHabits } from "./common-habits.ts";
import { hostTimes, withCalls, type HostTimes } from "./host-times.ts";
import { percent, round, shareOf, WORDS, type Blamed } from "./shares.ts";
import { slowWindow, type SlowWindow } from "./slow-windows.ts";

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
  const by = `${worst.beforeMs.toFixed(1)} ms → ${(worst.beforeMs + worst.growthMs).toFixed(1)} ms an iteration`;
  const who = isAll
    ? "all ranks spend"
    : `${rankWords(ranks)} ${ranks.length === 1 ? "spends" : "spend"}`;
  const in_ = call === "" ? "" : ` (${call})`;
  const why = `${who} the slow-down's ${window.extraMs.toFixed(1)} ms in ${WORDS[blamed]}${in_} since iteration ${window.from}: ${by}${isAll ? "" : ", their peers do not"}`;
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
      extraMs: round(window.extraMs),
      growthMs: Object.fromEntries(
        paying.map(({ times, growthMs }) => [times.rank, round(growthMs)]),
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
        share: round(first.share),
        peers: round(second.share),
      },
      accuses: [
        { kind: "fail-slow", type: "rank", ranks: [rank], link: null, cause: blamed, weight, why },
      ],
      clears: [],
    };
    return;
  }
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
