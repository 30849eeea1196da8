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
import type { WireTime, WireTimes } from "../../model/wire-times.ts";

/** Which iterations of the job are slow, how long they take, and whether all are slow since one. */
export interface SlowIterations {
  isSlow(this: void, iteration: number): boolean;
  /** Milliseconds; NaN where it is not known. */
  durationOf(this: void, iteration: number): number;
  readonly isLasting: boolean;
}

export interface SlowOnWire {
  readonly kind: "link" | "nic";
  /** Both ends, ascending; of a NIC its rank alone. */
  readonly ranks: readonly Rank[];
  /** Those whose sends over it stay too long. */
  readonly senders: readonly Rank[];
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

/** A hop explains a slow iteration if it was longer on the wire by this share of what the iteration lost. */
const LEAST_SHARE_OF_LOSS = 0.5;
/** And by this factor of its own usual time (as tests of links have it), and so many deviations of that. */
const LEAST_FACTOR = 1.2;
const LEAST_SIGMAS = 5;
/** Iterations that tell what is usual, and slow ones that speak for a hop: fewer come by chance. */
const FEWEST_USUAL_ITERATIONS = 3;
const FEWEST_SLOW_ITERATIONS = 3;
/** Where it is known that sends are slow. */
const FEWEST_OF_SLOW_SENDS = 2;
/** Hops that are slow in this share of the iterations of the one that is slow most often share its cause. */
const LEAST_SHARE_TOGETHER = 0.5;

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

/** `areSlow`: it is known that sends are slow, and not which of them first: those that lost most are, whatever iterations lost. */
export function lookOnWire(times: WireTimes, slow: SlowIterations, areSlow = false): OnWire {
  const { hops, lateOf, slowPlaces } = hopsOf(times, slow, areSlow);
  return {
    found: slowestOf(hops, lateOf, slowPlaces, times.iterations, slow.isLasting, areSlow),
    isFine(ranks) {
      const [a = -1, b] = ranks;
      const own = hops.filter(({ one: { from, to } }) =>
        b === undefined
          ? from === a || to === a
          : (from === a && to === b) || (from === b && to === a),
      );
      // What costs too little to be the reason may still be slow: then something else of that NIC is the reason.
      return (
        own.every(({ usualMs, one }) =>
          slowPlaces.every((i) => one.ms[i]! < LEAST_FACTOR * usualMs),
        ) && own.length > 0
      );
    },
  };
}

/** Each direction with the iterations in which it was too long on the wire; which late iteration those made late. */
function hopsOf(
  { iterations, links }: WireTimes,
  { isSlow, durationOf }: SlowIterations,
  areSlow: boolean,
): {
  readonly hops: readonly Hop[];
  readonly lateOf: readonly (number | undefined)[];
  readonly slowPlaces: readonly number[];
} {
  const totalMs = Array.from(iterations, durationOf);
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
  const usuals = links.map(({ ms }) => normal.map((i) => ms[i]!).filter((one) => one > 0));
  const moreOf = (k: number, i: number): number => links[k]!.ms[i]! - median(usuals[k]!);
  const mostMs = places.map((i) =>
    links.reduce((most, _, k) => Math.max(most, moreOf(k, i) || 0), 0),
  );
  const hops = links.map((one, k): Hop => {
    const usual = usuals[k]!;
    const usualMs = median(usual);
    const leastMs = Math.max((LEAST_FACTOR - 1) * usualMs, LEAST_SIGMAS * spread(usual, usualMs));
    const isHit = (i: number): boolean => {
      const moreMs = one.ms[i]! - usualMs;
      const lost = areSlow ? mostMs[i]! : lostMs[i]!;
      return lost > 0 && moreMs >= LEAST_SHARE_OF_LOSS * lost && moreMs >= leastMs;
    };
    return {
      one,
      usualMs,
      hits: usual.length < FEWEST_USUAL_ITERATIONS ? [] : places.filter(isHit),
    };
  });
  return { hops, lateOf, slowPlaces: [...slow] };
}

function slowestOf(
  hops: readonly Hop[],
  lateOf: readonly (number | undefined)[],
  slow: readonly number[],
  iterations: Float64Array,
  isLasting: boolean,
  areSlow: boolean,
): SlowOnWire | null {
  const first = mostHit(hops);
  const fewest = areSlow ? FEWEST_OF_SLOW_SENDS : FEWEST_SLOW_ITERATIONS;
  if (!first || first.hits.length < fewest) return null;
  // Where all are slow since one, half of those speak for it.
  const explained = first.hits.filter((i) => lateOf[i] !== undefined).length;
  if (explained < (isLasting ? slow.length / 2 : 1)) return null;
  const own = new Set(first.hits);
  const together = hops.filter(
    ({ hits }) => hits.filter((i) => own.has(i)).length >= LEAST_SHARE_TOGETHER * own.size,
  );
  const device = deviceOf(together, hops, first.hits);
  if (!device) return null;
  return {
    ...device,
    senders: [...new Set(together.map(({ one }) => one.from))],
    slow: [...new Set(first.hits.flatMap((i) => lateOf[i] ?? []))].map((i) => iterations[i]!),
    of: slow.length,
    beforeMs: first.usualMs,
    afterMs: median(first.hits.map((i) => first.one.ms[i]!)),
    compared: hops.length,
  };
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
    return {
      rank,
      isKnown: known.length > 0,
      isSlow: known.every((ratio) => ratio >= LEAST_FACTOR),
    };
  });
  const [nic, second] = ends.filter(({ isKnown, isSlow }) => isKnown && isSlow);
  if (nic && !second) return { kind: "nic", ranks: [nic.rank], isAmbiguous: false };
  const ranks = ends.map(({ rank }) => rank).sort((a, b) => a - b);
  return { kind: "link", ranks, isAmbiguous: !ends.every(({ isKnown }) => isKnown) };
}
