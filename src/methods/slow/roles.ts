/**
 * Which ranks run the same program at the same place of the job: they call the same in an iteration and, refined, so do those
 * they send to and receive from (colours of the graph of communication). Only such ranks may be compared by how fast they are, not
 * just by how their pace changed: the first stage of a pipeline waits more than the last.
 */
import { getOrInsert } from "../../base/group-by.ts";
import { median } from "../../maths/robust.ts";
import type { Group } from "../../model/job.ts";
import type { RankOperators } from "../../model/rank-operators.ts";
import { groupOf, peerOf } from "./times.ts";

/** Neighbours of neighbours of neighbours: further ones tell no ranks apart that are near in time. */
const ROUNDS = 3;

/** By place; `iterations`: of each rank, the places of the iterations that count among its own. */
export function rolesOf(
  ranks: readonly RankOperators[],
  iterations: readonly Int32Array[],
  groups: readonly Group[],
): Int32Array {
  const names = new Map<string, number>();
  const classes = new Map<number, number>();
  const programs = ranks.map((one, place) =>
    programOf(one, iterations[place]!, groups, names, classes),
  );
  let colours = coloured(programs);
  const places = new Map(ranks.map(({ rank }, place) => [rank, place]));
  const peers = ranks.map((one) => peersOf(one, groups, places));
  for (let round = 0; round < ROUNDS; round++) {
    const before = colours;
    colours = coloured(
      peers.map((own, place) => {
        const seen = own.map(([peer, isSend]) => `${isSend}${before[peer] ?? "?"}`);
        return `${before[place]}|${[...new Set(seen)].sort().join()}`;
      }),
    );
  }
  return colours;
}

function coloured(texts: readonly string[]): Int32Array {
  const ids = new Map<string, number>();
  return Int32Array.from(texts, (text) => getOrInsert(ids, text, () => ids.size));
}

/** How often a rank calls what in an iteration, usually, and whether its first transfer is a send. */
function programOf(
  operators: RankOperators,
  iterations: Int32Array,
  groups: readonly Group[],
  names: Map<string, number>,
  classes: Map<number, number>,
): string {
  const { ops, from, to } = operators;
  const ids = Int32Array.from(ops.names, (name) => getOrInsert(names, name, () => names.size + 2));
  const counts = new Map<number, Float64Array>();
  let [sendsFirst, receivesFirst] = [0, 0];
  for (const [k, i] of iterations.entries()) {
    let first = -1;
    for (let op = from[i]!; op < to[i]!; op++) {
      const isTransfer = ops.isP2p[op] === 1;
      if (isTransfer && first < 0) first = ops.isSend[op]!;
      const what = isTransfer ? ops.isSend[op]! : ids[ops.name[op]!]!;
      const size = groups[groupOf(operators, op)]?.ranks.length ?? 0;
      const key = getOrInsert(classes, what * 2 ** 24 + size, () => classes.size);
      const list = getOrInsert(counts, key, () => new Float64Array(iterations.length));
      list[k]!++;
    }
    if (first === 1) sendsFirst++;
    else if (first === 0) receivesFirst++;
  }
  const calls = [...counts].map(([key, list]) => `${key}*${Math.round(median(list))}`);
  return `${sendsFirst > receivesFirst ? "s" : receivesFirst > 0 ? "r" : ""}${calls.sort().join()}`;
}

/** Whom a rank sends to and receives from: the place and direction; place -1: it left no record. */
function peersOf(
  operators: RankOperators,
  groups: readonly Group[],
  places: ReadonlyMap<number, number>,
): [place: number, isSend: number][] {
  const { ops, rank } = operators;
  const seen = new Map<number, [number, number]>();
  for (let op = 0; op < ops.count; op++) {
    const other = ops.isP2p[op] === 1 ? peerOf(operators, op, groups) : -1;
    if (other < 0 || other === rank) continue;
    const isSend = ops.isSend[op]!;
    getOrInsert(seen, other * 2 + isSend, () => [places.get(other) ?? -1, isSend]);
  }
  return [...seen.values()];
}
