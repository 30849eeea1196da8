/** Own times out of what agents tell all the time, without an operator having been fetched. */
import { median } from "../../maths/robust.ts";
import type { Rank } from "../../model/ids.ts";
import type { LivePoints } from "../../model/live-points.ts";
import { classesBeside, ownTimes, type TimeBreakdown, type Inside } from "./time-breakdown.ts";
import { spreadPivots } from "./progressive/progressive.ts";
import type { SlowIterations } from "./slow-iterations.ts";

/** Ranks whose own time rose most, and others to compare them with: telling each of 10,000 takes too long. */
const MOST_RISEN = 64;
const PEERS = 448;
/** Share of the iterations that a rank must have reported. */
const REPORTED = 0.9;
/** Slow iterations that one rank must have of those that are slow now and then, most of which may be others'. */
const HABIT = 3;

/** Ranks that do not report what they spend inside operators have no account. */
export function liveTimeBreakdowns(
  points: LivePoints,
  { isSlow, isLasting }: SlowIterations,
): Map<Rank, TimeBreakdown> {
  const inside = new Map<Rank, Inside & { readonly at: number }>();
  for (const [k, rank] of points.ranks.entries()) {
    const one = insideOf(points, k);
    if (one) inside.set(rank, { ...one, at: k });
  }
  const beside = classesBeside([...inside.values()]);
  const own = new Map([...inside].map(([rank, one]) => [rank, ownTimes(one, beside)]));
  const chosen = chosenOf(
    own,
    points.iterations.map((number) => (isSlow(number) ? 1 : 0)),
    isLasting,
  );
  return new Map(
    chosen.map((rank): [Rank, TimeBreakdown] => {
      const { at, durationMs } = inside.get(rank)!;
      return [
        rank,
        {
          iteration: points.iterations,
          totalMs: durationMs,
          ownMs: own.get(rank)!,
          issueMs: columnOf(points.issueMs, points, at),
          insideMs: new Map(),
          // What it runs is not known before it is asked: nobody is compared with it but itself.
          program: rank,
        },
      ];
    }),
  );
}

/** By how much a rank's own time is longer in the slow iterations than in the others, milliseconds; NaN where that is unknown. */
export function ownRise(points: LivePoints, slow: SlowIterations): (rank: Rank) => number {
  const accounts = liveTimeBreakdowns(points, slow);
  return (rank) => {
    const ms = accounts.get(rank)?.ownMs ?? new Float64Array(0);
    const of = (wanted: boolean): number =>
      median(ms.filter((_, i) => slow.isSlow(points.iterations[i]!) === wanted));
    return of(true) - of(false);
  };
}

function insideOf(points: LivePoints, k: number): Inside | null {
  const durationMs = columnOf(points.durationMs, points, k);
  const collective = columnOf(points.collectiveMs, points, k);
  const reported = durationMs.filter((ms, i) => ms > 0 && collective[i]! >= 0).length;
  if (reported < REPORTED * durationMs.length) return null;
  const byClass = new Map([
    ["collective", collective],
    ["transfer send", columnOf(points.sendMs, points, k)],
    ["transfer recv", columnOf(points.recvMs, points, k)],
  ]);
  return { durationMs, byClass };
}

/** One rank's values; what it did not tell is taken to be as usual, so that a lost report moves nothing. */
function columnOf(
  column: Float32Array,
  { iterations, ranks }: LivePoints,
  k: number,
): Float64Array {
  const values = new Float64Array(iterations.length);
  let hasGap = false;
  for (let i = 0; i < values.length; i++) {
    values[i] = column[i * ranks.length + k]!;
    hasGap ||= Number.isNaN(values[i]!);
  }
  if (!hasGap) return values;
  const usual = median(values.filter((value) => !Number.isNaN(value)));
  return values.map((value) => (Number.isNaN(value) ? usual : value));
}

function chosenOf(
  own: ReadonlyMap<Rank, Float64Array>,
  slow: Float64Array,
  isLasting: boolean,
): Rank[] {
  const ranks = [...own.keys()];
  if (ranks.length <= MOST_RISEN + PEERS) return ranks;
  const rise = new Map(
    ranks.map((rank) => {
      const ms = own.get(rank)!;
      const usual = median(ms.filter((_, i) => slow[i] === 0));
      const picked = ms.filter((_, i) => slow[i] === 1);
      const typical = isLasting
        ? median(picked)
        : picked.sort().at(-Math.min(HABIT, picked.length));
      return [rank, (typical ?? NaN) - usual];
    }),
  );
  const risen = ranks.toSorted((a, b) => rise.get(b)! - rise.get(a)!).slice(0, MOST_RISEN);
  return [...new Set([...risen, ...spreadPivots(ranks, PEERS)])].sort((a, b) => a - b);
}
