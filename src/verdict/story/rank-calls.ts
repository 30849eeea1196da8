/**
 * One rank's operators as a story needs them: where the rank waits, how long it usually does, and which operator of
 * another rank is the same one. Collectives of a group and receives of a peer are counted within an iteration, so that
 * the third of an iteration is compared with the third of healthy ones.
 */
import type { Rank } from "../../model/ids.ts";
import type { Group } from "../../model/job.ts";
import type { RankOperators } from "../../model/rank-operators.ts";
import { middle } from "./middle.ts";

/** What a rank can wait in: the collectives of one group, or the receives from one peer. */
export interface Waiting {
  readonly key: string;
  readonly isGroup: boolean;
  /** The job's group, or the sender. */
  readonly of: number;
  /** Beyond what it takes in healthy iterations, milliseconds, of all its operators that were looked at. */
  readonly excessMs: number;
  /** The operator in which it waited most beyond the usual, and its count within the iteration, from 0. */
  readonly op: number;
  readonly nth: number;
  readonly opExcessMs: number;
}

export interface RankCalls {
  readonly rank: Rank;
  readonly operators: RankOperators;
  /** Whether it has the iteration. */
  has(iteration: number): boolean;
  /** Operators of a kind in an iteration, in the order of issue. */
  list(iteration: number, key: string): readonly number[];
  /** Milliseconds; NaN where there is no such operator. */
  ms(op: number | undefined): number;
  /** Where it waited longer than usual, the most first; of operators before one of them. */
  waits(iteration: number, before: number): readonly Waiting[];
  usualMs(key: string, nth: number): number;
}

export const collectivesOf = (group: number): string => `c${group}`;
export const receivesFrom = (rank: Rank): string => `r${rank}`;
export const sendsTo = (rank: Rank): string => `s${rank}`;

/** `healthy`: numbers of iterations to compare with; none where there was no healthy time. */
export function rankCalls(
  operators: RankOperators,
  groups: readonly Group[],
  healthy: readonly number[],
): RankCalls {
  const { rank, ops, groupIds, from, to } = operators;
  const places = new Map([...operators.iteration].map((number, place) => [number, place]));
  const lists = new Map<number, ReadonlyMap<string, number[]>>();
  const usual = new Map<string, number>();
  const listsOf = (iteration: number): ReadonlyMap<string, readonly number[]> => {
    let known = lists.get(iteration);
    if (!known) lists.set(iteration, (known = cut(iteration)));
    return known;
  };
  const cut = (iteration: number): Map<string, number[]> => {
    const found = new Map<string, number[]>();
    const place = places.get(iteration);
    if (place === undefined) return found;
    for (let op = from[place]!; op < to[place]!; op++) {
      const group = groupIds[ops.group[op]!] ?? -1;
      const members = groups[group]?.ranks;
      if (!members || members.length < 2) continue;
      const peer = members[ops.peer[op]!] ?? -1;
      if (ops.isP2p[op] === 1 && peer < 0) continue;
      const key =
        ops.isP2p[op] === 0
          ? collectivesOf(group)
          : ops.isSend[op] === 1
            ? sendsTo(peer)
            : receivesFrom(peer);
      const list = found.get(key);
      if (list) list.push(op);
      else found.set(key, [op]);
    }
    return found;
  };
  const ms = (op: number | undefined): number => (op === undefined ? NaN : ops.durationMs[op]!);
  const usualMs = (key: string, nth: number): number => {
    const name = `${key} ${nth}`;
    let known = usual.get(name);
    if (known === undefined) {
      known = middle(healthy.map((iteration) => ms(listsOf(iteration).get(key)?.[nth])));
      if (Number.isNaN(known)) known = 0;
      usual.set(name, known);
    }
    return known;
  };
  const waits = (iteration: number, before: number): Waiting[] => {
    const found: Waiting[] = [];
    for (const [key, list] of listsOf(iteration)) {
      if (key.startsWith("s")) continue;
      let [excessMs, at, most] = [0, -1, -Infinity];
      for (const [nth, op] of list.entries()) {
        if (op >= before) break;
        const more = ms(op) - usualMs(key, nth);
        if (Number.isNaN(more)) continue;
        excessMs += more;
        if (more > most) [at, most] = [nth, more];
      }
      if (at < 0) continue;
      const isGroup = key.startsWith("c");
      const of = Number(key.slice(1));
      found.push({ key, isGroup, of, excessMs, op: list[at]!, nth: at, opExcessMs: most });
    }
    return found.sort((a, b) => b.excessMs - a.excessMs);
  };
  return {
    rank,
    operators,
    has: (iteration) => places.has(iteration) && listsOf(iteration).size > 0,
    list: (iteration, key) => listsOf(iteration).get(key) ?? [],
    ms,
    waits,
    usualMs,
  };
}

/**
 * Another member's part in the same collective: by its sequence number where the recorder has one, because ranks may
 * cut iterations at different operators; else the nth of the iteration.
 */
export function sameCollective(
  one: RankCalls,
  op: number,
  nth: number,
  other: RankCalls,
  group: number,
  iteration: number,
): number | undefined {
  const list = other.list(iteration, collectivesOf(group));
  if (!one.operators.hasSequence || !other.operators.hasSequence) return list[nth];
  const seq = one.operators.ops.seq[op]!;
  const { ops } = other.operators;
  if (list[nth] !== undefined && ops.seq[list[nth]] === seq) return list[nth];
  for (const near of [iteration, iteration - 1, iteration + 1]) {
    const found = other
      .list(near, collectivesOf(group))
      .find((candidate) => ops.seq[candidate] === seq);
    if (found !== undefined) return found;
  }
  return undefined;
}
