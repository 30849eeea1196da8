/**
 * Where the nodes of the wait graph go. No physics, no chance: the row is the distance to the
 * culprit, the place in the row follows the neighbours. Culprits stand at the bottom end. From top to
 * bottom rather than left to right, because chains of waiting are longer than layers are wide, and a
 * page scrolls down better than sideways.
 */
import type { Graph, GraphEdge, GraphNode } from "./wait-graph-nodes.ts";

interface Distance {
  /** Arrows to the nearest culprit; negative beyond a culprit that waits itself. */
  readonly steps: number;
  /** Whether any culprit is connected; otherwise `steps` leads to wherever the node's own arrows end. */
  readonly isRelated: boolean;
}

export interface PlacedNode {
  readonly node: GraphNode;
  /** Steps to the culprit; negative where the node lies beyond it. */
  readonly layer: number;
  /** Upper left corner, px. */
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface PlacedEdge {
  /** Indices into `Layout.nodes`. */
  readonly from: number;
  readonly to: number;
  readonly why: GraphEdge["why"];
  /** x of the lane beside the nodes that the edge takes; null where it goes straight to the next row. */
  readonly laneX: number | null;
}

export interface Layout {
  readonly nodes: readonly PlacedNode[];
  readonly edges: readonly PlacedEdge[];
  readonly width: number;
  readonly height: number;
  readonly leftOutRanks: number;
  readonly leftOutOps: number;
}

const RANK_WIDTH = 148;
const OP_WIDTH = 184;
const NODE_HEIGHT = 42;
const COLUMN_GAP = 20;
/** Below an operator the gap carries a word on why the next rank is absent. */
const GAP_BELOW_OP = 48;
const GAP_BELOW_RANKS = 30;
const MARGIN = 20;
const LANE_GAP = 14;
const SWEEPS = 6;

export function layOut(graph: Graph, mostNodes: number): Layout {
  const distance = distances(graph);
  const order = graph.nodes.map((_, i) => i).sort((a, b) => byNearness(distance, a, b));
  const kept = withoutLonelyOps(graph, order.slice(0, mostNodes));
  const isKept = new Set(kept);
  const leftOut = order.filter((i) => !isKept.has(i)).map((i) => graph.nodes[i]!);
  const newIndex = new Map(kept.map((old, i) => [old, i]));
  const edges = graph.edges.flatMap(({ from, to, why }) => {
    const [a, b] = [newIndex.get(from), newIndex.get(to)];
    return a === undefined || b === undefined ? [] : [{ from: a, to: b, why }];
  });
  const nodes = kept.map((old) => graph.nodes[old]!);
  const layers = kept.map((old) => distance[old]!.steps);
  const rows = ordered(toRows(layers), edges);
  const xs = centres(rows, edges, nodes.length);
  const ys = tops(rows, nodes);
  const right = Math.max(0, ...xs) + OP_WIDTH / 2;
  const rowOf = new Map(rows.flatMap((row, r) => row.map((i) => [i, r] as const)));
  const lanes = new Map<number, number>();
  const placed = edges.map(({ from, to, why }): PlacedEdge => {
    if (rowOf.get(to) === rowOf.get(from)! + 1) return { from, to, why, laneX: null };
    if (!lanes.has(to)) lanes.set(to, lanes.size);
    return { from, to, why, laneX: right + LANE_GAP * (lanes.get(to)! + 1) };
  });
  return {
    nodes: nodes.map((node, i) => ({
      node,
      layer: layers[i]!,
      x: xs[i]! - widthOf(node) / 2,
      y: ys[i]!,
      width: widthOf(node),
      height: NODE_HEIGHT,
    })),
    edges: placed,
    width: right + LANE_GAP * lanes.size + MARGIN,
    height: Math.max(0, ...ys) + NODE_HEIGHT + MARGIN,
    leftOutRanks: total(leftOut, (node) => (node.kind === "ranks" ? node.ranks.length : 0)),
    leftOutOps: total(leftOut, (node) => (node.kind === "op" ? node.ops.length : 0)),
  };
}

/** What leads to a culprit comes first, then the nearest. */
function byNearness(distance: readonly Distance[], a: number, b: number): number {
  const [left, right] = [distance[a]!, distance[b]!];
  if (left.isRelated !== right.isRelated) return left.isRelated ? -1 : 1;
  return Math.abs(left.steps) - Math.abs(right.steps) || a - b;
}

/** An operator whose waiting ranks were all cut off says nothing. */
function withoutLonelyOps(graph: Graph, kept: readonly number[]): number[] {
  const inside = new Set(kept);
  const reached = new Set(graph.edges.filter(({ from }) => inside.has(from)).map(({ to }) => to));
  return kept.filter((i) => graph.nodes[i]!.kind === "ranks" || reached.has(i));
}

function total(nodes: readonly GraphNode[], size: (node: GraphNode) => number): number {
  return nodes.reduce((sum, node) => sum + size(node), 0);
}

/** Farthest first, so that the culprit's row is the lowest but for what lies beyond it. */
function toRows(layers: readonly number[]): number[][] {
  const present = [...new Set(layers)].sort((a, b) => b - a);
  return present.map((layer) => [...layers.keys()].filter((i) => layers[i] === layer));
}

type PlainEdge = { readonly from: number; readonly to: number };

function neighbours(edges: readonly PlainEdge[], count: number): number[][] {
  const lists: number[][] = Array.from({ length: count }, () => []);
  for (const { from, to } of edges) {
    lists[from]!.push(to);
    lists[to]!.push(from);
  }
  return lists;
}

/** Barycentre sweeps: every node moves to the mean place of its neighbours in the next row. */
function ordered(rows: number[][], edges: readonly PlainEdge[]): number[][] {
  const count = rows.reduce((sum, row) => sum + row.length, 0);
  const near = neighbours(edges, count);
  const place = new Float64Array(count);
  const rowOf = new Int32Array(count);
  const note = (row: readonly number[]): void => {
    for (const [i, node] of row.entries()) place[node] = i - (row.length - 1) / 2;
  };
  for (const [r, row] of rows.entries()) {
    note(row);
    for (const node of row) rowOf[node] = r;
  }
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const side = sweep % 2 === 0 ? 1 : -1;
    const indices = [...rows.keys()];
    for (const r of side === 1 ? indices.reverse() : indices) {
      const wish = new Map(
        rows[r]!.map((node) => [
          node,
          mean(
            near[node]!.filter((i) => rowOf[i] === r + side),
            place,
            node,
          ),
        ]),
      );
      rows[r]!.sort((a, b) => wish.get(a)! - wish.get(b)! || a - b);
      note(rows[r]!);
    }
  }
  return rows;
}

