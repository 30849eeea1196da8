/**
 * Which machine is the root of the tree that a channel uses. NCCL builds two binary trees over the machines, in the order
 * of their lowest ranks (src/graph/trees.cc): the first has machine 0 as its root; the second is the first one mirrored
 * where their number is even, shifted by one where it is odd. The lines in use tell which of the two it is.
 */
import { isWaiting, type Line, type Wiring } from "./connection-lines.ts";

/** null where the lines in use are neither tree's, or could be both's. */
export function treeRoot(wiring: Wiring, lines: readonly Line[]): string | null {
  const machines = machinesOf(wiring);
  const index = new Map(machines.map((machine, i) => [machine, i]));
  const n = machines.length;
  const fits = [firstParent, secondParent].map((parent) =>
    lines.every(({ from, to, sender, receiver }) => {
      if (!isWaiting(sender) && !isWaiting(receiver)) return true;
      const a = index.get(wiring.machineOf(from))!;
      const b = index.get(wiring.machineOf(to))!;
      return parent(n, a) === b || parent(n, b) === a;
    }),
  );
  if (fits[0] === fits[1]) return null;
  const root = fits[0] ? 0 : machines.findIndex((_, i) => secondParent(n, i) < 0);
  return machines[root] ?? null;
}

function machinesOf({ size, machineOf }: Wiring): string[] {
  const machines = new Set<string>();
  for (let member = 0; member < size; member++) machines.add(machineOf(member));
  return [...machines];
}

/** -1 for the root. The lowest bit that is set says how far above the leaves a machine is. */
export function firstParent(n: number, i: number): number {
  if (i === 0) return -1;
  const low = i & -i;
  const up = (i ^ low) | (low << 1);
  return up < n ? up : i ^ low;
}

export function secondParent(n: number, i: number): number {
  if (n % 2 === 0) {
    const up = firstParent(n, n - 1 - i);
    return up < 0 ? -1 : n - 1 - up;
  }
  const up = firstParent(n, (i - 1 + n) % n);
  return up < 0 ? -1 : (up + 1) % n;
}
