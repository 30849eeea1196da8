/** What the evaluation by family prints. */
import { groupBy } from "../../src/base/group-by.ts";
import { intervalWords, shareWords } from "../document/chapter.ts";
import { tableText } from "../document/markdown.ts";
import { wilson, type Share } from "../joint/figures.ts";
import type { Aim } from "./aims.ts";
import { decidedBy, verdictCells, type Examined, type ExaminedPart } from "./examine.ts";
import { SURE, share, type Tallies, type Tally } from "./tally.ts";
import { truthWords } from "./truth.ts";

export function familyTable({ families, teaching, testing, all }: Tallies): string {
  const head = [
    "family",
    "used to",
    "n",
    "kind",
    "suspects",
    "suspects and cause",
    "healthy accused",
    `wrong at ≥ ${SURE}`,
    "ten lines: ranks",
    "ours on those: ranks",
  ];
  const cells = (tally: Tally, use: string): string[] => [
    tally.name,
    use,
    String(tally.n),
    count(tally.kind),
    count(tally.suspects),
    count(tally.right),
    count(tally.accused),
    String(tally.sureAndWrong),
    count(tally.tenLines),
    count(tally.oursOnThose),
  ];
  return tableText(head, [
    ...families.map((family) => cells(family, family.teaches ? "teach" : "test")),
    ...[teaching, testing, all].map((total) => cells(total, "")),
  ]);
}

export function totalLines({ teaching, testing, all }: Tallies): string[] {
  return [teaching, testing, all].map(
    ({ name, right, open, n, sureAndWrong, accused }) =>
      `- ${name}: ${shareWords(right)} with exact suspects and cause (${intervalWords(right)}); open ${open.right}, wrong ${n - right.right - open.right}, wrong at 0.8 or above ${sureAndWrong}, healthy accused ${accused.right}`,
  );
}

/** Few recordings, most of them sure: bins are narrow at the top. */
const EDGES = [0, 0.5, 0.7, 0.8, 0.9, 0.95, 1];

export interface Claimed {
  readonly confidence: number;
  readonly right: boolean;
}

export function reliabilityTable(claims: readonly Claimed[]): string {
  const rows = EDGES.slice(1).flatMap((to, i) => {
    const from = EDGES[i]!;
    const inside = claims.filter(
      ({ confidence }) => confidence >= from && (confidence < to || to === 1),
    );
    if (inside.length === 0) return [];
    const right = share(inside, (one) => one.right);
    const [low, high] = wilson(right);
    return [
      [
        `${from} to ${to}`,
        String(inside.length),
        mean(inside.map(({ confidence }) => confidence)).toFixed(2),
        (right.right / right.of).toFixed(2),
        `${low.toFixed(2)} to ${high.toFixed(2)}`,
      ],
    ];
  });
  return tableText(["confidence", "n", "mean confidence", "right", "95 % interval"], rows);
}

export interface FamilyClaim extends Claimed {
  readonly family: string;
  /** The confidence before what was earned is taken into account. */
  readonly stated: number;
}

/** Mean squared distance between what was claimed and what was true (Brier), each family counting the same. */
export function brierByFamily(claims: readonly FamilyClaim[]): number {
  const families = [...groupBy(claims, ({ family }) => family).values()];
  return mean(
    families.map((own) => mean(own.map((one) => (one.confidence - (one.right ? 1 : 0)) ** 2))),
  );
}

export function leftOutTable(claims: readonly FamilyClaim[]): string {
  const rows = [...groupBy(claims, ({ family }) => family)].map(([family, own]) => [
    family,
    String(own.length),
    (own.filter(({ right }) => right).length / own.length).toFixed(2),
    mean(own.map(({ stated }) => stated)).toFixed(2),
    mean(own.map(({ confidence }) => confidence)).toFixed(2),
  ]);
  return tableText(
    ["family left out", "n", "right", "confidence as stated", "confidence by the other families"],
    rows,
  );
}

export function wrongTable(all: readonly (Examined | ExaminedPart)[]): string {
  const rows = [...all]
    .sort((a, b) => b.verdict.confidence - a.verdict.confidence)
    .map(({ name, truth, verdict }) => [
      verdict.confidence.toFixed(2),
      name,
      truth.family,
      truthWords(truth),
      verdictCells(verdict)
        .filter((cell) => cell !== "")
        .join(", "),
      decidedBy(verdict),
    ]);
  return tableText(["confidence", "recording", "family", "truth", "verdict", "decided by"], rows);
}

export function partTable(parts: readonly ExaminedPart[]): string {
  const kinds = [...new Set(parts.map(({ truth }) => truth.kind))].sort();
  const rows = (["dumps", "logs"] as const).flatMap((part) =>
    kinds.map((kind) => {
      const own = parts.filter((one) => one.part === part && one.truth.kind === kind);
      const of = (word: string): string =>
        String(own.filter(({ judged }) => judged === word).length);
      return [`${part} only`, kind, String(own.length), of("right"), of("silent"), of("wrong")];
    }),
  );
  return tableText(["files", "truth", "n", "right", "silent", "wrong"], rows);
}

export function aimLines(aims: readonly Aim[]): string[] {
  return aims.map(
    ({ aim, isMet, found }) => `- ${isMet ? "met" : "**missed**"}: ${aim} (${found})`,
  );
}

function count({ right, of }: Share): string {
  return of === 0 ? "–" : `${right} of ${of}`;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
