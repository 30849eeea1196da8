/**
 * Nodes of a training job do the same and write the same (L4 §4.2), so what one writes, lacks, or writes first is worth a
 * look. Event by event, where L4's isolation forest (eval/logs/l4/spatial.ts) mixes all: rare events stay visible among thousands
 * of counts, and every score says why.
 */
import { median, spread } from "../../maths/robust.ts";
import type { LogDigest } from "../../model/log-digest.ts";
import type { LogNodes } from "./nodes.ts";
import { firstOrder, type FirstOrder } from "./spatial-clocks.ts";
import {
  rankEvents,
  rankNodes,
  type NodeEvidence,
  type EventSuspect,
  type NodeSuspect,
} from "./spatial-evidence.ts";
import { afterCommon } from "./spatial-end.ts";
import { eventMatrix, type EventMatrix, type LogTemplates } from "./spatial-matrix.ts";
import { accusingEvents, namedNodes, substitutes, variants } from "./spatial-texts.ts";

export interface SpatialOptions {
  /** By template, 0 to 1: how much it may say (./spatial-weights.ts). */
  readonly weightOf: (template: number) => number;
  /** By template: 1 where healthy jobs have it (./cross-job.ts). */
  readonly isNormal?: Uint8Array;
  /** What other comparisons hold against nodes (./silence.ts). */
  readonly also?: readonly NodeEvidence[];
}

export interface SpatialResult {
  readonly nodes: readonly NodeSuspect[];
  readonly events: readonly EventSuspect[];
}

/** Events with at least this weight may tell of a failure. */
const TELLING = 0.15;
/** With so many iterations after it, an event did not end the job; with fewer, by how many. Clocks are off by one or two. */
const WENT_ON = 3;
const LATE = 0.4;
const STILL = [1, 0.6, 0.4];
const RECOVERED = 0.2;
/** Written all along: by a role, or a trouble that the job lives with. */
const ALL_ALONG = 0.35;
const NORMAL = 0.05;
/** Healthy jobs have seen a link go down, too, and come back. */
const ROOT = 0.9;
const NORMAL_ROOT = 0.4;
/** What no word marks, but one node alone writes, for the first time, when the job ends. */
const NEW_AT_END = 0.35;
/** What is new to all healthy jobs weighs at least so much, if it weighs anything. */
const UNHEARD = 0.14;
const QUIET = 0.1;
/** A line that names another node is as much about that one. */
const ACCUSING = 0.5;
/** Of nodes: what more have is no difference; what fewer lack is one. */
const FEW = 0.34;
const NEARLY_ALL = 0.8;
const WIDESPREAD = 0.3;
const LEAST_PEERS = 3;
/** For a log that reports no iteration: what comes later is at its end. */
const LATE_PLACE = 0.7;
/** Some nodes report for all: rank 0, the last rank, the one that reports iterations. */
const SPEAKER = 0.4;

export function compareNodes(
  digest: LogDigest,
  templates: LogTemplates,
  nodes: LogNodes,
  options: SpatialOptions,
): SpatialResult {
  const matrix = eventMatrix(digest, templates, nodes);
  const pieces: NodeEvidence[] = [...(options.also ?? [])];
  if (matrix.rows >= 2) {
    const accusing = accusingEvents(digest, templates, nodes);
    const view = viewOf(digest, templates, nodes, matrix, accusing, options);
    for (let t = 0; t < matrix.columns; t++) {
      const entries = matrix.byEvent.subarray(matrix.eventStart[t], matrix.eventStart[t + 1]);
      if (entries.length === 0) continue;
      const { count } = matrix.peersOf[t]!;
      if (entries.length <= Math.max(1, FEW * count)) onlyThere(view, t, entries, pieces);
      if (count < LEAST_PEERS) continue;
      if (entries.length >= NEARLY_ALL * count) notThere(view, t, entries, pieces);
      if (entries.length >= 0.5 * count) otherCounts(view, t, entries, pieces);
      if (entries.length >= WIDESPREAD * count) firstThere(view, t, entries, pieces);
    }
    firstTrouble(view, pieces);
    const lateWeight = (shape: number): number => {
      const t = templates.of[shape]!;
      return view.weight[t]! >= TELLING && lateEvent(view, t) ? view.weight[t]! : 0;
    };
    pieces.push(
      ...namedNodes(digest, nodes, lateWeight),
      ...variants(digest, templates, nodes),
      ...substitutes(pieces, templates.texts),
    );
  }
  return { nodes: rankNodes(pieces, nodes.names), events: rankEvents(pieces) };
}

