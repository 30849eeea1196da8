/**
 * Jobs that hang to order (src/simulate): random layouts of 4 to 512 ranks, every kind of culprit,
 * missing dumps, rings that wrapped, ranks without entries, no timing, JSON among pickles. Cases in
 * which the files themselves do not decide are counted apart: there we must only not be sure of
 * something wrong.
 */
import { describe, expect, it } from "vitest";
import { writeCase } from "../src/simulate/hang-cases/hang-case.ts";
import { randomHangCase } from "../src/simulate/hang-cases/random-case.ts";
import { diagnoseFiles } from "./in-memory.ts";

interface Tally {
  decidable: number;
  exact: number;
  causeRight: number;
  wrong: string[];
  sureAndWrong: string[];
}

async function examine(firstSeed: number, cases: number, maxRanks: number): Promise<Tally> {
  const tally: Tally = { decidable: 0, exact: 0, causeRight: 0, wrong: [], sureAndWrong: [] };
  for (let seed = firstSeed; seed < firstSeed + cases; seed++) {
    const hang = randomHangCase(seed, { minRanks: 4, maxRanks });
    const { truth, options } = hang;
    const verdict = await diagnoseFiles(writeCase(hang));
    const blamed = verdict.suspects.flatMap((suspect) => suspect.ranks).sort((a, b) => a - b);
    const exact = blamed.join() === truth.ranks.join();
    const line = `seed ${seed}: ${options.tp}x${options.pp}x${options.dp} ${truth.note}; blamed ${blamed.join()}`;
    if (!truth.decidable) {
      if (!exact && verdict.confidence > 0.9) tally.sureAndWrong.push(line);
      continue;
    }
    tally.decidable++;
    if (!exact) {
      tally.wrong.push(line);
      continue;
    }
    tally.exact++;
    if (verdict.suspects.every(({ cause }) => truth.causes.includes(cause))) tally.causeRight++;
    else tally.wrong.push(`${line}: ${verdict.suspects[0]?.cause}`);
  }
  return tally;
}

describe("a generated hang", () => {
  const batches: [string, number, number, number][] = [
    ["of 4 to 48 ranks", 20_000, 480, 48],
    ["of 4 to 512 ranks", 30_000, 60, 512],
  ];
  it.each(batches)(
    "%s gets the exact culprit set in 99 % of the cases",
    async (name, seed, cases, maxRanks) => {
      const tally = await examine(seed, cases, maxRanks);
      console.log(
        `${name}: ${cases} cases from seed ${seed}, ${tally.decidable} decidable, ${tally.exact} exact sets, ` +
          `${tally.causeRight} with the right cause, ${tally.sureAndWrong.length} sure and wrong among the others` +
          (tally.wrong.length > 0 ? `\n${tally.wrong.join("\n")}` : ""),
      );
      expect(tally.decidable).toBeGreaterThan(cases * 0.75);
      expect(tally.exact / tally.decidable).toBeGreaterThanOrEqual(0.99);
      expect(tally.causeRight / tally.exact).toBeGreaterThanOrEqual(0.98);
      expect(tally.sureAndWrong.length).toBeLessThanOrEqual(0.02 * (cases - tally.decidable) + 1);
    },
  );
});
