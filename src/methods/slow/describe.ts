/** Who was compared with whom, in milliseconds: the figures behind the judge's sentence. */
import { median } from "../../maths/robust.ts";
import type { Compared as ComparedFigures } from "../../model/facts.ts";
import type { Group } from "../../model/job.ts";
import { type Account, row } from "./account.ts";
import { chanceOf } from "./chance.ts";
import type { Compared, RankEvidence } from "./compare.ts";
import { lastingLevel } from "./levels.ts";
import { spikingBlocks } from "./spikes.ts";

/** Ranks, and wires, whose figures are handed over. */
const MOST_RANKS = 24;
const MOST_WIRES = 12;

type Pair = readonly [before: number | null, since: number];

/** Medians in blocks before a moment and since it; of spikes, in the other blocks and in the spikes. */
interface Split {
  readonly before: Int32Array;
  readonly since: Int32Array;
}

export function comparedRanks(
  { account, moments, series, leads }: Compared,
  evidence: readonly RankEvidence[],
  groups: readonly Group[],
): ComparedFigures {
  const [first] = evidence as [RankEvidence];
  const at = Math.max(0, moments.indexOf(first.moment));
  const over = series[at]!;
  const own = first.series;
  const reference = own < 0 ? null : over.references[over.reference[own]!]!;
  const split = splitOf({ account, series }, first);
  const ms = (values: Float64Array): Pair => pairOf(values, split, account.unitMs);
  const growths = Float64Array.from(account.ranks, (_, place) => surestGrowth(place));
  const suspects = new Set(evidence.map(({ place }) => place));
  const chance = chanceOf(growths, (place) => suspects.has(place));
  const lead: Pair =
    own < 0
      ? [null, first.lead * account.unitMs]
      : leadOf(ms(row(over.lead, own, account.blocks)), first, over.lead, own, account);
  const peers = Array.from(reference?.places ?? []).filter((place) => !suspects.has(place));
  const shown = [...suspects, ...peers].slice(0, MOST_RANKS);
  return {
    group: groupWords(account.groups[reference?.group ?? 0]?.id ?? -1, groups),
    iterations: account.areIterations ? account.blocks : 0,
    leadMs: [lead[0] === null ? null : rounded(lead[0]), rounded(lead[1])],
    chanceMs: rounded(Math.sqrt(chance.variance) * account.unitMs),
    ranks: shown.map((place) => {
      const inside = ms(row(account.inside, place, account.blocks));
      const whole = ms(account.lengthMs.map((length) => length / account.unitMs));
      return {
        rank: account.ranks[place]!,
        insideMs: roundedPair(inside),
        ownMs: roundedPair([
          inside[0] === null || whole[0] === null ? null : Math.max(0, whole[0] - inside[0]),
          Math.max(0, whole[1] - inside[1]),
        ]),
      };
    }),
  };

  function surestGrowth(place: number): number {
    const { growth, error } = leads[at]!;
    let best = -1;
    for (const s of over.of[place]!)
      if (!Number.isNaN(growth[s]!) && (best < 0 || error[s]! < error[best]!)) best = s;
    return best < 0 ? NaN : growth[best]!;
  }
}

/** What lasts is the judge's own level, which a hiccup does not reach. */
function leadOf(
  [before, since]: Pair,
  { isNowAndThen, moment }: RankEvidence,
  leads: Float64Array,
  series: number,
  { blocks, unitMs }: Account,
): Pair {
  if (isNowAndThen) return [before, since];
  return [before, lastingLevel(row(leads, series, blocks).subarray(moment)) * unitMs];
}

function splitOf(
  { account, series }: Pick<Compared, "account" | "series">,
  { isNowAndThen, moment, place }: RankEvidence,
): Split {
  const all = Int32Array.from({ length: account.blocks }, (_, k) => k);
  const since = isNowAndThen
    ? spikingBlocks(account, series[1] ?? series[0]!, place)
    : all.subarray(moment);
  const isSince = new Set(since);
  return { before: all.filter((k) => !isSince.has(k)), since };
}

function pairOf(values: Float64Array, { before, since }: Split, unitMs: number): Pair {
  const of = (blocks: Int32Array): number =>
    median(Float64Array.from(blocks, (k) => values[k]!)) * unitMs;
  return [before.length === 0 ? null : of(before), of(since)];
}

export function wireFigures(
  account: Account,
  wires: readonly number[],
  moment: number,
): NonNullable<ComparedFigures["wires"]> {
  const kinds = new Set(wires.map((w) => account.wires[w]!.kind));
  const alike = account.wires.flatMap((wire, w) =>
    kinds.has(wire.kind) && !wires.includes(w) ? [w] : [],
  );
  return [...wires, ...alike].slice(0, MOST_WIRES).map((w) => {
    const { places, least } = account.wires[w]!;
    const ranks = places.map((place) => account.ranks[place]!);
    const of = (values: Float64Array): number => rounded(median(values) * account.unitMs);
    return {
      name:
        ranks.length === 2 ? `ranks ${ranks.join("–")}` : `${ranks.length} ranks from ${ranks[0]}`,
      ranks,
      leastMs: [moment === 0 ? null : of(least.subarray(0, moment)), of(least.subarray(moment))],
    };
  });
}

export function groupWords(id: number, groups: readonly Group[]): string {
  const group = groups[id];
  return group === undefined ? "all ranks" : group.desc || group.name || `group ${id}`;
}

function roundedPair([before, since]: Pair): Pair {
  return [before === null ? null : rounded(before), rounded(since)];
}

function rounded(ms: number): number {
  return Number.isFinite(ms) ? Number(ms.toPrecision(4)) : 0;
}
