/**
 * How far clocks are apart, spread from one clock to those it can be compared with, and on from there. What two clocks
 * are compared by is the caller's business; a few hops lead everywhere.
 */
import { median } from "./robust.ts";

/** Yields whom a node can be compared with, and how far ahead of the node's clock theirs is. */
export type Neighbours = (
  node: number,
  isKnown: (node: number) => boolean,
) => Iterable<readonly [neighbour: number, ahead: number]>;

interface ClockOffset {
  /** How far the clock is ahead of the typical one of its component, in the neighbours' unit. */
  readonly ahead: number;
  /** The node from which it was reached: clocks of different components cannot be compared. */
  readonly component: number;
}

/** `neighbours` is made anew for every component, so that it may remember where it has been. */
export function spreadOffsets(
  nodes: Iterable<number>,
  neighbours: () => Neighbours,
): Map<number, ClockOffset> {
  const known = new Map<number, ClockOffset>();
  for (const start of nodes) {
    if (known.has(start)) continue;
    const offsets = spreadFrom(start, neighbours());
    const typical = median([...offsets.values()]);
    for (const [node, ahead] of offsets)
      known.set(node, { ahead: ahead - typical, component: start });
  }
  return known;
}

function spreadFrom(start: number, neighbours: Neighbours): Map<number, number> {
  const offsets = new Map<number, number>([[start, 0]]);
  const queue = [start];
  for (let node = queue.shift(); node !== undefined; node = queue.shift()) {
    const own = offsets.get(node)!;
    for (const [neighbour, ahead] of neighbours(node, (other) => offsets.has(other))) {
      offsets.set(neighbour, own + ahead);
      queue.push(neighbour);
    }
  }
  return offsets;
}

/** Their time less ours of everything that both saw. */
export function apart<K>(own: ReadonlyMap<K, number>, theirs: ReadonlyMap<K, number>): number[] {
  return [...theirs].flatMap(([what, time]) => {
    const other = own.get(what);
    return other === undefined ? [] : [time - other];
  });
}
