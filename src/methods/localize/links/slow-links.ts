/** Links between neighbouring pipeline stages that became slow; the idea is in README.md here. */
import { jitter, largestRise, levelWithin, type Bounds, type Rise } from "../../../maths/rise.ts";
import { median } from "../../../maths/robust.ts";
import type { Rank } from "../../../model/ids.ts";
import type { StageOperations } from "../../../model/stage-operations.ts";
import { stageSteps, type RankSteps, type StepPasses } from "./stage-steps.ts";

interface LinkDelays {
  readonly from: RankSteps;
  readonly to: RankSteps;
  /** Iterations that both ends tell of, as printed, in order; one point of the bounds each. */
  readonly steps: readonly number[];
  /** Milliseconds; includes what the clock of `to` is ahead. */
  readonly forward: Bounds;
  /** Milliseconds; less what the clock of `to` is ahead. */
  readonly backward: Bounds;
}

export interface LinkFinding {
  readonly link: readonly [Rank, Rank];
  /** First slow iteration, as printed. */
  readonly iteration: number;
  /** First iteration after it that is not; null where it lasts. */
  readonly until: number | null;
  /** A transfer before, both directions averaged: free of how the clocks differ. */
  readonly beforeMs: number;
  /** By how much a transfer takes longer, averaged over the directions that do. */
  readonly delayMs: number;
  /** Those that are shown to be slow. */
  readonly directions: readonly ("forward" | "backward")[];
  /** Whether the other direction is shown not to be; where its receiver was never idle, nothing shows. */
  readonly isOneWay: boolean;
  /** 0..1 */
  readonly confidence: number;
  readonly format: string;
}

/** Idle and worth a word: a share of a forward pass. Less neither shows nor matters. */
const SHARE_OF_PASS = 0.1;
/** A rise stands out of the noise by so many deviations, and of the usual transfer by so much. */
const NOISES = 5;
const SHARE_OF_TRANSFER = 0.5;
/** By judgement: a rise that just counts, and how sure a huge one makes. */
const LEAST_CONFIDENCE = 0.6;
const MOST_CONFIDENCE = 0.95;
/** Head-of-line blocking at a neighbour looks like a link that is slow in one direction. */
const ONE_WAY = 0.6;
const OTHER_HIDDEN = 0.85;

/**
 * Tables of one format are compared with each other: another one may count iterations differently, or hold those
 * in which tensors went another way.
 */
export function slowLinks(operations: readonly StageOperations[]): LinkFinding[] {
  const formats = new Set(operations.map(({ format }) => format));
  return [...formats].flatMap((format) =>
    slowLinksOf(
      format,
      operations.filter((table) => table.format === format),
    ),
  );
}

function slowLinksOf(format: string, tables: readonly StageOperations[]): LinkFinding[] {
  const ranks = stageSteps(tables);
  const smallMs = SHARE_OF_PASS * typicalPass(tables);
  if (!(smallMs > 0)) return [];
  const links = ranks
    .slice(1)
    .map((to, i) => linkDelays(ranks[i]!, to, smallMs))
    .filter(areNeighbours);
  const noises = links.flatMap(({ forward, backward }) => [jitter(forward), jitter(backward)]);
  const common = median(noises.filter((noise) => noise >= 0));
  const found = links.flatMap((link) => judge(link, smallMs, common, format) ?? []);
  const bothWays = found.filter(({ isOneWay }) => !isOneWay);
  return bothWays.length > 0 ? bothWays : found;
}

function judge(
  link: LinkDelays,
  smallMs: number,
  commonNoise: number,
  format: string,
): LinkFinding | null {
  const { forward, backward, steps } = link;
  const transfer = Math.max(0, roundTrip(link) / 2);
  const least = (bounds: Bounds): number => {
    const noise = Math.max(commonNoise || 0, jitter(bounds) || 0);
    return Math.max(smallMs, SHARE_OF_TRANSFER * transfer, NOISES * noise);
  };
  const ways = [
    riseOf("forward", forward, least(forward), backward, least(backward)),
    riseOf("backward", backward, least(backward), forward, least(forward)),
  ].filter((way) => way !== null);
  const [one, two] = ways;
  if (!one) return null;
  const isTogether = two && one.rise.start < two.rise.end && two.rise.start < one.rise.end;
  const taken = two && !isTogether ? [one.times >= two.times ? one : two] : ways;
  const rises = taken.map(({ rise }) => rise);
  // The weaker direction decides: each alone can be an echo of another link.
  const times = Math.min(...taken.map((way) => way.times));
  const sure = MOST_CONFIDENCE - (MOST_CONFIDENCE - LEAST_CONFIDENCE) / times;
  const isOneWay = taken.length === 1 && !taken[0]!.isOtherHidden;
  return {
    link: [link.from.rank, link.to.rank],
    iteration: steps[Math.min(...rises.map(({ start }) => start))]!,
    until: steps[Math.max(...rises.map(({ end }) => end))] ?? null,
    beforeMs: transfer,
    delayMs: rises.reduce((sum, { before, after }) => sum + after - before, 0) / rises.length,
    directions: taken.map(({ name }) => name),
    isOneWay,
    confidence: sure * (taken.length === 2 ? 1 : isOneWay ? ONE_WAY : OTHER_HIDDEN),
    format,
  };
}

