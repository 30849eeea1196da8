/**
 * Failures without a line (L4 §3.2's abnormal behaviours, §3.3.1's dead nodes): the whole job stops writing, one node
 * stops before the others, a long pause before the end. By time where lines have one, else by their order.
 */
import { median, spread } from "../../maths/robust.ts";
import type { LogDigest } from "../../model/log-digest.ts";
import type { LogNodes } from "./nodes.ts";
import type { NodeEvidence } from "./spatial-evidence.ts";
import { kindsOf, type Peers } from "./spatial-matrix.ts";
import { progressOf } from "./temporal-progress.ts";

/** stalled: iterations end long before the log does. stopped: a node is silent while others write. paused: a gap. */
export type Silence =
  | {
      readonly kind: "stalled";
      readonly sinceMs: number;
      readonly silentMs: number;
      readonly usualMs: number;
      readonly lastIteration: number;
    }
  | {
      readonly kind: "stopped";
      readonly node: number;
      readonly sinceMs: number;
      readonly byMs: number;
      readonly score: number;
    }
  | {
      readonly kind: "paused";
      readonly stream: number;
      readonly fromMs: number;
      readonly forMs: number;
    };

export interface SilenceResult {
  readonly silences: readonly Silence[];
  readonly evidence: readonly NodeEvidence[];
}

const STALLED_TIMES = 4;
const LEAST_STALL_MS = 60_000;
const LEAST_EARLY_MS = 5_000;
const EARLY_DEVIATIONS = 6;
/** A node that writes so seldom cannot be missed sooner than its own pauses last. */
const OWN_PAUSES = 3;
const STOPPED_STRENGTH = 0.7;
const REPORTER = 0.4;
/** Of nodes: if more stop early, they are not the odd ones. */
const FEW = 0.34;

export function silencesOf(digest: LogDigest, nodes: LogNodes): SilenceResult {
  const stopped = stoppedByTime(digest, nodes) ?? stoppedByOrder(digest, nodes);
  // The only writer that reports iterations stops when the job does, whichever rank stopped it.
  const reporters = new Set(digest.iterations.map(({ stream }) => nodes.of[stream]!));
  const isFew = reporters.size <= Math.max(1, 0.1 * nodes.names.length);
  const evidence = stopped.map(({ node, score }) => ({
    node,
    template: -1,
    kind: "stopped" as const,
    score: STOPPED_STRENGTH * score * (isFew && reporters.has(node) ? REPORTER : 1),
  }));
  const stalled = stalledOf(digest);
  const stalls = stalled.length > 0 ? stalled : onlyPulses(digest);
  return { silences: [...stalls, ...stopped, ...pausesOf(digest)], evidence };
}

type Stopped = Extract<Silence, { kind: "stopped" }>;

const TIMED_SHARE = 0.9;

/** By when every node wrote last; null where lines have no times. */
function stoppedByTime(digest: LogDigest, nodes: LogNodes): Stopped[] | null {
  const size = nodes.names.length;
  const last = new Float64Array(size).fill(NaN);
  const first = new Float64Array(size).fill(NaN);
  const lines = new Float64Array(size);
  const kinds = kindsOf(digest, nodes);
  const main = largest(kinds);
  let timed = 0;
  let all = 0;
  digest.streams.forEach((stream, s) => {
    const node = nodes.of[s]!;
    // Who has a kernel's log only cannot be held against those who have ranks'.
    if (node < 0 || main?.has[node] !== 1) return;
    if (kinds[s] === main) all++;
    if (Number.isNaN(stream.lastMs)) return;
    if (kinds[s] === main) timed++;
    lines[node]! += stream.lines;
    if (!(stream.lastMs <= last[node]!)) last[node] = stream.lastMs;
    if (!(stream.firstMs >= first[node]!)) first[node] = stream.firstMs;
  });
  if (timed === 0 || timed < TIMED_SHARE * all) return null;
  const pause = (node: number): number =>
    (last[node]! - first[node]!) / Math.max(1, lines[node]! - 1);
  return early(last, (node) => OWN_PAUSES * pause(node), LEAST_EARLY_MS).map((one) => ({
    kind: "stopped",
    ...one,
  }));
}

function largest(kinds: readonly (Peers | null)[]): Peers | null {
  return kinds.reduce(
    (best, kind) => ((kind?.count ?? 0) > (best?.count ?? 0) ? kind : best),
    null,
  );
}

/** In one file the order of lines is a clock; between files nothing is. */
function stoppedByOrder(digest: LogDigest, nodes: LogNodes): Stopped[] {
  const { cells, files, streams } = digest;
  const kinds = kindsOf(digest, nodes);
  const main = largest(kinds);
  const common = new Set(streams.filter((_, s) => kinds[s] === main).map(({ file }) => file));
  if (!main || common.size !== 1) return [];
  const size = nodes.names.length;
  const last = new Float64Array(size).fill(NaN);
  const lines = new Float64Array(size);
  for (let c = 0; c < cells.count; c++) {
    const stream = cells.stream[c]!;
    if (kinds[stream] !== main) continue;
    const node = nodes.of[stream]!;
    lines[node]! += cells.lines[c]!;
    if (!(cells.lastLine[c]! <= last[node]!)) last[node] = cells.lastLine[c]!;
  }
  const all = files[[...common][0]!]!.lines;
  const pause = (node: number): number => OWN_PAUSES * (all / Math.max(1, lines[node]!));
  return early(last, pause, 2 * size).map((one) => ({
    kind: "stopped",
    ...one,
    sinceMs: NaN,
    byMs: NaN,
  }));
}

