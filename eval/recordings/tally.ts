/** Counts over recordings: of a family, of the families that teach, of those that test. */
import { groupBy } from "../../src/base/group-by.ts";
import type { Share } from "../joint/figures.ts";
import type { Examined, ExaminedPart } from "./examine.ts";
import { teaches } from "./families.ts";

/** From here on a verdict is acted upon, so that a wrong one does harm. */
export const SURE = 0.8;

export interface Tally {
  readonly name: string;
  readonly n: number;
  readonly kind: Share;
  readonly suspects: Share;
  readonly right: Share;
  /** The right suspects, their cause as one of two. */
  readonly open: Share;
  /** Healthy jobs in which somebody or something is accused. */
  readonly accused: Share;
  readonly sureAndWrong: number;
  /** Slow and healthy jobs that the ten lines answer: exactly the guilty ranks, theirs and ours. */
  readonly tenLines: Share;
  readonly oursOnThose: Share;
}

export function tallyOf(name: string, all: readonly Examined[]): Tally {
  const healthy = all.filter(({ truth }) => truth.kind === "healthy");
  const answered = all.filter(({ tenLines }) => tenLines !== null);
  return {
    name,
    n: all.length,
    kind: share(all, ({ judged }) => judged.kind),
    suspects: share(all, ({ judged }) => judged.suspects),
    right: share(all, ({ judged }) => judged.right),
    open: share(all, ({ judged }) => judged.open),
    accused: share(healthy, ({ verdict }) => verdict.suspects.length > 0),
    sureAndWrong: all.filter(isSureAndWrong).length,
    tenLines: share(answered, ({ tenLines }) => tenLines === true),
    oursOnThose: share(answered, ({ judged }) => judged.ranks),
  };
}

export interface Tallies {
  /** Those that teach first. */
  readonly families: readonly (Tally & { readonly teaches: boolean })[];
  readonly teaching: Tally;
  readonly testing: Tally;
  readonly all: Tally;
}

export function talliesOf(all: readonly Examined[]): Tallies {
  const families = [...groupBy(all, ({ truth }) => truth.family)].map(([family, own]) => ({
    ...tallyOf(family, own),
    teaches: teaches(family),
  }));
  const of = (wanted: boolean): Examined[] =>
    all.filter(({ truth }) => teaches(truth.family) === wanted);
  return {
    families: families.sort(
      (a, b) => Number(b.teaches) - Number(a.teaches) || b.n - a.n || (a.name < b.name ? -1 : 1),
    ),
    teaching: tallyOf("teaching families", of(true)),
    testing: tallyOf("test families", of(false)),
    all: tallyOf("all", all),
  };
}

export function isSureAndWrong({ judged, verdict }: Examined | ExaminedPart): boolean {
  const isWrong = typeof judged === "string" ? judged === "wrong" : !judged.right && !judged.open;
  return isWrong && verdict.confidence >= SURE;
}

export function share<T>(all: readonly T[], is: (one: T) => boolean): Share {
  return { right: all.filter((one) => is(one)).length, of: all.length };
}
