/** How far from the culprit each node of the wait graph is. */
import type { Graph } from "./wait-graph-nodes.ts";

export interface Distance {
  /** Arrows to the nearest culprit; negative beyond a culprit that waits itself. */
  readonly steps: number;
  /** Whether any culprit is connected; otherwise `steps` leads to wherever the node's own arrows end. */
  readonly isRelated: boolean;
}

export function distances(graph: Graph): Distance[] {
  const into: number[][] = graph.nodes.map(() => []);
  const outOf: number[][] = graph.nodes.map(() => []);
  for (const { from, to } of graph.edges) {
    into[to]!.push(from);
    outOf[from]!.push(to);
  }
  const steps: (number | undefined)[] = graph.nodes.map(() => undefined);
  const all = [...steps.keys()];
  const culprits = all.filter((i) => isCulprit(graph, i));
  for (const i of culprits) steps[i] = 0;
  spread(steps, culprits, into, 1);
  spread(steps, culprits, outOf, -1);
  const beyond = all.filter((i) => (steps[i] ?? 0) < 0);
  spread(steps, beyond, into, 1);
  const related = steps.map((value) => value !== undefined);

  const ends = all.filter((i) => steps[i] === undefined && outOf[i]!.length === 0);
  for (const i of ends) steps[i] = 0;
  spread(steps, ends, into, 1);
  // What is left are circles that nobody is blamed for.
  for (const i of all) {
    if (steps[i] !== undefined) continue;
    steps[i] = 0;
    spread(steps, [i], into, 1);
  }
  return steps.map((value, i) => ({ steps: value!, isRelated: related[i]! }));
}

function isCulprit(graph: Graph, index: number): boolean {
  const node = graph.nodes[index]!;
  return node.kind === "ranks" && node.status === "culprit";
}

/** Breadth first. */
function spread(
  steps: (number | undefined)[],
  starts: readonly number[],
  next: readonly (readonly number[])[],
  step: number,
): void {
  const queue = [...starts];
  for (let head = 0; head < queue.length; head++) {
    const node = queue[head]!;
    for (const neighbour of next[node]!) {
      if (steps[neighbour] !== undefined) continue;
      steps[neighbour] = steps[node]! + step;
      queue.push(neighbour);
    }
  }
}
