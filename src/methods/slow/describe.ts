/** Since when somebody is slow and the figures behind the judge's sentence: who was compared with whom, in milliseconds. */
import { median } from "../../maths/robust.ts";
import type { Compared as ComparedFigures, SlowTimes } from "../../model/facts.ts";
import type { Group } from "../../model/job.ts";
import type { RankOperators } from "../../model/rank-operators.ts";
import { type Account, row } from "./account.ts";
import type { Compared, RankEvidence } from "./compare.ts";
import { lastingLevel } from "./levels.ts";
import { spikingBlocks } from "./spikes.ts";

/** Ranks, and wires, whose figures are handed over. */
const MOST_RANKS = 24;
const MOST_WIRES = 12;
/** A lead that is gone in so many blocks at the end of the record is over. */
const GONE_BLOCKS = 3;

/** The blocks in which somebody is slow, and the others that tell what is usual. */
export interface SlowBlocks {
  readonly before: Int32Array;
  readonly since: Int32Array;
  readonly isNowAndThen: boolean;
  /** The last slow block; -1: it lasts. */
  readonly last: number;
}

export function slowSince(moment: number, { blocks }: Account, last = -1): SlowBlocks {
  const all = Int32Array.from({ length: blocks }, (_, k) => k);
  return {
    before: all.subarray(0, moment),
    since: all.subarray(moment),
    isNowAndThen: false,
    last,
  };
}

export function slowBlocksOf({ account, series }: Compared, evidence: RankEvidence): SlowBlocks {
  const { place, moment, leads, lead, isNowAndThen } = evidence;
  if (isNowAndThen) {
    const since = spikingBlocks(account, series[1] ?? series[0]!, place);
    const before = slowSince(0, account).since.filter((k) => !since.includes(k));
    return { before, since, isNowAndThen, last: -1 };
  }
  const usual = moment === 0 ? 0 : median(leads.subarray(0, moment));
  const last = leads.findLastIndex((value) => value - usual > lead / 2);
  const isOver = account.blocks - 1 - last >= GONE_BLOCKS;
  return slowSince(onsetOf(evidence, usual), account, isOver ? last : -1);
}

/** The block at which its lead changed: the split with the least distance of all blocks from the level on their side of it. */
function onsetOf({ moment, leads, lead }: RankEvidence, usual: number): number {
  if (moment === 0) return 0;
  let [distance, least, onset] = [0, 0, 0];
  // From one block to the next the split moves it from behind to in front.
  for (const [k, value] of leads.entries()) {
    distance += Math.abs(value - usual) - Math.abs(value - usual - lead);
    if (distance < least) [least, onset] = [distance, k + 1];
  }
  return onset > 0 && onset < leads.length ? onset : moment;
}

export function slowTimes(
  { numbers, areIterations, lengthMs }: Account,
  { iteration, startMs }: RankOperators,
  { since, before, isNowAndThen, last }: SlowBlocks,
): SlowTimes {
  const first = since[0]!;
  const isFromStart = !isNowAndThen && before.length === 0;
  const msOf = (block: number): number =>
    areIterations ? (startMs[iteration.indexOf(numbers[block]!)] ?? NaN) : numbers[block]!;
  const timeOf = (ms = NaN): string | null =>
    Number.isFinite(ms) ? new Date(ms).toISOString() : null;
  return {
    slowDown: true,
    sinceStart: isFromStart,
    recordFrom: areIterations ? (iteration[0] ?? null) : null,
    iteration: isFromStart || !areIterations ? 1 : numbers[first]!,
    until: last < 0 || !areIterations ? null : numbers[last]!,
    from: timeOf(isFromStart && areIterations ? startMs[0] : msOf(first)),
    to: last < 0 ? null : timeOf(msOf(last) + lengthMs[last]!),
  };
}

type Pair = readonly [before: number | null, since: number];

/** Medians before and since; of what is slow now and then, in the other blocks and in those. */
export function pairOf(values: Float64Array, { before, since }: SlowBlocks, unitMs: number): Pair {
  const of = (blocks: Int32Array): number =>
    rounded(median(Float64Array.from(blocks, (k) => values[k]!)) * unitMs);
  return [before.length === 0 ? null : of(before), of(since)];
}

export function comparedRanks(
  { account }: Compared,
  evidence: readonly RankEvidence[],
  slow: SlowBlocks,
  groups: readonly Group[],
): ComparedFigures {
  const { blocks, unitMs } = account;
  const [{ leads, reference, chance, moment }] = evidence as [RankEvidence];
  const [leadBefore, leadSince] = pairOf(leads, slow, unitMs);
  // What lasts is the judge's own level, which a hiccup does not reach.
  const lasting = rounded(lastingLevel(leads.subarray(moment)) * unitMs);
  const suspects = evidence.map(({ place }) => place);
  const peers = Array.from(reference.places).filter((place) => !suspects.includes(place));
  const [wholeBefore, whole] = pairOf(account.lengthMs, slow, 1);
  return {
    group: groupWords(account.groups[reference.group]!.id, groups),
    iterations: account.areIterations ? blocks : 0,
    leadMs: [leadBefore, slow.isNowAndThen ? leadSince : lasting],
    chanceMs: rounded(chance * unitMs),
    ranks: [...suspects, ...peers].slice(0, MOST_RANKS).map((place) => {
      const [before, since] = pairOf(row(account.inside, place, blocks), slow, unitMs);
      return {
        rank: account.ranks[place]!,
        insideMs: [before, since],
        ownMs: [
          before === null || wholeBefore === null
            ? null
            : rounded(Math.max(0, wholeBefore - before)),
          rounded(Math.max(0, whole - since)),
        ],
      };
    }),
  };
}

export function comparedWires(
  { wires, ranks, unitMs, areIterations, blocks }: Account,
  slow: SlowBlocks,
  own: readonly number[],
  costMs: number,
): ComparedFigures {
  const kinds = new Set(own.map((w) => wires[w]!.kind));
  const alike = [...wires.keys()].filter((w) => kinds.has(wires[w]!.kind) && !own.includes(w));
  return {
    group: own.length === 1 ? "1 wire" : `${own.length} wires`,
    iterations: areIterations ? blocks : 0,
    leadMs: [null, costMs],
    chanceMs: 0,
    ranks: [],
    wires: [...own, ...alike].slice(0, MOST_WIRES).map((w) => {
      const ends = wires[w]!.places.map((place) => ranks[place]!);
      const [first] = ends;
      return {
        name: ends.length === 2 ? `ranks ${ends.join("–")}` : `${ends.length} ranks from ${first}`,
        ranks: ends,
        leastMs: pairOf(wires[w]!.least, slow, unitMs),
      };
    }),
  };
}

function groupWords(id: number, groups: readonly Group[]): string {
  const group = groups[id];
  return group === undefined ? "all ranks" : group.desc || group.name || `group ${id}`;
}

function rounded(ms: number): number {
  return Number.isFinite(ms) ? Number(ms.toPrecision(4)) : 0;
}
