/**
 * L4 as published (§5), for the comparison: cross-job filter, isolation forest over nodes, warped iterations. What the
 * paper leaves open is marked; it serves as the baseline that src/methods/logs/spatial.ts and temporal.ts are held against.
 */
import type { LogDigest } from "../../../src/model/log-digest.ts";
import { normalEvents, type NormalPool } from "../../../src/methods/logs/cross-job.ts";
import type { LogNodes } from "../../../src/methods/logs/nodes.ts";
import { l4Spatial } from "./spatial.ts";
import {
  eventMatrix,
  type LogTemplates,
  type SparseRows,
} from "../../../src/methods/logs/spatial-matrix.ts";
import { l4Temporal } from "./temporal.ts";

export interface L4Result {
  /** Templates that it thinks indicate the failure. */
  readonly indicating: ReadonlySet<number>;
  /** All nodes, the most suspicious first. */
  readonly nodes: readonly { readonly node: number; readonly score: number }[];
  readonly iterations: readonly number[];
}

/** "Exceed an anomalous degree threshold" (§6.2) without saying which: Liu et al. call 0.6 and more an anomaly. */
const ANOMALOUS = 0.6;
const MOST_NODES = 8;
/** Not said either: events are given that explain so much of a node's isolation. */
const LEAST_SHARE = 0.05;

export function l4(
  digest: LogDigest,
  templates: LogTemplates,
  nodes: LogNodes,
  pool: NormalPool | null,
): L4Result {
  const isLeftOut = normalEvents(templates.texts, pool);
  const data = withoutEvents(eventMatrix(digest, templates, nodes), isLeftOut);
  const ranked = data.rows < 2 ? [] : l4Spatial(data, { most: MOST_NODES });
  const indicating = new Set<number>();
  for (const { score, events } of ranked.slice(0, MOST_NODES)) {
    if (score < ANOMALOUS) continue;
    for (const { template, share } of events) if (share >= LEAST_SHARE) indicating.add(template);
  }
  const odd = l4Temporal(digest, templates, isLeftOut);
  for (const iteration of odd) for (const template of iteration.templates) indicating.add(template);
  return {
    indicating,
    nodes: ranked.map(({ node, score }) => ({ node, score })),
    iterations: odd.map(({ iteration }) => iteration),
  };
}

/** The same without some columns' entries, for methods that look at the rest only. */
function withoutEvents(data: SparseRows, isLeftOut: Uint8Array): SparseRows {
  const kept = [...data.column.keys()].filter((entry) => isLeftOut[data.column[entry]!] === 0);
  const start = new Int32Array(data.rows + 1);
  let at = 0;
  for (let row = 0; row < data.rows; row++) {
    while (at < kept.length && kept[at]! < data.start[row + 1]!) at++;
    start[row + 1] = at;
  }
  return {
    rows: data.rows,
    columns: data.columns,
    start,
    column: Int32Array.from(kept, (entry) => data.column[entry]!),
    value: Float64Array.from(kept, (entry) => data.value[entry]!),
  };
}
