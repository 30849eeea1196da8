/**
 * Where the arrows of a wait graph end: its strongly connected components without a way out
 * (Tarjan's algorithm, iterative, since chains may be as long as the job has ranks).
 */
import type { Rank } from "../../model/ids.ts";
import type { WaitGraph } from "./wait-graph.ts";

export type Terminal =
  /** A rank that waits for nobody while others wait for it. */
  | { readonly kind: "rank"; readonly rank: Rank }
  /** An operator that all its members have entered and none leaves. */
  | { readonly kind: "op"; readonly op: number }
  /** Ranks that wait for each other in a circle. */
  | { readonly kind: "cycle"; readonly ranks: readonly Rank[]; readonly ops: readonly number[] };

export function terminals(graph: WaitGraph): Terminal[] {
  // Nodes: operators first, then every rank that appears.
  const ranks = new Set<Rank>([...graph.stuckIn.keys(), ...graph.ownGpu.keys()]);
  for (const op of graph.ops) for (const { rank } of op.absent) ranks.add(rank);
  const rankList = [...ranks].sort((a, b) => a - b);
  const nodeOf = new Map(rankList.map((rank, i) => [rank, graph.ops.length + i]));
  const edges: number[][] = graph.ops.map((op) => op.absent.map(({ rank }) => nodeOf.get(rank)!));
  for (const rank of rankList) edges.push([...(graph.stuckIn.get(rank) ?? [])]);

  const result: Terminal[] = [];
  for (const component of terminalComponents(edges)) {
    const ops = component.filter((node) => node < graph.ops.length);
    const members = component
      .filter((node) => node >= graph.ops.length)
      .map((node) => rankList[node - graph.ops.length]!);
    if (members.length === 1 && ops.length === 0) result.push({ kind: "rank", rank: members[0]! });
    else if (ops.length === 1 && members.length === 0) result.push({ kind: "op", op: ops[0]! });
    else result.push({ kind: "cycle", ranks: members.sort((a, b) => a - b), ops });
  }
  return result;
}

/** Strongly connected components that no edge leaves. */
export function terminalComponents(edges: readonly (readonly number[])[]): number[][] {
  const n = edges.length;
  const order = new Int32Array(n).fill(-1);
  const low = new Int32Array(n);
  const component = new Int32Array(n).fill(-1);
  const stack: number[] = [];
  const components: number[][] = [];
  let clock = 0;
  const path: number[] = [];
  const edgeAt = new Int32Array(n);
  for (let root = 0; root < n; root++) {
    if (order[root]! >= 0) continue;
    path.push(root);
    while (path.length > 0) {
      const node = path[path.length - 1]!;
      if (order[node]! < 0) {
        order[node] = low[node] = clock++;
        stack.push(node);
      }
      const next = edges[node]![edgeAt[node]!++];
      if (next !== undefined) {
        if (order[next]! < 0) path.push(next);
        else if (component[next]! < 0) low[node] = Math.min(low[node]!, order[next]!);
        continue;
      }
      path.pop();
      const parent = path[path.length - 1];
      if (parent !== undefined) low[parent] = Math.min(low[parent]!, low[node]!);
      if (low[node] !== order[node]) continue;
      const members: number[] = [];
      for (;;) {
        const member = stack.pop()!;
        component[member] = components.length;
        members.push(member);
        if (member === node) break;
      }
      components.push(members);
    }
  }
  return components.filter((members, id) =>
    members.every((node) => edges[node]!.every((next) => component[next] === id)),
  );
}
