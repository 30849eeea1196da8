/** Counts people's judgements: how often verdicts were right, by kind and by confidence, and what was true instead. */
import { groupBy } from "../../../base/group-by.ts";
import { mean } from "../../../base/numbers.ts";
import { fitsAny } from "../../../base/patterns.ts";
import { wilson } from "../../../maths/wilson.ts";
import { type Handling, type Judgement, rootOf } from "../../../model/handling.ts";
import type { SiteReport, SiteScore } from "../../../model/site.ts";

export type Judged = NonNullable<Handling["judgement"]> & { readonly incident: string };

const BINS = [0, 0.5, 0.7, 0.8, 0.9, 1] as const;
const MOST_CONFUSIONS = 20;

/**
 * The last of each incident, oldest first; of incidents that are the same one counts: rather what holds everywhere, rather
 * that of the incident which the others are merged into, rather the last.
 */
export function judgementsOf(handlings: ReadonlyMap<string, Handling>): readonly Judged[] {
  const judged = [...handlings.values()]
    .flatMap(({ incident, judgement }) => (judgement === null ? [] : [{ ...judgement, incident }]))
    .sort((a, b) => a.atMs - b.atMs);
  const same = groupBy(judged, ({ incident }) => rootOf(handlings, incident));
  return [...same]
    .flatMap(([root, list]) => {
      const everywhere = list.filter(({ jobs }) => jobs === null);
      const counting = everywhere.length > 0 ? everywhere : list;
      return counting.find(({ incident }) => incident === root) ?? counting.at(-1)!;
    })
    .sort((a, b) => a.atMs - b.atMs);
}

/** Whoever sees some jobs only has a say in those. null: what counts everywhere. */
export function countingFor(judgements: readonly Judged[], job: string | null): readonly Judged[] {
  return judgements.filter(({ jobs }) => jobs === null || (job !== null && fitsAny(job, jobs)));
}

/** What counts everywhere: without judgements of people who see some jobs only. */
export function withoutLimited(
  handlings: ReadonlyMap<string, Handling>,
): ReadonlyMap<string, Handling> {
  return new Map(
    [...handlings].map(([id, one]) => [
      id,
      (one.judgement?.jobs ?? null) === null ? one : { ...one, judgement: null },
    ]),
  );
}

export function howRight(judgements: readonly Judgement[]): SiteReport {
  const kinds = [...groupBy(judgements, ({ said }) => said.kind)]
    .map(([kind, list]) => ({ kind, ...scoreOf(list) }))
    .sort((a, b) => b.judged - a.judged || (a.kind < b.kind ? -1 : 1));
  return {
    schema: "faultline.site/1",
    all: scoreOf(judgements),
    kinds,
    ...confusionsOf(judgements),
  };
}

function scoreOf(judgements: readonly Judgement[]): SiteScore {
  const right = judgements.filter(({ isRight }) => isRight).length;
  const [low, high] = wilson(right, judgements.length);
  const calibration = BINS.slice(0, -1).flatMap((from, i) => {
    const to = BINS[i + 1]!;
    const inside = judgements.filter(
      ({ said: { confidence } }) => confidence >= from && (confidence < to || to === 1),
    );
    if (inside.length === 0) return [];
    return {
      from,
      to,
      judged: inside.length,
      right: inside.filter(({ isRight }) => isRight).length,
      said: mean(inside.map(({ said }) => said.confidence)),
    };
  });
  const errors = calibration.map((bin) => bin.judged * Math.abs(bin.said - bin.right / bin.judged));
  const calibrationError =
    judgements.length === 0 ? 0 : errors.reduce((sum, one) => sum + one, 0) / judgements.length;
  return { judged: judgements.length, right, low, high, calibration, calibrationError };
}

function confusionsOf(judgements: readonly Judgement[]): Pick<SiteReport, "confusions"> {
  const wrong = judgements.flatMap(({ isRight, cause: truth, said: { cause: said } }) =>
    isRight || truth === null || truth === said ? [] : { said, truth },
  );
  const confusions = [...groupBy(wrong, ({ said, truth }) => `${said} ${truth}`).values()]
    .map((list) => ({ ...list[0]!, incidents: list.length }))
    .sort((a, b) => b.incidents - a.incidents || (a.truth < b.truth ? -1 : 1))
    .slice(0, MOST_CONFUSIONS);
  return { confusions };
}
