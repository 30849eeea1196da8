/**
 * What a method has earned on real jobs: of verdicts of a kind that it decided, the share that was right, drawn towards what an
 * unproven method gets. Jobs of one family are right or wrong together, so that a family counts as a few recordings at most.
 */
import { groupBy } from "../../src/base/group-by.ts";
import { earned as shipped } from "../../src/verdict/calibration.ts";
import type { VerdictKind } from "../../src/model/finding.ts";
import type { MethodId } from "../../src/model/method.ts";
import { decidedBy, type Examined } from "./examine.ts";

/** Before anything is known: three of four right. Below 0.8, from where on a verdict is acted upon. */
const BEFORE = { right: 3, of: 4 };
const MOST_OF_A_FAMILY = 4;
const JUDGE: MethodId = "slow/judge";

export const UNPROVEN = BEFORE.right / BEFORE.of;

/** A verdict, with the confidence that it would have if all methods had earned everything. */
export interface Case {
  readonly kind: VerdictKind;
  readonly method: string;
  readonly family: string;
  readonly stated: number;
  readonly right: boolean;
}

/**
 * Verdicts without a suspect claim little, that of a healthy job apart; and what the judge of slowness says has a map of its own:
 * they are left as they are.
 */
export function isEarned({ kind, method }: Pick<Case, "kind" | "method">): boolean {
  return method !== JUDGE && (method !== "nobody" || kind === "healthy");
}

export function caseOf({ truth, verdict, judged }: Examined): Case {
  const { kind, confidence } = verdict;
  const method = decidedBy(verdict);
  const factor = isEarned({ kind, method }) ? shipped(kind, method) : 1;
  return { kind, method, family: truth.family, stated: confidence / factor, right: judged.right };
}

export interface Earned {
  readonly share: number;
  readonly right: number;
  readonly of: number;
  readonly families: number;
}

/** By kind of verdict, then by method. */
export type EarnedTable = ReadonlyMap<string, ReadonlyMap<string, Earned>>;

export function earnedFrom(cases: readonly Case[], most = MOST_OF_A_FAMILY): EarnedTable {
  const ordered = [...groupBy(cases.filter(isEarned), ({ kind }) => kind)].sort(byKey);
  return new Map(
    ordered.map(([kind, own]) => [
      kind,
      new Map(
        [...groupBy(own, ({ method }) => method)]
          .sort(byKey)
          .map(([method, some]) => [method, earnedBy(some, most)]),
      ),
    ]),
  );
}

function earnedBy(cases: readonly Case[], most: number): Earned {
  const families = [...groupBy(cases, ({ family }) => family).values()];
  let [right, of] = [BEFORE.right, BEFORE.of];
  for (const own of families) {
    const weight = Math.min(1, most / own.length);
    right += weight * rightOf(own);
    of += weight * own.length;
  }
  const share = Math.round((1000 * right) / of) / 1000;
  return { share, right: rightOf(cases), of: cases.length, families: families.length };
}

export function confidenceWith(table: EarnedTable, one: Case): number {
  if (!isEarned(one)) return one.stated;
  return one.stated * (table.get(one.kind)?.get(one.method)?.share ?? UNPROVEN);
}

/** Each family's verdicts, with the confidence that the other families allow. */
export function leaveOneFamilyOut(
  cases: readonly Case[],
  most?: number,
): (Case & { readonly confidence: number })[] {
  return [...new Set(cases.map(({ family }) => family))].flatMap((family) => {
    const table = earnedFrom(
      cases.filter((one) => one.family !== family),
      most,
    );
    return cases
      .filter((one) => one.family === family)
      .map((one) => ({ ...one, confidence: confidenceWith(table, one) }));
  });
}

/** src/verdict/earned-table.ts */
export function earnedSource(table: EarnedTable): string {
  const kinds = [...table].flatMap(([kind, methods]) => [
    `  ${/^\w+$/.test(kind) ? kind : `"${kind}"`}: {`,
    ...[...methods].flatMap(([method, { share, right, of, families }]) => [
      `    // ${right} of ${of} right, in ${families} ${families === 1 ? "family" : "families"}`,
      `    ${/^\w+$/.test(method) ? method : `"${method}"`}: ${share},`,
    ]),
    "  },",
  ]);
  return `/**
 * Written by \`npm run eval -- recordings --fit\` (eval/recordings/earned.ts says how); do not edit it. Recordings of the families
 * that teach (eval/recordings/families.ts).
 */

/** Of a method that decided no verdict of this kind on a real job. */
export const UNPROVEN = ${UNPROVEN};

/** Kind of verdict → method that decided it → what is left of the confidence. */
export const EARNED: Readonly<Record<string, Readonly<Record<string, number>>>> = {
${kinds.join("\n")}
};
`;
}

function rightOf(cases: readonly Case[]): number {
  return cases.filter(({ right }) => right).length;
}

function byKey([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}
