/** Operators of all ranks → the account of their time. */
import type { Group } from "../../model/job.ts";
import type { RankOperators } from "../../model/rank-operators.ts";
import { median } from "../../maths/robust.ts";
import type { Account, AccountGroup } from "./account.ts";
import { type Blocks, blocksOf } from "./blocks.ts";
import { callShares } from "./call-shares.ts";
import { collectives } from "./calls.ts";
import { rolesOf } from "./roles.ts";
import { peerOf } from "./times.ts";
import { wiresOf } from "./wire-times.ts";

/** Operators of a rank that carry a duration; with fewer it has no account. A few still ran when the record was written. */
const MOSTLY_TIMED = 0.9;

/** null where ranks cannot be compared: no durations, or no time that they share. `last`: the last iteration that counts. */
export function accountOf(
  all: readonly RankOperators[],
  groups: readonly Group[],
  last = Infinity,
): Account | null {
  const blocks = blocksOf(all.filter(isTimed), last);
  if (!blocks) return null;
  const { ranks, numbers, areIterations, lengthMs, iterations } = blocks;
  const unitMs = median(lengthMs);
  if (!(unitMs > 0)) return null;
  const roles = rolesOf(ranks, iterations, groups);
  const calls = collectives(blocks);
  return {
    ranks: ranks.map(({ rank }) => rank),
    blocks: numbers.length,
    numbers,
    areIterations,
    unitMs,
    lengthMs,
    inside: summed(blocks, groups, unitMs),
    issuing: issuingOf(blocks, unitMs),
    groups: groupsOf(blocks, groups),
    roles,
    besideUnseen: besideUnseen(blocks, groups),
    calls: callShares(blocks, calls, roles, unitMs),
    wires: wiresOf(blocks, groups, calls, roles, unitMs),
  };
}

function isTimed({ ops, groupIds }: RankOperators): boolean {
  let timed = 0;
  let all = 0;
  for (let op = 0; op < ops.count; op++) {
    if (groupIds[ops.group[op]!] === undefined) continue;
    all++;
    if (ops.durationMs[op]! >= 0) timed++;
  }
  return all > 0 && timed >= MOSTLY_TIMED * all;
}

/** What an all-to-all has for the rank itself is copied: nobody waits for it, and no source times it. */
function isToItself(one: RankOperators, op: number, groups: readonly Group[]): boolean {
  return one.ops.isP2p[op] === 1 && peerOf(one, op, groups) === one.rank;
}

/**
 * Of a rank and iteration, the sum of its operators' durations. (A union of intervals is right in nine of ten where the sum is right in
 * all: where an operator lies depends on streams that flight recorders do not tell, and rings may have the start of a transfer where
 * it was issued.)
 */
function summed(
  { ranks, numbers, from, to }: Blocks,
  groups: readonly Group[],
  unitMs: number,
): Float64Array {
  const blocks = numbers.length;
  const inside = new Float64Array(ranks.length * blocks);
  for (const [place, one] of ranks.entries())
    for (let at = place * blocks; at < (place + 1) * blocks; at++) {
      let sum = 0;
      for (let op = from[at]!; op < to[at]!; op++) {
        const ms = one.ops.durationMs[op]!;
        if (ms > 0 && !isToItself(one, op, groups)) sum += ms;
      }
      inside[at] = sum / unitMs;
    }
  return inside;
}

/** Over how long a rank's calls are spread. */
function issuingOf({ ranks, numbers, from, to }: Blocks, unitMs: number): Float64Array {
  return Float64Array.from(from, (first, at) => {
    const { createdNs } = ranks[Math.floor(at / numbers.length)]!.ops;
    return to[at]! > first ? (createdNs[to[at]! - 1]! - createdNs[first]!) / 1e6 / unitMs : 0;
  });
}

function besideUnseen({ ranks }: Blocks, groups: readonly Group[]): Uint8Array {
  const seen = new Set(ranks.map(({ rank }) => rank));
  const largest = groups.reduce((most, { ranks: { length } }) => Math.max(most, length), 0);
  const partners = groups
    .filter(({ ranks: all }) => all.length < largest && !all.every((rank) => seen.has(rank)))
    .flatMap(({ ranks: all }) => all);
  const beside = new Set(partners);
  return Uint8Array.from(ranks, ({ rank }) => (beside.has(rank) ? 1 : 0));
}

function groupsOf({ ranks }: Blocks, groups: readonly Group[]): AccountGroup[] {
  const places = new Map(ranks.map(({ rank }, place) => [rank, place]));
  const used = new Set(
    ranks.flatMap(({ ops, groupIds }) =>
      [...new Set(ops.group.subarray(0, ops.count))].map((g) => groupIds[g] ?? -1),
    ),
  );
  const everybody = { id: -1, places: Int32Array.from(ranks, (_, place) => place) };
  const seen = new Map([[everybody.places.join(), everybody]]);
  for (const { id, ranks: members } of groups) {
    if (!used.has(id)) continue;
    const own = Int32Array.from(members.flatMap((rank) => places.get(rank) ?? [])).sort();
    const key = own.join();
    if (own.length > 1 && !seen.has(key)) seen.set(key, { id, places: own });
  }
  return [...seen.values()];
}
