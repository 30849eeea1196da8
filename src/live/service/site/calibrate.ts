/**
 * Corrects the confidence of verdicts by how right verdicts of the kind were at this site: a monotone map through groups
 * of judged verdicts, each pulled to what was said by as many imagined judgements as PRIOR says.
 */
import { mean, thousandths } from "../../../base/numbers.ts";
import type { Verdict } from "../../../model/verdict.ts";
import type { Judged } from "./how-right.ts";

/** Judgements of a kind below which nothing is corrected. */
const ENOUGH = 20;
const PRIOR = 20;
const LEAST_GROUP = 10;
const MOST = 0.99;

type Said = Pick<Judged, "isRight"> & { readonly stated: number };

export function calibrated(verdict: Verdict, judgements: readonly Judged[]): Verdict {
  const { kind, suspects, findings } = verdict;
  const same = judgements.filter(({ said }) => said.kind === kind);
  if (suspects.length === 0 || same.length < ENOUGH) return verdict;
  const before = findings.map(({ data }) => data).find((data) => data.fact === "site-judged");
  const stated = before?.stated ?? verdict.confidence;
  const list = same.map(({ isRight, said }) => ({ isRight, stated: said.stated }));
  const right = same.filter(({ isRight }) => isRight).length;
  const others = findings.filter(({ data }) => data.fact !== "site-judged");
  return {
    ...verdict,
    confidence: thousandths(correctedConfidence(stated, list)),
    findings: [
      ...others,
      {
        id: freeId(others),
        method: "site/judged",
        says: `of ${same.length} verdicts of this kind judged here, ${right} were right; by that the confidence is corrected from ${Math.round(100 * stated)} %`,
        weight: 0,
        at: [],
        data: { fact: "site-judged", judged: same.length, right, stated },
      },
    ],
  };
}

export function correctedConfidence(stated: number, judged: readonly Said[]): number {
  const knots = [{ x: 0, y: 0 }, ...pooled(groupsOf(judged)), { x: 1, y: 1 }];
  const above = Math.max(
    1,
    knots.findIndex(({ x }) => x >= stated),
  );
  const [a, b] = [knots[above - 1]!, knots[above]!];
  const share = b.x > a.x ? (stated - a.x) / (b.x - a.x) : 1;
  return Math.min(MOST, a.y + share * (b.y - a.y));
}

interface Knot {
  readonly x: number;
  readonly y: number;
  readonly weight: number;
}

/** Ten judgements or more each, in order of what was said; equal confidences stay together. */
function groupsOf(judged: readonly Said[]): Knot[] {
  const sorted = judged.toSorted((a, b) => a.stated - b.stated);
  const groups: Said[][] = [[]];
  sorted.forEach((one, i) => {
    const group = groups.at(-1)!;
    const isFull = group.length >= LEAST_GROUP && group.at(-1)!.stated !== one.stated;
    if (isFull && sorted.length - i >= LEAST_GROUP) groups.push([one]);
    else group.push(one);
  });
  return groups.map((group) => {
    const x = mean(group.map(({ stated }) => stated));
    const right = group.filter(({ isRight }) => isRight).length;
    const weight = group.length + PRIOR;
    return { x, y: (right + PRIOR * x) / weight, weight };
  });
}

/** Pool adjacent violators: who is surer is not less often right. */
function pooled(knots: readonly Knot[]): Knot[] {
  const blocks: { y: number; weight: number; xs: number[] }[] = [];
  for (const { x, y, weight } of knots) {
    blocks.push({ y, weight, xs: [x] });
    while (blocks.length > 1 && blocks.at(-2)!.y > blocks.at(-1)!.y) {
      const [a, b] = blocks.splice(-2) as [(typeof blocks)[0], (typeof blocks)[0]];
      const sum = a.weight + b.weight;
      blocks.push({
        y: (a.y * a.weight + b.y * b.weight) / sum,
        weight: sum,
        xs: [...a.xs, ...b.xs],
      });
    }
  }
  return blocks.flatMap(({ y, weight, xs }) => xs.map((x) => ({ x, y, weight })));
}

function freeId(findings: Verdict["findings"]): string {
  const ids = new Set(findings.map(({ id }) => id));
  let number = findings.length + 1;
  while (ids.has(`f${number}`)) number++;
  return `f${number}`;
}
