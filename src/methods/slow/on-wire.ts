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
export function lookOnWire(
  { iterations, links }: WireTimes,
  { isSlow, durationOf, isLasting }: SlowIterations,
  areSlow = false,
): OnWire {
  const places = [...iterations.keys()];
  const totalMs = Array.from(iterations, durationOf);
  const slow = places.filter((i) => isSlow(iterations[i]!));
  /** The slow one that lost time because of what happened in this one, or may have: itself, or the next. */
  const lateOf = places.map((i) =>
    [i, i + 1].find((at) => slow.includes(at) && iterations[at]! - iterations[i]! <= 1),
  );
  const normal = places.filter((i) => totalMs[i]! > 0 && lateOf[i] === undefined);
  const usuals = links.map(({ ms }) => normal.map((i) => ms[i]!).filter((one) => one > 0));
  const usualMs = usuals.map((usual) => median(usual));
  const healthyMs = median(normal.map((i) => totalMs[i]!));
  // Others may be among the slow ones, too few to be called a stretch or a pattern: those are as late as the rest.
  const anyLostMs = median(slow.map((i) => totalMs[i]! - healthyMs));
  const lostMs = places.map((i) => {
    if (areSlow) return Math.max(0, ...links.map(({ ms }, k) => ms[i]! - usualMs[k]! || 0));
    return lateOf[i] === undefined ? anyLostMs : totalMs[lateOf[i]]! - healthyMs;
  });
  const hops = links.map((one, k): Hop => {
    const apartMs = LEAST_SIGMAS * spread(usuals[k]!, usualMs[k]);
    const leastMs = Math.max((LEAST_FACTOR - 1) * usualMs[k]!, apartMs);
    const hits = places.filter((i) => {
      const moreMs = one.ms[i]! - usualMs[k]!;
      return lostMs[i]! > 0 && moreMs >= LEAST_SHARE_OF_LOSS * lostMs[i]! && moreMs >= leastMs;
    });
    const isKnown = usuals[k]!.length >= FEWEST_USUAL_ITERATIONS;
    return { one, usualMs: usualMs[k]!, hits: isKnown ? hits : [] };
  });
  return { found: slowest(), isFine };

  function slowest(): SlowOnWire | null {
    const excess = ({ one, usualMs: usual, hits }: Hop): number =>
      hits.reduce((sum, i) => sum + one.ms[i]! - usual, 0);
    const [first] = hops.toSorted((a, b) => b.hits.length - a.hits.length || excess(b) - excess(a));
    const fewest = areSlow ? FEWEST_OF_SLOW_SENDS : FEWEST_SLOW_ITERATIONS;
    if (!first || first.hits.length < fewest) return null;
    const explained = first.hits.flatMap((i) => lateOf[i] ?? []);
    // Where all are slow since one, half of those speak for it.
    if (explained.length < (isLasting ? slow.length / 2 : 1)) return null;
    const together = hops.filter(({ hits }) => {
      const both = hits.filter((i) => first.hits.includes(i)).length;
      return both >= LEAST_SHARE_TOGETHER * first.hits.length;
    });
    const device = deviceOf(together, hops, first.hits);
    return (
      device && {
        ...device,
        senders: [...new Set(together.map(({ one }) => one.from))],
        slow: [...new Set(explained)].map((i) => iterations[i]!),
        of: slow.length,
        beforeMs: first.usualMs,
        afterMs: median(first.hits.map((i) => first.one.ms[i]!)),
        compared: hops.length,
      }
    );
  }

  /** What costs too little to be the reason may still be slow: then something else of that NIC is the reason. */
  function isFine(ranks: readonly Rank[]): boolean {
    const own = hops.filter(({ one: { from, to } }) =>
      ranks.length === 1
        ? [from, to].includes(ranks[0]!)
        : ranks.includes(from) && ranks.includes(to),
    );
    const isUsual = ({ one, usualMs: usual }: Hop): boolean =>
      slow.every((i) => one.ms[i]! < LEAST_FACTOR * usual);
    return own.length > 0 && own.every(isUsual);
  }
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