interface View {
  readonly matrix: EventMatrix;
  readonly weight: Float64Array;
  readonly order: FirstOrder;
  readonly isSpeaker: Uint8Array;
  /** By entry: 1 where the node's job ended with it. */
  readonly isEnd: Uint8Array;
  /** By node: events without weight that it alone has, at the end and before. Who has hundreds has a role. */
  readonly ownQuiet: Float64Array;
  readonly ownQuietEnd: Float64Array;
  /** By template: 1 where its lines name other nodes than their writers'. */
  readonly isAccusing: Uint8Array;
  readonly isNormal: (template: number) => boolean;
}

function viewOf(
  digest: LogDigest,
  templates: LogTemplates,
  nodes: LogNodes,
  matrix: EventMatrix,
  isAccusing: Uint8Array,
  { weightOf, isNormal }: SpatialOptions,
): View {
  const { rows, columns } = matrix;
  const hasPool = isNormal?.includes(1) === true;
  const weight = Float64Array.from({ length: columns }, (_, t) => {
    const own = Math.min(1, Math.max(0, weightOf(t)));
    if (isNormal?.[t] === 1) return own * (own >= ROOT ? NORMAL_ROOT : NORMAL);
    // What no healthy job writes is worth a look, whatever its words; parts of stacks are not.
    return hasPool && own >= QUIET ? Math.max(own, UNHEARD) : own;
  });
  const isLast =
    matrix.iterations < WENT_ON
      ? afterCommon(digest, templates, nodes, (t) => weight[t]! >= TELLING)
      : null;
  const isEnd = Uint8Array.from(matrix.column, (t, entry) =>
    // Who says that the program goes on, or that a trouble is over, is not at its end.
    weight[t]! >= QUIET && (isLast ? isLast[t] === 1 : isNewAtEnd(matrix, entry)) ? 1 : 0,
  );
  const ownQuiet = new Float64Array(rows);
  const ownQuietEnd = new Float64Array(rows);
  for (let t = 0; t < columns; t++) {
    const from = matrix.eventStart[t]!;
    if (matrix.eventStart[t + 1]! - from !== 1 || weight[t]! >= TELLING) continue;
    const entry = matrix.byEvent[from]!;
    (isEnd[entry] === 1 ? ownQuietEnd : ownQuiet)[matrix.nodeOf[entry]!]!++;
  }
  const isOneFile = new Set(digest.streams.map(({ file }) => file)).size === 1;
  const isBefore = (t: number): boolean => {
    const entry = matrix.byEvent[matrix.eventStart[t]!]!;
    return weight[t]! < TELLING && !(matrix.after[entry]! < WENT_ON);
  };
  return {
    matrix,
    weight,
    order: firstOrder(matrix, isBefore, isOneFile),
    isSpeaker: speakersOf(digest, nodes),
    isEnd,
    ownQuiet,
    ownQuietEnd,
    isAccusing,
    isNormal: (t) => isNormal?.[t] === 1,
  };
}

function speakersOf({ iterations }: LogDigest, { names, of, firstRank }: LogNodes): Uint8Array {
  const isSpeaker = new Uint8Array(names.length);
  const reporters = new Set(iterations.map(({ stream }) => of[stream]!).filter((n) => n >= 0));
  if (reporters.size <= Math.max(1, 0.1 * names.length))
    for (const node of reporters) isSpeaker[node] = 1;
  let last = -1;
  firstRank.forEach((rank, node) => {
    if (rank === 0) isSpeaker[node] = 1;
    if (rank > 0 && (last < 0 || rank > firstRank[last]!)) last = node;
  });
  if (last >= 0) isSpeaker[last] = 1;
  return isSpeaker;
}

