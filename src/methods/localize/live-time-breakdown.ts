/** Own times out of what agents tell all the time, without an operator having been fetched. */
import { median } from "../../maths/robust.ts";
import type { Rank } from "../../model/ids.ts";
import type { LivePoints } from "../../model/live-points.ts";
import { classesBeside, ownTimes, type TimeBreakdown, type Inside } from "./time-breakdown.ts";
import { spreadPivots } from "./progressive/progressive.ts";

/** Ranks whose own time rose most, and others to compare them with: telling each of 10,000 takes too long. */
const MOST_RISEN = 64;
const PEERS = 448;
/** Share of the iterations that a rank must have reported. */
const REPORTED = 0.9;

/** `slowFrom`: the first slow iteration. Ranks that do not tell what they spend inside operators have no account. */
export function liveTimeBreakdowns(points: LivePoints, slowFrom: number): Map<Rank, TimeBreakdown> {
  const inside = new Map<Rank, Inside & { readonly at: number }>();
  for (const [k, rank] of points.ranks.entries()) {
    const one = insideOf(points, k);
    if (one) inside.set(rank, { ...one, at: k });
  }
  const beside = classesBeside([...inside.values()]);
  const own = new Map([...inside].map(([rank, one]) => [rank, ownTimes(one, beside)]));
  const chosen = chosenOf(own, points.iterations, slowFrom);
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
  iterations: Float64Array,
  slowFrom: number,
): Rank[] {
  const ranks = [...own.keys()];
  if (ranks.length <= MOST_RISEN + PEERS) return ranks;
  const first = iterations.findIndex((number) => number >= slowFrom);
  const rise = new Map(
    ranks.map((rank) => {
      const ms = own.get(rank)!;
      return [rank, median(ms.subarray(first)) - median(ms.subarray(0, first))];
    }),
  );
  const risen = ranks.toSorted((a, b) => rise.get(b)! - rise.get(a)!).slice(0, MOST_RISEN);
  return [...new Set([...risen, ...spreadPivots(ranks, PEERS)])].sort((a, b) => a - b);
}
