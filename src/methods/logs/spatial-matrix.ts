/** Which node wrote which event how often, from when to when: L4's log event vectors (§5.3.1), without their zeros. */
import type { LogDigest } from "../../model/log-digest.ts";
import type { LogNodes } from "./nodes.ts";
import { progressOf } from "./temporal-progress.ts";

export interface LogTemplates {
  /** By shape. */
  readonly of: Int32Array;
  readonly texts: readonly string[];
}

export interface Peers {
  readonly count: number;
  /** By node. */
  readonly has: Uint8Array;
}

/** Rows of counts; what is not listed is 0. Columns ascend within a row. */
export interface SparseRows {
  readonly rows: number;
  readonly columns: number;
  /** rows + 1 places: entries of row r are start[r] to start[r + 1]. */
  readonly start: Int32Array;
  readonly column: Int32Array;
  readonly value: Float64Array;
}

/** Rows are nodes, columns are templates. Columns beside `value` are by entry. */
export interface EventMatrix extends SparseRows {
  readonly nodeOf: Int32Array;
  readonly firstMs: Float64Array;
  /** Of the file the node's first stream with the event writes to. */
  readonly firstLine: Float64Array;
  /** Iterations reported before its first line, and after its last; NaN where unknown. */
  readonly before: Float64Array;
  readonly after: Float64Array;
  /** Share of its stream that was written before its last line: near 1 is at the end. */
  readonly place: Float64Array;
  /** Entries of a template: byEvent[eventStart[t]] to byEvent[eventStart[t + 1]], nodes ascending. */
  readonly eventStart: Int32Array;
  readonly byEvent: Int32Array;
  /** By node. */
  readonly lines: Float64Array;
  /** By template: who could have written it, that is whose log of the same kind is there (its kernel's, its ranks'). */
  readonly peersOf: readonly Peers[];
  /** Reports of iterations in all. */
  readonly iterations: number;
}

export function eventMatrix(
  digest: LogDigest,
  templates: LogTemplates,
  nodes: LogNodes,
): EventMatrix {
  const { cells, streams } = digest;
  const rows = nodes.names.length;
  const columns = templates.texts.length;
  const progress = progressOf(digest);
  const ends = lastLines(digest);
  // Cells by node, by counting.
  const cellStart = new Int32Array(rows + 1);
  for (let c = 0; c < cells.count; c++) {
    const node = nodes.of[cells.stream[c]!]!;
    if (node >= 0) cellStart[node + 1]!++;
  }
  for (let n = 0; n < rows; n++) cellStart[n + 1]! += cellStart[n]!;
  const cellOf = new Int32Array(cellStart[rows]!);
  const fill = cellStart.slice(0, rows);
  for (let c = 0; c < cells.count; c++) {
    const node = nodes.of[cells.stream[c]!]!;
    if (node >= 0) cellOf[fill[node]!++] = c;
  }
  const most = cellOf.length;
  const start = new Int32Array(rows + 1);
  const column = new Int32Array(most);
  const value = new Float64Array(most);
  const nodeOf = new Int32Array(most);
  const firstMs = new Float64Array(most).fill(NaN);
  const firstLine = new Float64Array(most).fill(NaN);
  const before = new Float64Array(most).fill(NaN);
  const after = new Float64Array(most).fill(NaN);
  const place = new Float64Array(most);
  const entryOf = new Int32Array(columns).fill(-1);
  let entries = 0;
  for (let node = 0; node < rows; node++) {
    const from = cellStart[node]!;
    const to = cellStart[node + 1]!;
    const seen = new Set<number>();
    for (let i = from; i < to; i++) seen.add(templates.of[cells.shape[cellOf[i]!]!]!);
    for (const template of Int32Array.from(seen).sort()) {
      entryOf[template] = entries;
      column[entries] = template;
      nodeOf[entries++] = node;
    }
    for (let i = from; i < to; i++) {
      const c = cellOf[i]!;
      const stream = cells.stream[c]!;
      const entry = entryOf[templates.of[cells.shape[c]!]!]!;
      const first = cells.firstLine[c]!;
      const last = cells.lastLine[c]!;
      if (value[entry] === 0) firstLine[entry] = first;
      else if (first < firstLine[entry]!) firstLine[entry] = first;
      value[entry]! += cells.lines[c]!;
      firstMs[entry] = lower(firstMs[entry]!, cells.firstMs[c]!);
      before[entry] = lower(before[entry]!, progress.before(stream, first, cells.firstMs[c]!));
      const passed = progress.before(stream, last, cells.lastMs[c]!);
      after[entry] = lower(after[entry]!, progress.count - passed);
      place[entry] = Math.max(place[entry]!, last / Math.max(1, ends[stream]!));
    }
    start[node + 1] = entries;
  }
  const lines = new Float64Array(rows);
  streams.forEach((stream, s) => {
    const node = nodes.of[s]!;
    if (node >= 0) lines[node]! += stream.lines;
  });
  return {
    rows,
    columns,
    start,
    column: column.subarray(0, entries),
    value: value.subarray(0, entries),
    nodeOf: nodeOf.subarray(0, entries),
    firstMs,
    firstLine,
    before,
    after,
    place,
    ...eventsOf(column.subarray(0, entries), columns),
    lines,
    peersOf: peersByEvent(digest, templates, nodes),
    iterations: progress.count,
  };
}