/** How far so many can be compared at all: two cannot tell who is odd. */
function trust(peers: number): number {
  return Math.max(0.5, (peers - 1) / (peers + 1));
}

/** 1 where one of many has it, 0 where all have: the share of bits that naming the node takes. */
function rarity({ matrix }: View, t: number, having: number): number {
  const { count } = matrix.peersOf[t]!;
  return count < 2 ? 0.5 : (trust(count) * Math.log(count / having)) / Math.log(count);
}

/** How far an event can have to do with the end of the job, by where it stands. */
function timing({ matrix }: View, entry: number): number {
  const after = matrix.after[entry]!;
  const before = matrix.before[entry]!;
  // No iteration anywhere near: what stands at the end of a log counts for more.
  if (Number.isNaN(after) || matrix.iterations === 0) return 0.6 + 0.4 * matrix.place[entry]!;
  if (after >= WENT_ON) return RECOVERED;
  const spanned = matrix.iterations - before - after;
  const isAllAlong = matrix.value[entry]! >= 3 && spanned > 0.5 * matrix.iterations;
  return isAllAlong ? ALL_ALONG : (STILL[after] ?? 1);
}

/** Whether the job ended with it, by its iterations. */
function isNewAtEnd({ iterations, before, after }: EventMatrix, entry: number): boolean {
  return iterations >= WENT_ON && before[entry]! >= iterations - 1 && after[entry]! < WENT_ON;
}

function lateEvent(view: View, t: number): boolean {
  const { eventStart, byEvent } = view.matrix;
  const middle = byEvent[(eventStart[t]! + eventStart[t + 1]!) >> 1];
  if (middle === undefined) return false;
  const isTold = view.matrix.iterations > 0 && !Number.isNaN(view.matrix.after[middle]!);
  return isTold ? timing(view, middle) >= LATE : view.matrix.place[middle]! >= LATE_PLACE;
}

function onlyThere(view: View, t: number, entries: Int32Array, pieces: NodeEvidence[]): void {
  const { matrix, weight, isSpeaker, isEnd, ownQuiet, ownQuietEnd, isAccusing, isNormal } = view;
  const rare = rarity(view, t, entries.length);
  for (const entry of entries) {
    const node = matrix.nodeOf[entry]!;
    let score = weight[t]! * rare * timing(view, entry);
    if (weight[t]! < TELLING)
      score =
        isEnd[entry] === 1 && !isNormal(t)
          ? (NEW_AT_END * rare) / Math.max(1, Math.sqrt(ownQuietEnd[node]!))
          : score / Math.max(1, ownQuiet[node]!);
    if (isAccusing[t] === 1) score *= ACCUSING;
    if (isSpeaker[node] === 1 && weight[t]! < 0.9) score *= SPEAKER;
    if (score > 0.005) pieces.push({ node, template: t, kind: "only", score });
  }
}

function notThere(view: View, t: number, entries: Int32Array, pieces: NodeEvidence[]): void {
  const { matrix, weight, isSpeaker } = view;
  const { count, has } = matrix.peersOf[t]!;
  const lacking = count - entries.length;
  if (lacking <= 0) return;
  const isLate = lateEvent(view, t);
  const strength = !isLate ? 0.15 : weight[t]! >= TELLING ? 0.55 : 0.25;
  // Squared: of nodes that died before they could write it there are many.
  const score = strength * rarity(view, t, lacking) ** 2;
  let at = 0;
  for (let node = 0; node < matrix.rows; node++) {
    if (at < entries.length && matrix.nodeOf[entries[at]!] === node) at++;
    else if (has[node] === 1) {
      const own = isSpeaker[node] === 1 && !isLate ? score * SPEAKER : score;
      pieces.push({ node, template: t, kind: "lacks", score: own });
    }
  }
}

const SURE_DEVIATIONS = 5;

