/**
 * The link or NIC on which what is sent stays too long, by the time that proxies have it on the wire. A ring all-reduce ends
 * for all members at once, whichever of its hops is slow, so that durations of operators name the group alone. But the sends
 * of healthy hops are through at once: what they wait for is their own GPU, or the peer's credit
 * (test/support/methods/timed-proxies.ts has NCCL's rules). The hop that explains what iterations lost is found in each of
 * the slow ones alone, and those that speak for it are counted (Holmes §4.4): hiccups of others speak for others. Where
 * communication overlaps with computation, part of what one iteration is late is lost in the next.
 */
import { groupBy } from "../../base/group-by.ts";
import { median, spread } from "../../maths/robust.ts";
import type { Rank } from "../../model/ids.ts";
import type { LivePoints } from "../../model/live-points.ts";
import type { WireTime, WireTimes } from "../../model/wire-times.ts";
import { HABIT } from "./of-one-culprit.ts";
import type { SlowIterations } from "./slow-iterations.ts";

export interface SlowOnWire {
  readonly kind: "link" | "nic";
  /** Both ends, ascending; of a NIC its rank alone. */
  readonly ranks: readonly Rank[];
  /** Slow iterations that it explains, and those that were looked at. */
  readonly slow: readonly number[];
  readonly of: number;
  /** On the wire, of its slowest direction. */
  readonly beforeMs: number;
  readonly afterMs: number;
  /** Directions that were compared. */
  readonly compared: number;
  /** All that goes through the NIC at one end goes over this link: it may be that NIC. */
  readonly isAmbiguous: boolean;
}

/** Share of what an iteration lost that a hop must have been longer on the wire, and of its own usual time (as tests have it). */
const OF_LOST = 0.5;
const SLOWER = 1.2;
/** Deviations of its usual time. */
const SIGMAS = 5;
/** Iterations that tell what is usual. */
const LEAST_NORMAL = 3;
/** Directions that are slow nearly as often as the one that is most often are slow together with it. */
const AS_OFTEN = 0.5;

interface Hop {
  readonly one: WireTime;
  readonly usualMs: number;
  /** Iterations, by place, in which it was too long on the wire. */
  readonly hits: readonly number[];
}

export interface OnWire {
  readonly found: SlowOnWire | null;
  /** Of a link (both ends) or a NIC: that all of it that is known is as usual in the slow iterations. */
  isFine(this: void, ranks: readonly Rank[]): boolean;
}

export function lookOnWire(
  times: WireTimes,
  points: Pick<LivePoints, "iterations" | "ranks" | "durationMs">,
  slow: SlowIterations,
): OnWire {
  const { hops, lateOf, slowPlaces } = hopsOf(times, points, slow);
  return {
    found: slowestOf(hops, lateOf, slowPlaces, times.iterations, slow.isLasting),
    isFine(ranks) {
      const [a = -1, b] = ranks;
      const own = hops.filter(({ one: { from, to } }) =>
        b === undefined
          ? from === a || to === a
          : (from === a && to === b) || (from === b && to === a),
      );
      // What costs too little to be the reason may still be slow: then something else of that NIC is the reason.
      return (
        own.every(({ usualMs, one }) => slowPlaces.every((i) => one.ms[i]! < SLOWER * usualMs)) &&
        own.length > 0
      );
    },
  };
}

/** Each direction with the iterations in which it was too long on the wire; which late iteration those made late. */
function hopsOf(
  { iterations, links }: WireTimes,
  points: Parameters<typeof lookOnWire>[1],
  { isSlow }: SlowIterations,
): {
  readonly hops: readonly Hop[];
  readonly lateOf: readonly (number | undefined)[];
  readonly slowPlaces: readonly number[];
} {
  const totalMs = Array.from(iterations, (number) => typicalOf(points, number));
  const places = [...iterations.keys()];
  const slow = new Set(places.filter((i) => isSlow(iterations[i]!)));
  /** The slow one that lost time because of what happened in this one, or may have: itself, or the next. */
  const lateOf = places.map((i) =>
    [i, i + 1].find((at) => slow.has(at) && iterations[at]! - iterations[i]! <= 1),
  );
  const normal = places.filter((i) => totalMs[i]! > 0 && lateOf[i] === undefined);
  const healthyMs = median(normal.map((i) => totalMs[i]!));
  const lost = [...slow].map((i) => totalMs[i]! - healthyMs);
  // Others may be among the slow ones, too few to be called a stretch or a pattern: those are as late as the rest.
  const lostMs = places.map((i) =>
    lateOf[i] === undefined ? median(lost) : totalMs[lateOf[i]]! - healthyMs,
  );
  const hops = links.map((one): Hop => {
    const usual = normal.map((i) => one.ms[i]!).filter((ms) => ms > 0);
    const usualMs = median(usual);
    const leastMs = Math.max((SLOWER - 1) * usualMs, SIGMAS * spread(usual, usualMs));
    const isHit = (i: number): boolean => {
      const moreMs = one.ms[i]! - usualMs;
      return lostMs[i]! > 0 && moreMs >= OF_LOST * lostMs[i]! && moreMs >= leastMs;
    };
    return { one, usualMs, hits: usual.length < LEAST_NORMAL ? [] : places.filter(isHit) };
  });
  return { hops, lateOf, slowPlaces: [...slow] };
}