/** By stream: the nodes with a file of the same kind, that is of a name that differs in its owner's alone. */
export function kindsOf({ streams, files }: LogDigest, { names, of }: LogNodes): (Peers | null)[] {
  const kinds = new Map<string, { count: number; has: Uint8Array }>();
  return streams.map(({ file }, s) => {
    const node = of[s]!;
    if (node < 0) return null;
    const [path, name] = [files[file]!.name, names[node]!];
    // A name of digits alone (a task's number) may stand anywhere in a path, also in that of the folder.
    const kind = (/^\d+$/.test(name) ? path : path.replaceAll(name, "*")).replace(/\d+/g, "0");
    const known = kinds.get(kind) ?? { count: 0, has: new Uint8Array(names.length) };
    kinds.set(kind, known);
    if (known.has[node] === 0) {
      known.has[node] = 1;
      known.count++;
    }
    return known;
  });
}

function peersByEvent(digest: LogDigest, templates: LogTemplates, nodes: LogNodes): Peers[] {
  const { cells } = digest;
  const ofStream = kindsOf(digest, nodes);
  const peers: Peers[] = [];
  // Events of two kinds are rare, and then of the larger one.
  for (let c = 0; c < cells.count; c++) {
    const template = templates.of[cells.shape[c]!]!;
    const kind = ofStream[cells.stream[c]!];
    if (kind && kind.count > (peers[template]?.count ?? 0)) peers[template] = kind;
  }
  const nobody = { count: 0, has: new Uint8Array(nodes.names.length) };
  return templates.texts.map((_, template) => peers[template] ?? nobody);
}

function eventsOf(
  column: Int32Array,
  columns: number,
): Pick<EventMatrix, "eventStart" | "byEvent"> {
  const eventStart = new Int32Array(columns + 1);
  for (const template of column) eventStart[template + 1]!++;
  for (let t = 0; t < columns; t++) eventStart[t + 1]! += eventStart[t]!;
  const byEvent = new Int32Array(column.length);
  const fill = eventStart.slice(0, columns);
  for (let entry = 0; entry < column.length; entry++) byEvent[fill[column[entry]!]!++] = entry;
  return { eventStart, byEvent };
}

/** By stream: the line that it wrote last. */
function lastLines({ cells, streams }: LogDigest): Float64Array {
  const last = new Float64Array(streams.length);
  for (let c = 0; c < cells.count; c++) {
    const stream = cells.stream[c]!;
    if (cells.lastLine[c]! > last[stream]!) last[stream] = cells.lastLine[c]!;
  }
  return last;
}

/** The lower of two, where NaN is none. */
function lower(a: number, b: number): number {
  if (Number.isNaN(a)) return b;
  return b < a ? b : a;
}
