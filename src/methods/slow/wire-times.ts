/**
 * How long communication takes once everybody is there: the least duration of a collective over its members, of a transfer that of
 * send and receive. Whoever came last waited for nobody, so that what is left is the wire's.
 */
import { getOrInsert, groupBy } from "../../base/group-by.ts";
import type { Group } from "../../model/job.ts";
import type { Blocks } from "./blocks.ts";
import type { GroupCalls } from "./calls.ts";
import { peerOf } from "./times.ts";

/** A communicator all of whose members are on record, or two ranks with transfers between them. */
export interface Wire {
  readonly places: readonly number[];
  readonly isPair: boolean;
  /** In Job.groups; -1 of pairs. */
  readonly group: number;
  /** Wires of a kind carry the same. */
  readonly kind: string;
  /** By block, shares of the usual block. */
  readonly least: Float64Array;
}

export function wiresOf(
  blocks: Blocks,
  groups: readonly Group[],
  calls: readonly GroupCalls[],
  roles: Int32Array,
  unitMs: number,
): Wire[] {
  const all = [...communicators(blocks, groups, calls), ...pairs(blocks, groups, roles)];
  return all
    .filter(({ least }) => least.every((ms) => ms > 0))
    .map((wire) => ({ ...wire, least: wire.least.map((ms) => ms / unitMs) }));
}

function* communicators(
  { ranks, numbers }: Blocks,
  groups: readonly Group[],
  tables: readonly GroupCalls[],
): Iterable<Wire> {
  for (const { id, members, calls, op, block } of tables) {
    const n = members.length;
    if (n !== groups[id]?.ranks.length) continue;
    const least = new Float64Array(numbers.length);
    const counts = new Map<string, number>();
    for (let call = 0; call < calls; call++) {
      let ms = Infinity;
      for (let m = 0; m < n && ms >= 0; m++) {
        const at = op[call * n + m]!;
        ms = at < 0 ? NaN : Math.min(ms, ranks[members[m]!]!.ops.durationMs[at]!);
      }
      if (!(ms >= 0) || ms === Infinity) continue;
      least[block[call]!]! += ms;
      const { ops } = ranks[members[0]!]!;
      const at = op[call * n]!;
      const what = `${ops.names[ops.name[at]!]} ${ops.inputNumel[at]}`;
      counts.set(what, (counts.get(what) ?? 0) + 1);
    }
    const words = [...counts].map(([what, many]) => `${what}*${Math.round(many / numbers.length)}`);
    const kind = `${n}: ${words.sort().join()}`;
    yield { places: [...members], isPair: false, group: id, kind, least };
  }
}

/** Of one direction between two ranks, by block. */
interface Transfers {
  /** Places, the lower first. */
  readonly ends: readonly [number, number];
  readonly kind: string;
  readonly sentMs: number[][];
  readonly receivedMs: number[][];
}

/** The nth send of a block is the nth receive of the block: NCCL keeps the order of transfers between two ranks. */
function* pairs(
  { ranks, numbers, from, to }: Blocks,
  groups: readonly Group[],
  roles: Int32Array,
): Iterable<Wire> {
  const blocks = numbers.length;
  const places = new Map(ranks.map(({ rank }, place) => [rank, place]));
  const directions = new Map<number, Transfers>();
  for (const [place, one] of ranks.entries())
    for (let k = 0; k < blocks; k++)
      for (let op = from[place * blocks + k]!; op < to[place * blocks + k]!; op++) {
        const { isP2p, isSend, durationMs, inputNumel } = one.ops;
        if (isP2p[op] === 0 || !(durationMs[op]! >= 0)) continue;
        const peer = places.get(peerOf(one, op, groups));
        if (peer === undefined || peer === place) continue;
        const [a, b] = isSend[op] === 1 ? [place, peer] : [peer, place];
        const { sentMs, receivedMs } = getOrInsert(directions, a * ranks.length + b, () => ({
          ends: [Math.min(a, b), Math.max(a, b)] as const,
          kind: `${inputNumel[op]} ${roles[a]}>${roles[b]}`,
          sentMs: [],
          receivedMs: [],
        }));
        const side = isSend[op] === 1 ? sentMs : receivedMs;
        (side[k] ??= []).push(durationMs[op]!);
      }
  for (const both of groupBy(directions.values(), ({ ends }) => ends.join()).values()) {
    const least = new Float64Array(blocks);
    const kinds = both.map(({ kind, sentMs, receivedMs }) => {
      let count = 0;
      for (const [k, sent] of sentMs.entries()) {
        const received = receivedMs[k];
        // Where one of them cut the block elsewhere, nothing tells which is which.
        if (!sent || received?.length !== sent.length) continue;
        count += sent.length;
        // A slow wire slows all; that both sides wait for somebody else meanwhile, or send at once, comes to single transfers.
        least[k]! += sent.length * Math.min(...sent, ...received);
      }
      return `${kind}*${Math.round(count / blocks)}`;
    });
    yield { places: both[0]!.ends, isPair: true, group: -1, kind: kinds.sort().join(), least };
  }
}