function slowestOf(
  hops: readonly Hop[],
  lateOf: readonly (number | undefined)[],
  slow: readonly number[],
  iterations: Float64Array,
  isLasting: boolean,
): SlowOnWire | null {
  const first = mostHit(hops);
  if (!first || first.hits.length < HABIT) return null;
  // Where all are slow since one, half of those speak for it.
  const explained = first.hits.filter((i) => lateOf[i] !== undefined).length;
  if (explained < (isLasting ? slow.length / 2 : 1)) return null;
  const own = new Set(first.hits);
  const together = hops.filter(
    ({ hits }) => hits.filter((i) => own.has(i)).length >= AS_OFTEN * own.size,
  );
  const device = deviceOf(together, hops, first.hits);
  if (!device) return null;
  return {
    ...device,
    slow: [...new Set(first.hits.flatMap((i) => lateOf[i] ?? []))].map((i) => iterations[i]!),
    of: slow.length,
    beforeMs: first.usualMs,
    afterMs: median(first.hits.map((i) => first.one.ms[i]!)),
    compared: hops.length,
  };
}

/** What an iteration took on most ranks; NaN where it is not known. */
function typicalOf(
  { iterations, ranks, durationMs }: Parameters<typeof lookOnWire>[1],
  number: number,
): number {
  const at = iterations.indexOf(number);
  if (at < 0) return NaN;
  const row = durationMs.subarray(at * ranks.length, (at + 1) * ranks.length);
  return median(row.filter((ms) => ms > 0));
}

function mostHit(hops: readonly Hop[]): Hop | null {
  const excess = ({ one, usualMs, hits }: Hop): number =>
    hits.reduce((sum, i) => sum + one.ms[i]! - usualMs, 0);
  return hops.reduce<Hop | null>((best, hop) => {
    const more = hop.hits.length - (best?.hits.length ?? 0);
    return more > 0 || (more === 0 && best && excess(hop) > excess(best)) ? hop : best;
  }, null);
}

/** null where what is slow together meets neither in one link nor in one NIC: a switch, or several culprits. */
function deviceOf(
  together: readonly Hop[],
  hops: readonly Hop[],
  hits: readonly number[],
): Pick<SlowOnWire, "kind" | "ranks" | "isAmbiguous"> | null {
  const pairs = groupBy(together, ({ one: { from, to } }) =>
    [from, to].sort((a, b) => a - b).join(),
  );
  const [{ one: pair }] = together as [Hop];
  if (pairs.size > 1) {
    const [nic] = [pair.from, pair.to].filter((rank) =>
      together.every(({ one: { from, to } }) => from === rank || to === rank),
    );
    return nic === undefined ? null : { kind: "nic", ranks: [nic], isAmbiguous: false };
  }
  // What else goes through either NIC tells which of three it is, however little that is.
  const ends = [pair.from, pair.to].map((rank, k, both) => {
    const other = both[1 - k]!;
    const beside = hops.filter(
      ({ one: { from, to } }) => (from === rank || to === rank) && from !== other && to !== other,
    );
    const ratios = beside.map(({ one, usualMs }) => median(hits.map((i) => one.ms[i]! / usualMs)));
    const known = ratios.filter((ratio) => ratio > 0);
    return { rank, isKnown: known.length > 0, isSlow: known.every((ratio) => ratio >= SLOWER) };
  });
  const [nic, second] = ends.filter(({ isKnown, isSlow }) => isKnown && isSlow);
  if (nic && !second) return { kind: "nic", ranks: [nic.rank], isAmbiguous: false };
  const ranks = ends.map(({ rank }) => rank).sort((a, b) => a - b);
  return { kind: "link", ranks, isAmbiguous: !ends.every(({ isKnown }) => isKnown) };
}
