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
  const zeroNs = ranks[0]!.epochNs;
  const shiftMs = Float64Array.from(ranks, (one) => epochShiftMs(one, zeroNs));
  const clocks = clocksOf(ranks.length, groups, unitMs, (visit) => {
    for (const group of groups) eachCall(group, ranks, shiftMs, visit);
  });
  for (const [place, aheadMs] of clocks.entries()) shiftMs[place]! -= aheadMs;
  for (const group of groups) {
    const alike = [...groupBy(group.members.keys(), (m) => roles[group.members[m]!]!).values()];
    eachCall(group, ranks, shiftMs, (call) => {
      const { places, issuedMs, tookMs, endMs } = call;
      const { count } = call;
      const issues = sorted(issuedMs, count);
      const stays = sorted(tookMs, count);
      for (let j = 0; j < count; j++) {
        const at = places[j]! * blocks + call.block;
        const late = issuedMs[j]! - medianWithout(issues, issuedMs[j]!);
        behind.add(at, late);
        if (issuedMs[j]! < firstMs[at]!) {
          firstMs[at] = issuedMs[j]!;
          firstBehind[at] = late / unitMs;
        }
        const lead = medianWithout(stays, tookMs[j]!) - tookMs[j]!;
        if (!(lead > LEAST_LEAD * unitMs)) continue;
        // No member is through before the last one is, and nothing begins before it was issued.
        const queued = Math.max(0, endMs - tookMs[j]! - issuedMs[j]!);
        waited[at]! += lead / unitMs;
        waitedGpu[at]! += Math.min(lead, queued) / unitMs;
      }
      if (alike.length > 1) latenessAmong(alike, call, behindRole, blocks);
      else
        for (let j = 0; j < count; j++)
          behindRole.add(
            places[j]! * blocks + call.block,
            issuedMs[j]! - medianWithout(issues, issuedMs[j]!),
          );
    });
  }
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

/** One call: those of its members that recorded it. Overwritten by the next one. */
interface Call {
  block: number;
  count: number;
  /** Which member of the group, and which place of the account. */
  readonly members: Int32Array;
  readonly places: Int32Array;
  readonly issuedMs: Float64Array;
  readonly tookMs: Float64Array;
  endMs: number;
}

/** Calls that two members or more recorded. */
function eachCall(
  { members, calls, op, block }: GroupCalls,
  ranks: Blocks["ranks"],
  shiftMs: Float64Array,
  visit: (call: Call) => void,
): void {
  const n = members.length;
  const call: Call = {
    block: -1,
    count: 0,
    members: new Int32Array(n),
    places: new Int32Array(n),
    issuedMs: new Float64Array(n),
    tookMs: new Float64Array(n),
    endMs: NaN,
  };
  for (let at = 0; at < calls; at++) {
    call.count = 0;
    call.block = block[at]!;
    call.endMs = -Infinity;
    for (let m = 0; m < n && call.block >= 0; m++) {
      const index = op[at * n + m]!;
      if (index < 0) continue;
      const place = members[m]!;
      const { ops } = ranks[place]!;
      const j = call.count++;
      call.members[j] = m;
      call.places[j] = place;
      call.issuedMs[j] = shiftMs[place]! + ops.createdNs[index]! / 1e6;
      call.tookMs[j] = ops.durationMs[index]!;
      call.endMs = Math.max(call.endMs, call.issuedMs[j] + call.tookMs[j]);
    }
    if (call.count > 1) visit(call);
  }
}

function sorted(values: Float64Array, count: number): Float64Array {
  return values.slice(0, count).sort();
}

/** Lateness beside those members alone that run the same program. */
function latenessAmong(
  alike: readonly (readonly number[])[],
  { members, places, issuedMs, count, block }: Call,
  behind: MeanOf,
  blocks: number,
): void {
  const at = new Map<number, number>();
  for (let j = 0; j < count; j++) at.set(members[j]!, j);
  for (const own of alike) {
    const here = own.flatMap((m) => at.get(m) ?? []);
    if (here.length < 2) continue;
    const issues = Float64Array.from(here, (j) => issuedMs[j]!).sort();
    for (const j of here)
      behind.add(places[j]! * blocks + block, issuedMs[j]! - medianWithout(issues, issuedMs[j]!));
  }
}

/** How far each rank's clock is ahead, as far as clocks may be: the earliest of its calls still come late by that. */
function clocksOf(
  ranks: number,
  groups: readonly GroupCalls[],
  unitMs: number,
  each: (visit: (call: Call) => void) => void,
): Float64Array {
  const most = new Float64Array(ranks);
  for (const { members, calls } of groups) for (const place of members) most[place]! += calls;
  const late = Array.from(most, (calls) => new Float64Array(calls));
  const counts = new Int32Array(ranks);
  each(({ places, issuedMs, count }) => {
    const issues = sorted(issuedMs, count);
    for (let j = 0; j < count; j++) {
      const place = places[j]!;
      late[place]![counts[place]!++] = issuedMs[j]! - medianWithout(issues, issuedMs[j]!);
    }
  });
  return Float64Array.from(late, (values, place) => {
    const known = values.subarray(0, counts[place]).sort();
    const aheadMs = known[Math.floor(EARLIEST * known.length)] ?? 0;
    // No rank is two iterations late in nearly all of its calls: that is a clock that nobody keeps in step.
    if (Math.abs(aheadMs) > 2 * unitMs) return aheadMs;
    return Math.max(-CLOCKS_APART_MS, Math.min(CLOCKS_APART_MS, aheadMs));
  });
}
