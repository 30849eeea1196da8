/** Somebody who was named, as long as it lasts: what showed it, whether it is over, and what is told of it. */
import type { LiveCulprit } from "../../../model/live-judgement.ts";
import type { Usual } from "./baseline.ts";
import { causeOf } from "./cause.ts";
import { USUAL_PACE_CHANCE } from "./common-pace.ts";
import { comparedOf } from "./compared.ts";
import type { Hypothesis } from "./hypotheses.ts";
import type { KeptBlock } from "./kept-block.ts";
import { COMMUNICATORS, type Kind, SENDERS } from "./kinds.ts";
import { iterationMsOf, type Means, meansOf } from "./means.ts";
import { networkOdds } from "./network-part.ts";
import type { JudgedJob } from "./online-judge.ts";
import { endedBlocksAgo } from "./over.ts";

/** A wire that is on the record is the network's. */
const SURE = 0.99;

export interface Culprit {
  readonly id: number;
  readonly hypothesis: Hypothesis;
  readonly sinceMs: number;
  probability: number;
  /** Whom it is about. */
  readonly places: readonly number[];
  /** Series of its kind that show it; none where it is how long iterations are. */
  readonly series: readonly number[];
  /** As it was before. */
  readonly usual: Usual;
  readonly before: Means;
  readonly iterationMs: number;
}

/** What shows it, block by block, beyond what is usual: of several ranks as far as all but a few of them. */
export function shownBy({ hypothesis, series, usual }: Culprit, block: KeptBlock): number {
  if (series.length === 0) return Math.log(usual.pace / Math.max(1e-12, block.pace));
  const beyond = series
    .map((s) => block.apart[hypothesis.kind]![s]! - usual.level[s]!)
    .filter((value) => !Number.isNaN(value))
    .sort((a, b) => a - b);
  return beyond[beyond.length >> 2] ?? NaN;
}

/** Number of the first block behind its end; null while it lasts. */
export function endOf(
  culprit: Culprit,
  blocks: readonly KeptBlock[],
  { usualChance }: Kind,
): number | null {
  const { usual, series, hypothesis } = culprit;
  const known = blocks
    .filter(({ number }) => number >= hypothesis.since)
    .map((block) => ({ block, value: shownBy(culprit, block) }))
    .filter(({ value }) => !Number.isNaN(value));
  const [s] = series;
  const sigma = s === undefined ? USUAL_PACE_CHANCE : Math.max(usualChance, usual.sigma[s]!);
  const inflation = s === undefined ? 1 : usual.inflation[s]!;
  const values = known.map(({ value }) => value);
  const lengthMs = blocks.at(-1)!.block.lengthMs;
  const ago = endedBlocksAgo(values, sigma, inflation, lengthMs);
  return ago === null ? null : known.at(-ago)!.block.number;
}

/** `blocks`: in which it was slow; `quiet`: in front of them. */
export function toldOf(
  culprit: Culprit,
  job: JudgedJob,
  { references }: Kind,
  blocks: readonly KeptBlock[],
  quiet: readonly KeptBlock[],
): LiveCulprit {
  const { hypothesis, usual, before, series, places } = culprit;
  const { type, shape, kind } = hypothesis;
  const since = meansOf(blocks, job.ranks.length);
  const [s] = series;
  const { cause, probability } =
    type === "wire"
      ? { cause: "network-slow" as const, probability: SURE }
      : type === "all"
        ? networkOdds(quiet, blocks, job.groups.length)
        : causeOf(places, before, since);
  const level = s === undefined ? 0 : usual.level[s]!;
  const beyond = blocks.map((block) => shownBy(culprit, block)).filter((one) => !Number.isNaN(one));
  const apart = beyond.reduce((sum, one) => sum + one, 0) / Math.max(1, beyond.length);
  // Of communicators the members are shown.
  const peers = references.groups[s === undefined ? 0 : references.group[s]!]!;
  const group = kind === COMMUNICATORS ? { name: peers.name, places } : peers;
  return {
    id: culprit.id,
    type,
    ranks: places.map((place) => job.ranks[place]!),
    cause,
    probability: culprit.probability,
    causeProbability: probability,
    shape,
    sinceMs: culprit.sinceMs,
    compared: comparedOf({
      ranks: job.ranks,
      places,
      group,
      isWire: kind === SENDERS,
      iterations: blocks.reduce((sum, { block }) => sum + block.iterations, 0),
      before,
      since,
      iterationMs: [culprit.iterationMs, iterationMsOf(blocks)],
      apart: [level, level + apart],
      chance: s === undefined ? 0 : usual.sigma[s]!,
    }),
  };
}
