/**
 * Algorithm 1 (Holmes §4.3.2) as printed, in one iteration from one pivot. What the paper leaves open: "any neighbor
 * operator n is normal" takes the first in the group's order; "all po before n" goes backwards from n ("backtrack",
 * appendix C), so the nearest abnormal one is followed. Operators already followed are not followed again, without
 * which the transfers of a pipeline would lead in circles.
 */
import type { JobOperators } from "./job-operators.ts";
import type { IsAbnormal } from "./published-detector.ts";

/** An entry of OPERATORS and CAUSES. */
export interface Root {
  readonly cause: "compute" | "network";
  /** The rank that computes slowly; or a group, or both sides of a transfer. */
  readonly ranks: readonly number[];
  /** The abnormal operator that shows it: that of §4.4's rate. For computing, the one in which others waited. */
  readonly at: number;
  readonly op: number;
}

/** No program has as many operators. */
export function operatorKey(rank: number, op: number): number {
  return rank * 0x10000 + op;
}

export function locate(
  operators: JobOperators,
  isAbnormal: IsAbnormal,
  iteration: number,
  pivot: number,
): readonly Root[] {
  const roots: Root[] = [];
  const followed = new Set<number>();
  const before = (rank: number, op: number): readonly number[] =>
    operators.of(rank).filter((each) => each < op);

  const locateNeighbor = (at: number, op: number): void => {
    const key = operatorKey(at, op);
    if (followed.has(key)) return;
    followed.add(key);
    if (operators.isTransfer(at, op)) {
      const [peer, peerOp] = operators.peerOf(at, op);
      if (isAbnormal(peer, peerOp, iteration)) {
        roots.push({ cause: "network", ranks: [at, peer], at, op });
        return;
      }
      for (const po of before(peer, peerOp))
        if (isAbnormal(peer, po, iteration)) locateNeighbor(peer, po);
      return;
    }
    const group = operators.groupOf(at, op);
    const normal = group.find(
      (member) => member !== at && !isAbnormal(member, operators.sameOn(at, op, member), iteration),
    );
    if (normal === undefined) {
      roots.push({ cause: "network", ranks: group, at, op });
      return;
    }
    const earlier = before(normal, operators.sameOn(at, op, normal)).findLast((po) =>
      isAbnormal(normal, po, iteration),
    );
    if (earlier === undefined) roots.push({ cause: "compute", ranks: [normal], at, op });
    else locateNeighbor(normal, earlier);
  };

  for (const op of operators.of(pivot))
    if (isAbnormal(pivot, op, iteration)) locateNeighbor(pivot, op);
  return roots;
}