interface Way {
  readonly name: "forward" | "backward";
  readonly rise: Rise;
  /** Its height, in what it takes to be counted. */
  readonly times: number;
  /** Whether the other direction may be as slow: its bounds rose too. */
  readonly isOtherHidden: boolean;
}

function riseOf(
  name: Way["name"],
  bounds: Bounds,
  least: number,
  other: Bounds,
  otherLeast: number,
): Way | null {
  const rise = largestRise(bounds, least);
  if (!rise) return null;
  const height = rise.after - rise.before;
  const { start, end } = rise;
  const otherHeight = levelWithin(other, start, end) - levelWithin(other, 0, start) || 0;
  // A clock that was set makes one direction longer by what it makes the other shorter.
  if (!(height + otherHeight > least)) return null;
  return { name, rise, times: height / least, isOtherHidden: otherHeight > otherLeast };
}

/** There and back; how far the clocks are apart does not matter. The fastest quarter: all are bounds from above. */
function roundTrip({ forward, backward }: LinkDelays): number {
  const sums = forward.value.map((value, i) => value + backward.value[i]!);
  const known = [...sums].filter((sum) => !Number.isNaN(sum)).sort((a, b) => a - b);
  return median(known.slice(0, Math.ceil(known.length / 4)));
}

/**
 * Stage and successor cannot exchange tensors in less than no time. Ranks of the same stage compute at the same
 * time and would have to.
 */
function areNeighbours(link: LinkDelays): boolean {
  const { from, to } = link;
  if (to.replica !== from.replica) return false;
  return (to.stage < 0 || to.stage === from.stage + 1) && roundTrip(link) >= 0;
}

/** Enough passes for a median, however long the log. */
const SAMPLE_PASSES = 4096;

function typicalPass(tables: readonly StageOperations[]): number {
  const durations: number[] = [];
  for (const { kind, kinds, durationMs } of tables) {
    const forward = kinds.indexOf("forward-compute");
    for (let row = 0; row < kind.length && durations.length < SAMPLE_PASSES; row++) {
      if (kind[row] === forward) durations.push(durationMs[row]!);
    }
  }
  return median(durations);
}

/**
 * How long tensors take from one stage to the next, iteration by iteration, from the passes at both ends. A pass
 * begins at max(end of the receiver's previous pass, end of the sender's pass + transfer): the gap between sender
 * and receiver bounds the transfer from above, and equals it where the receiver had nothing else to do. The least
 * gap of an iteration is thus the best bound; queues behind a slow link elsewhere make the other gaps longer, but
 * the first micro-batches of an iteration, and the last, meet no queue.
 * `idleMs`: a receiver that did nothing for so long was waiting.
 */
function linkDelays(from: RankSteps, to: RankSteps, idleMs: number): LinkDelays {
  const steps = [...from.steps.keys()].filter((step) => to.steps.has(step)).sort((a, b) => a - b);
  const forward = empty(steps.length);
  const backward = empty(steps.length);
  for (const [i, step] of steps.entries()) {
    const a = from.steps.get(step)!;
    const b = to.steps.get(step)!;
    setLeast(forward, i, a, a.forward, b, b.forward, to, idleMs);
    setLeast(backward, i, b, b.backward, a, a.backward, from, idleMs);
  }
  return { from, to, steps, forward, backward };
}

function setLeast(
  bounds: Bounds,
  at: number,
  { table: sender }: StepPasses,
  sent: readonly number[],
  { table: receiver }: StepPasses,
  received: readonly number[],
  { idleMs: idleOf }: RankSteps,
  idleMs: number,
): void {
  const idle = idleOf.get(receiver)!;
  let least = Infinity;
  let leastIdle = Infinity;
  for (const [i, row] of received.entries()) {
    const source = sent[i];
    if (source === undefined) break;
    const gap = receiver.startMs[row]! - sender.startMs[source]! - sender.durationMs[source]!;
    least = Math.min(least, gap);
    if (idle[row]! > idleMs) leastIdle = Math.min(leastIdle, gap);
  }
  if (least === Infinity) return;
  bounds.value[at] = least;
  // A shorter gap into a busy receiver shows that the waiting ones waited for more than the transfer.
  bounds.tight[at] = leastIdle <= least + idleMs ? 1 : 0;
}

function empty(length: number): Bounds {
  return { value: new Float64Array(length).fill(NaN), tight: new Uint8Array(length) };
}
