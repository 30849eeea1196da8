/** What the recordings must show. */
import type { Share } from "../joint/figures.ts";
import type { ExaminedPart } from "./examine.ts";
import { isSureAndWrong, share, SURE, type Tallies } from "./tally.ts";

export interface Aim {
  readonly aim: string;
  readonly isMet: boolean;
  readonly found: string;
}

const LEAST = { teaching: 0.95, testing: 0.9 };

export function aimsOf(
  { families, teaching, testing, all }: Tallies,
  parts: readonly ExaminedPart[],
  unread: readonly string[],
): Aim[] {
  const worse = families.filter(({ tenLines, oursOnThose }) => oursOnThose.right < tenLines.right);
  const accusedInParts = share(
    parts.filter(({ truth }) => truth.kind === "healthy"),
    ({ verdict }) => verdict.suspects.length > 0,
  );
  const slowByLog = parts.filter(
    ({ part, verdict, judged }) =>
      part === "logs" &&
      judged === "wrong" &&
      verdict.kind === "fail-slow" &&
      verdict.suspects.length > 0,
  );
  return [
    atLeast("teaching families", teaching.right, LEAST.teaching),
    atLeast("test families", testing.right, LEAST.testing),
    none("healthy jobs in which somebody is accused", all.accused.right),
    none(`wrong answers at ${SURE} or above`, all.sureAndWrong),
    none(
      "families in which the ten lines name the guilty ranks more often than we do",
      worse.length,
      worse.map(({ name }) => name),
    ),
    ...(parts.length === 0
      ? []
      : [
          none(
            "with part of the files: healthy jobs in which somebody is accused",
            accusedInParts.right,
          ),
          none(
            `wrong answers at ${SURE} or above by part of the files`,
            parts.filter(isSureAndWrong).length,
          ),
          none(
            "innocents accused of being slow by logs alone",
            slowByLog.length,
            slowByLog.map(({ name }) => name),
          ),
        ]),
    ...(unread.length === 0 ? [] : [none("recordings that cannot be read", unread.length, unread)]),
  ];
}

function atLeast(what: string, { right, of }: Share, least: number): Aim {
  return {
    aim: `${what}: at least ${100 * least} % with exact suspects and cause`,
    isMet: right >= least * of,
    found: of === 0 ? "none asked" : `${right} of ${of} (${((100 * right) / of).toFixed(1)} %)`,
  };
}

function none(what: string, count: number, names: readonly string[] = []): Aim {
  const found = names.length === 0 ? String(count) : `${count}: ${names.join(", ")}`;
  return { aim: `no ${what}`, isMet: count === 0, found };
}
