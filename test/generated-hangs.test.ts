/**
 * Jobs that hang to order: random layouts, every kind of culprit, missing dumps, rings that wrapped, ranks without entries,
 * no timing, JSON among pickles. Twenty-four of them here, forty in `npm run test:long`; `npm run eval -- generated-hangs` asks 540.
 */
import { expect, it } from "vitest";
import { examineHangs } from "../eval/generated-hangs/examine.ts";
import { runs } from "./support/cases.ts";

it.each([
  ["of 4 to 48 ranks", 20_000, runs(20, 34), 48],
  ["of 4 to 512 ranks", 30_000, runs(4, 6), 512],
])(
  "%s: the exact culprits and causes, and never sure of something wrong",
  async (_, seed, cases, ranks) => {
    const tally = await examineHangs(seed, cases, ranks);
    expect(tally.decidable).toBeGreaterThan(cases * 0.6);
    expect(tally.wrong).toEqual([]);
    expect(tally.sureAndWrong).toEqual([]);
  },
);
