/** L4's spatial comparison as published (§5.3.1): an isolation forest over the nodes' event counts. */
import {
  contributions,
  growForest,
  isolationScores,
  type ForestOptions,
} from "../../maths/isolation-forest.ts";
import type { SparseRows } from "../../../src/methods/logs/spatial-matrix.ts";

export interface L4Node {
  readonly node: number;
  /** The forest's, 0 to 1. */
  readonly score: number;
  /** Templates that parted it from the others, the largest share first; shares of the node add up to 1. */
  readonly events: readonly { readonly template: number; readonly share: number }[];
}

export interface L4SpatialOptions extends ForestOptions {
  /** How many nodes are explained; the paper recommends the top 8 (§6.2). */
  readonly most?: number;
}

/** All nodes, the oddest first. Only the first `most` have events. */
export function l4Spatial(data: SparseRows, options: L4SpatialOptions = {}): L4Node[] {
  const { most = 8 } = options;
  const forest = growForest(data, options);
  const scores = isolationScores(data, forest);
  const order = [...scores.keys()].sort((a, b) => scores[b]! - scores[a]! || a - b);
  return order.map((node, place) => {
    if (place >= most) return { node, score: scores[node]!, events: [] };
    const parts = [...contributions(data, forest, node)].sort((a, b) => b[1] - a[1]);
    const sum = parts.reduce((total, [, part]) => total + part, 0);
    return {
      node,
      score: scores[node]!,
      events: parts.map(([template, part]) => ({ template, share: part / sum })),
    };
  });
}