function otherCounts(view: View, t: number, entries: Int32Array, pieces: NodeEvidence[]): void {
  const { matrix, weight, isSpeaker } = view;
  const { count } = matrix.peersOf[t]!;
  const counts = new Float64Array(count);
  entries.forEach((entry, i) => {
    counts[i] = matrix.value[entry]!;
  });
  const usual = median(counts);
  // A count varies by its root, whatever the others do.
  const deviation = Math.hypot(spread(counts, usual), Math.sqrt(usual + 1));
  // Without the event itself: a flood of it makes its own log long.
  const rest = (lines: number, counted: number): number => Math.max(1, lines - counted);
  const usualRest = rest(median(matrix.lines), usual);
  const odd: { entry: number; z: number }[] = [];
  for (const entry of entries) {
    const own = rest(matrix.lines[matrix.nodeOf[entry]!]!, matrix.value[entry]!);
    const expected = usual * (own / usualRest);
    const raw = (matrix.value[entry]! - usual) / deviation;
    const rated = (matrix.value[entry]! - expected) / Math.hypot(deviation, Math.sqrt(expected));
    const z = raw * rated <= 0 ? 0 : Math.abs(raw) < Math.abs(rated) ? raw : rated;
    if (Math.abs(z) >= SURE_DEVIATIONS) odd.push({ entry, z });
  }
  if (odd.length === 0 || odd.length > FEW * count) return;
  const rare = rarity(view, t, odd.length);
  for (const { entry, z } of odd) {
    const node = matrix.nodeOf[entry]!;
    const strength = Math.min(1, Math.abs(z) / (4 * SURE_DEVIATIONS));
    let score = 0.6 * strength * rare * Math.max(0.1, weight[t]!);
    if (isSpeaker[node] === 1) score *= SPEAKER;
    pieces.push({ node, template: t, kind: z > 0 ? "more" : "fewer", score });
  }
}

function firstThere(view: View, t: number, entries: Int32Array, pieces: NodeEvidence[]): void {
  const { matrix, weight, order } = view;
  if (weight[t]! < TELLING || order.bound === Infinity || entries.length < 3) return;
  // In a console without times, of those that all say the same somebody's line is first.
  if (!order.isTime && entries.length >= NEARLY_ALL * matrix.rows) return;
  if (!lateEvent(view, t)) return;
  let first = -1;
  let earliest = Infinity;
  let second = Infinity;
  for (const entry of entries) {
    const at = order.at(entry);
    if (at < earliest) {
      second = earliest;
      earliest = at;
      first = entry;
    } else if (at < second) second = at;
  }
  if (first < 0 || !(second - earliest > order.bound)) return;
  const strength = order.isTime ? 0.6 : 0.3;
  // Timeouts run out in any order; what breaks is first.
  const score = strength * trust(matrix.peersOf[t]!.count) * weight[t]! ** 2;
  pieces.push({ node: matrix.nodeOf[first]!, template: t, kind: "first", score });
}

/** The node with the first problem that the job did not survive. */
function firstTrouble(view: View, pieces: NodeEvidence[]): void {
  const { matrix, weight, order } = view;
  if (order.bound === Infinity) return;
  let first = -1;
  let earliest = Infinity;
  let second = Infinity;
  for (let entry = 0; entry < matrix.column.length; entry++) {
    if (weight[matrix.column[entry]!]! < TELLING || timing(view, entry) < LATE) continue;
    const at = order.at(entry);
    if (Number.isNaN(at)) continue;
    if (at < earliest) {
      if (first >= 0 && matrix.nodeOf[first] !== matrix.nodeOf[entry]) second = earliest;
      earliest = at;
      first = entry;
    } else if (at < second && matrix.nodeOf[first] !== matrix.nodeOf[entry]) second = at;
  }
  if (first < 0) return;
  const isSure = second - earliest > order.bound;
  const strength = (isSure ? 0.5 : 0.15) * (order.isTime ? 1 : 0.7);
  const template = matrix.column[first]!;
  const score = strength * trust(matrix.rows) * Math.sqrt(weight[template]!);
  pieces.push({ node: matrix.nodeOf[first]!, template, kind: "first", score });
}