/** Nodes whose last sign is before the others' by more than those differ and than their own pauses. */
function early(
  last: Float64Array,
  pauseOf: (node: number) => number,
  least: number,
): { node: number; sinceMs: number; byMs: number; score: number }[] {
  const known = last.filter((value) => !Number.isNaN(value));
  if (known.length < 3) return [];
  const usual = median(known);
  const deviation = spread(known, usual);
  const found: { node: number; sinceMs: number; byMs: number; score: number }[] = [];
  last.forEach((value, node) => {
    const by = usual - value;
    if (!(by > least)) return;
    const limit = Math.max(EARLY_DEVIATIONS * deviation, pauseOf(node));
    if (by <= limit) return;
    found.push({ node, sinceMs: value, byMs: by, score: Math.min(1, by / (2 * limit)) });
  });
  if (found.length > Math.max(1, FEW * known.length)) return [];
  const rare = Math.log(known.length / Math.max(1, found.length)) / Math.log(known.length);
  return found.map((one) => ({ ...one, score: one.score * rare }));
}

function stalledOf(digest: LogDigest): Silence[] {
  const { reporter } = progressOf(digest);
  if (!reporter || reporter.timeMs.length < 3) return [];
  const { timeMs, iteration } = reporter;
  // A number that comes again and again (a limit, an epoch's length) is no progress that could end.
  if (new Set(iteration).size < 3) return [];
  const durations = timeMs.slice(1).map((time, i) => time - timeMs[i]!);
  const usualMs = median(durations.filter((duration) => duration >= 0));
  // Lines without times of their own have that of the last that had one.
  if (!(usualMs > 0)) return [];
  const sinceMs = timeMs.at(-1)!;
  // Of its own file: other machines' clocks and kernels' logs go on whatever the job does.
  const { file } = digest.streams[reporter.stream]!;
  let endMs = -Infinity;
  for (const { lastMs, file: other } of digest.streams)
    if (other === file && lastMs > endMs) endMs = lastMs;
  const silentMs = endMs - sinceMs;
  // What the job got over before (an evaluation, new samples) is no stand-still when it comes again.
  const all = digest.iterations.find(({ stream }) => stream === reporter.stream)?.timeMs ?? timeMs;
  const longestMs = all.reduce((most, ms, i) => Math.max(most, i > 0 ? ms - all[i - 1]! : 0), 0);
  if (!(silentMs > Math.max(LEAST_STALL_MS, STALLED_TIMES * usualMs, longestMs))) return [];
  return [{ kind: "stalled", sinceMs, silentMs, usualMs, lastIteration: iteration.at(-1)! }];
}

/** So seldom, and so regularly, only monitors and schedulers write. */
const LEAST_PULSES = 3;
const LEAST_PULSE_MS = 5 * 60_000;
const LEAST_PULSES_MS = 30 * 60_000;

/** After the last report of an iteration nothing but pulses: lines that come by the clock, whatever the job does. */
function onlyPulses({ cells, iterations, streams }: LogDigest): Silence[] {
  const [reporter] = [...iterations].sort((a, b) => b.iteration.length - a.iteration.length);
  const report = reporter?.line.at(-1);
  if (!reporter || report === undefined) return [];
  const { file } = streams[reporter.stream]!;
  let lastOther = report;
  let firstPulse = Infinity;
  let fromMs = Infinity;
  let toMs = -Infinity;
  for (let c = 0; c < cells.count; c++) {
    if (streams[cells.stream[c]!]!.file !== file) continue;
    const lines = cells.lines[c]!;
    const spanMs = cells.lastMs[c]! - cells.firstMs[c]!;
    if (lines >= LEAST_PULSES && spanMs / (lines - 1) >= LEAST_PULSE_MS) {
      firstPulse = Math.min(firstPulse, cells.firstLine[c]!);
      fromMs = Math.min(fromMs, cells.firstMs[c]!);
      toMs = Math.max(toMs, cells.lastMs[c]!);
    } else lastOther = Math.max(lastOther, cells.lastLine[c]!);
  }
  const silentMs = toMs - fromMs;
  if (!(firstPulse > lastOther && silentMs >= LEAST_PULSES_MS)) return [];
  const lastIteration = reporter.iteration.at(-1)!;
  return [{ kind: "stalled", sinceMs: fromMs, silentMs, usualMs: NaN, lastIteration }];
}

const MOST_PAUSES = 20;

function pausesOf({ gaps, streams }: LogDigest): Silence[] {
  return gaps
    .map(({ stream, fromMs, toMs }) => ({
      kind: "paused" as const,
      stream,
      fromMs,
      forMs: (Number.isNaN(toMs) ? streams[stream]!.lastMs : toMs) - fromMs,
    }))
    .filter(({ forMs }) => forMs >= LEAST_STALL_MS)
    .sort((a, b) => b.forMs - a.forMs)
    .slice(0, MOST_PAUSES);
}
