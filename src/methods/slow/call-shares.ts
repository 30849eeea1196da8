/**
 * What collectives tell of who came late. A collective ends on all members at once: who stays in it less than the others came
 * later, by as much. Whether its CPU called late or its GPU was not ready lies between its call and its start.
 */
import { groupBy } from "../../base/group-by.ts";
import { type CallShares, medianWithout } from "./account.ts";
import type { Blocks } from "./blocks.ts";
import type { GroupCalls } from "./calls.ts";
import { epochShiftMs } from "./times.ts";

/** Leads in single collectives below this share of a block say nothing of the cause. */
const LEAST_LEAD = 0.02;
/** Clocks that are kept in step are apart by up to this: so much lateness may be the clock's. */
const CLOCKS_APART_MS = 5;
/** The tenth of a rank's calls that come earliest tells how far its clock is off: no CPU is late in nearly all of its calls. */
const EARLIEST = 0.1;

export function callShares(
  { ranks, numbers }: Blocks,
  groups: readonly GroupCalls[],
  roles: Int32Array,
  unitMs: number,
): CallShares {
  const blocks = numbers.length;
  const size = ranks.length * blocks;
  const [behind, behindRole] = [new MeanOf(size), new MeanOf(size)];
  const [waited, waitedGpu] = [new Float64Array(size), new Float64Array(size)];
  const firstBehind = new Float64Array(size).fill(NaN);
  const firstMs = new Float64Array(size).fill(Infinity);
  const shiftMs = inStep(ranks, groups, unitMs);
  for (const group of groups)
    eachCall(group, ranks, shiftMs, ({ block, places, issuedMs, tookMs }) => {
      const endMs = issuedMs.reduce((end, ms, j) => Math.max(end, ms + tookMs[j]!), -Infinity);
      const late = beyondOthers(issuedMs);
      const longer = beyondOthers(tookMs);
      for (const [j, place] of places.entries()) {
        const at = place * blocks + block;
        behind.add(at, late[j]!);
        if (issuedMs[j]! < firstMs[at]!) {
          firstMs[at] = issuedMs[j]!;
          firstBehind[at] = late[j]! / unitMs;
        }
        const lead = -longer[j]!;
        if (!(lead > LEAST_LEAD * unitMs)) continue;
        // No member is through before the last one is, and nothing begins before it was issued.
        const queued = Math.max(0, endMs - tookMs[j]! - issuedMs[j]!);
        waited[at]! += lead / unitMs;
        waitedGpu[at]! += Math.min(lead, queued) / unitMs;
      }
      for (const alike of groupBy(places.keys(), (j) => roles[places[j]!]!).values()) {
        if (alike.length < 2) continue;
        const lateHere = beyondOthers(Float64Array.from(alike, (j) => issuedMs[j]!));
        for (const [k, j] of alike.entries())
          behindRole.add(places[j]! * blocks + block, lateHere[k]!);
      }
    });
  return {
    behind: behind.over(unitMs),
    behindRole: behindRole.over(unitMs),
    firstBehind,
    waited,
    waitedGpu,
  };
}

/** Means that grow value by value. */
class MeanOf {
  readonly #sums: Float64Array;
  readonly #counts: Float64Array;

  constructor(size: number) {
    this.#sums = new Float64Array(size);
    this.#counts = new Float64Array(size);
  }

  add(at: number, value: number): void {
    this.#sums[at]! += value;
    this.#counts[at]!++;
  }

  /** NaN where there was none. */
  over(unit: number): Float64Array {
    return this.#sums.map((sum, at) => sum / this.#counts[at]! / unit);
  }
}

/** Each value's distance from the median of the others. */
function beyondOthers(values: Float64Array): Float64Array {
  const sorted = values.toSorted();
  return values.map((value) => value - medianWithout(sorted, value));
}

/** One call, of those members that recorded it. */
interface Call {
  readonly block: number;
  readonly places: Int32Array;
  readonly issuedMs: Float64Array;
  readonly tookMs: Float64Array;
}

/** Calls that two members or more recorded. */
function eachCall(
  { members, calls, op, block }: GroupCalls,
  ranks: Blocks["ranks"],
  shiftMs: Float64Array,
  visit: (call: Call) => void,
): void {
  const n = members.length;
  for (let at = 0; at < calls; at++) {
    const own = op.subarray(at * n, (at + 1) * n);
    const here = [...members.keys()].filter((m) => own[m]! >= 0);
    if (here.length < 2) continue;
    const columns = here.map((m) => ranks[members[m]!]!.ops);
    visit({
      block: block[at]!,
      places: Int32Array.from(here, (m) => members[m]!),
      issuedMs: Float64Array.from(
        here,
        (m, j) => shiftMs[members[m]!]! + columns[j]!.createdNs[own[m]!]! / 1e6,
      ),
      tookMs: Float64Array.from(here, (m, j) => columns[j]!.durationMs[own[m]!]!),
    });
  }
}

/** What is added to each rank's times so that they may be compared: as far as clocks are apart, the earliest of a rank's calls still come late. */
function inStep(
  ranks: Blocks["ranks"],
  groups: readonly GroupCalls[],
  unitMs: number,
): Float64Array {
  const shiftMs = Float64Array.from(ranks, (one) => epochShiftMs(one, ranks[0]!.epochNs));
  const late = ranks.map(() => [] as number[]);
  for (const group of groups)
    eachCall(group, ranks, shiftMs, ({ places, issuedMs }) => {
      for (const [j, ms] of beyondOthers(issuedMs).entries()) late[places[j]!]!.push(ms);
    });
  return shiftMs.map((ms, place) => {
    const own = Float64Array.from(late[place]!).sort();
    const aheadMs = own[Math.floor(EARLIEST * own.length)] ?? 0;
    // No rank is two iterations late in nearly all of its calls: that is a clock that nobody keeps in step.
    if (Math.abs(aheadMs) > 2 * unitMs) return ms - aheadMs;
    return ms - Math.max(-CLOCKS_APART_MS, Math.min(CLOCKS_APART_MS, aheadMs));
  });
}