function mean(nodes: readonly number[], values: Float64Array, otherwise: number): number {
  if (nodes.length === 0) return values[otherwise]!;
  return nodes.reduce((sum, node) => sum + values[node]!, 0) / nodes.length;
}

function tops(rows: readonly (readonly number[])[], nodes: readonly GraphNode[]): number[] {
  const ys: number[] = Array.from({ length: nodes.length }, () => 0);
  let y = MARGIN;
  for (const row of rows) {
    for (const i of row) ys[i] = y;
    const hasOp = row.some((i) => nodes[i]!.kind === "op");
    y += NODE_HEIGHT + (hasOp ? GAP_BELOW_OP : GAP_BELOW_RANKS);
  }
  return ys;
}

/** From the culprit's row upwards: as near to the neighbours' mean as the order allows. */
function centres(
  rows: readonly (readonly number[])[],
  edges: readonly PlainEdge[],
  count: number,
): number[] {
  const near = neighbours(edges, count);
  const xs = new Float64Array(count);
  const pitch = OP_WIDTH + COLUMN_GAP;
  const isPlaced = new Uint8Array(count);
  for (const row of rows.toReversed()) {
    for (const [i, node] of row.entries()) xs[node] = i * pitch;
    const wish = row.map((node) =>
      mean(
        near[node]!.filter((i) => isPlaced[i]),
        xs,
        node,
      ),
    );
    let x = -Infinity;
    for (const [i, node] of row.entries()) {
      x = Math.max(x + pitch, wish[i]!);
      xs[node] = x;
    }
    const shift = row.reduce((sum, node, i) => sum + wish[i]! - xs[node]!, 0) / row.length;
    for (const node of row) {
      xs[node]! += shift;
      isPlaced[node] = 1;
    }
  }
  const left = xs.reduce((least, x) => Math.min(least, x), Infinity);
  return [...xs].map((x) => Math.round((x - left + MARGIN + OP_WIDTH / 2) * 10) / 10);
}

function widthOf(node: GraphNode): number {
  return node.kind === "op" ? OP_WIDTH : RANK_WIDTH;
}

/** How far from the culprit each node of the wait graph is. */
function distances(graph: Graph): Distance[] {
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
